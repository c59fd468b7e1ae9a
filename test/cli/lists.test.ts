import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { kernelModels, machineMutants, warpRoles } from '../../kernels/index.js';
import { lawIds, regimeNames } from '../../properties/index.js';
import type { CheckList } from '../../src/cli/check/publish.js';
import { adversarialNames } from '../../src/jobs/machine/request.js';
import type { KernelList, MachineList } from '../../src/cli/emulate/run.js';
import { memoryModels } from '../../src/machine/index.js';
import { refusal, runInProcess } from './run-in-process.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-lists-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const lists = {
  'emulate-list': ['emulate', 'list'],
  'machine-list': ['emulate', 'list', '--machine'],
  'check-list': ['check', '--list'],
} as const;

async function listOf<T>(kind: keyof typeof lists): Promise<T> {
  const { stdout, status } = await runInProcess(...lists[kind], '--json', '-');
  expect(status).toBe(0);
  return JSON.parse(stdout) as T;
}

/** `a, b[].c` of every member of a value that is not an item's own. */
function members(value: unknown, path = ''): string[] {
  if (Array.isArray(value))
    return [...new Set(value.flatMap((item) => members(item, `${path}[]`)))];
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([name, item]) =>
    members(item, path === '' ? name : `${path}.${name}`),
  );
}

const documentation = readFileSync(join(import.meta.dirname, '../../docs/guide/ci.md'), 'utf8');

describe.each(Object.keys(lists) as (keyof typeof lists)[])('%s', (kind) => {
  it('has the members that docs/guide/ci.md names, and no others', async () => {
    const list = await listOf<object>(kind);
    expect(list).toMatchObject({ kind, schemaVersion: 1, tool: { name: 'flashproof' } });
    const row = documentation.split('\n').find((line) => line.startsWith(`| \`${kind}\``))!;
    const documented = [...row.split('|')[3].matchAll(/`([^`]+)`/g)].map(([, name]) => name!);
    const head = ['kind', 'schemaVersion', 'tool.name', 'tool.version'];
    expect([...documented, ...head].sort()).toEqual(members(list).sort());
  });

  it('is the same whenever it is made, in a file and beside the text', async () => {
    const path = join(scratch, 'list.json');
    const { stdout } = await runInProcess(...lists[kind], '--json', path);
    const plain = await runInProcess(...lists[kind]);
    expect(stdout).toBe(plain.stdout);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(await listOf(kind));
    expect((await runInProcess(...lists[kind], '--quiet')).stdout).toBe('');
  });
});

describe('the lists', () => {
  it('have everything that can be named', async () => {
    const { models } = await listOf<KernelList>('emulate-list');
    expect(models.map(({ name }) => name)).toEqual(kernelModels.map(({ name }) => name));
    const machine = await listOf<MachineList>('machine-list');
    expect(machine.mutants.map(({ id }) => id)).toEqual(machineMutants.map(({ id }) => id));
    expect(machine.models.map(({ name }) => name)).toEqual(Object.keys(memoryModels));
    expect(machine.schedules.map(({ name }) => name)).toEqual([
      ...['in-order', 'timed', 'random:<seed>'],
      ...adversarialNames(warpRoles.length),
    ]);
    const { properties, regimes } = await listOf<CheckList>('check-list');
    expect(properties.map(({ name }) => name)).toEqual(lawIds);
    expect(regimes.map(({ name }) => name)).toEqual(regimeNames);
    for (const { promises, usualPromise } of properties) expect(promises).toContain(usualPromise);
  });

  it('are no reports of tests', async () => {
    expect(await refusal('check', '--list', '--junit', '-')).toMatch(/^a list is no report/);
  });
});
