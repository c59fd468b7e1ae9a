import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dimensions } from '../../properties/index.js';
import { writeProblem } from '../../src/io/index.js';
import type { InvarianceReport } from '../../src/report/json/check/index.js';
import { validateInvarianceReport } from '../../src/report/validation/index.js';
import { servedProblem } from '../properties/invariance/planted-kernels.js';
import { filledProblem } from '../setup/problems.js';
import { refusal, runInProcess } from './run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-invariance-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const script = fileURLToPath(new URL('batch-kernel.mjs', import.meta.url));
const [dense, served] = ['dense', 'served'].map((name) => join(scratch, `${name}.safetensors`));

beforeAll(async () => {
  const small = { batch: 2, heads: 2, queries: 2, keys: 4, dim: 4, format: 'bf16' } as const;
  await writeProblem(
    dense,
    filledProblem(small, (i) => Math.sin(i)),
  );
  await writeProblem(served, servedProblem());
});

/** The options for the script with a fault. */
function live(...fault: string[]): string[] {
  return [
    '--exec',
    [`"${process.execPath}"`, `"${script}"`, ...fault].join(' '),
    '--timeout',
    '60',
  ];
}

async function searched(path: string, ...words: string[]) {
  const { status, stdout } = await runInProcess('invariance', path, ...words, '--json', '-');
  const report = JSON.parse(stdout) as InvarianceReport;
  await validateInvarianceReport(report);
  const found = Object.fromEntries(
    report.dimensions.map(({ name, result, change }) => [
      name,
      change === null ? result : [change.from, change.to],
    ]),
  );
  return { status, report, found };
}

describe('flashproof invariance, a live kernel', () => {
  it('finds nothing of a kernel that depends on each row alone', async () => {
    const { status, report, found } = await searched(dense, ...live('none'));
    expect([status, report.verdict.pass]).toEqual([0, true]);
    expect(found).toMatchObject({ determinism: 'invariant', batch: 'invariant' });
    expect(found).toMatchObject({ 'neighbour-keys': 'untried', 'page-size': 'untried' });
  });

  it('names the batch from which bits are others', async () => {
    const { status, found } = await searched(dense, ...live('batch', '13'), '--dimension', 'batch');
    expect([status, found]).toEqual([1, { determinism: 'invariant', batch: [12, 13] }]);
    const { stdout } = await runInProcess('invariance', dense, ...live('batch', '13'), '--quiet');
    expect(stdout).toMatch(/^DIFFERS: rows depend on batch \(\d+ runs\)\.\n$/);
  });

  it('poses neighbours in the pages of the problem', async () => {
    const only = ['--dimension', 'neighbour-keys,page-order', '--up-to', 'neighbour-keys=200'];
    const { found } = await searched(served, ...live('neighbour', '77'), ...only);
    expect(found).toMatchObject({ 'neighbour-keys': [76, 77], 'page-order': 'invariant' });
  });

  it('asks for numbers of splits', async () => {
    const only = ['--dimension', 'splits', '--splits', '1,2,4,8'];
    const { found } = await searched(dense, ...live('splits', '3'), ...only);
    expect(found['splits']).toEqual([2, 4]);
  });

  it('says first that the same problem gives other bits', async () => {
    const { status, report, found } = await searched(dense, ...live('run', '3'));
    expect([status, found['determinism']]).toEqual([1, [2, 3]]);
    expect(report.verdict.sentence).toMatch(/^NOT DETERMINISTIC: /);
    expect(found['batch']).toBe('untried');
  });

  it('prints what it tried, in lines of 80 columns', async () => {
    const { stdout } = await runInProcess('invariance', served, ...live('batch', '5'));
    const lines = stdout.split('\n');
    expect(lines.filter((line) => [...line].length > 80)).toEqual([]);
    for (const name of Object.keys(dimensions))
      expect(lines.some((line) => line.startsWith(`  ${name}`))).toBe(true);
    expect(stdout).toMatch(/^ {2}batch +DIFFERS +4 → 5 +1–5$/m);
  });
});

describe('flashproof invariance, a model', () => {
  it('finds that fa2 splits keys by the batch where it chooses how many splits there are', async () => {
    // csrc/flash_attn/flash_api.cpp, num_splits_heuristic: one split once blocks fill 0.8 of the multiprocessors.
    const problem = join(scratch, 'decode.safetensors');
    const shape = { batch: 1, heads: 1, queries: 1, keys: 512, dim: 32, format: 'bf16' } as const;
    await writeProblem(
      problem,
      filledProblem(shape, (i) => Math.sin(i * i)),
    );
    const words = ['--kernel', 'fa2', '--set', 'splits=auto', '--set', 'multiprocessors=10'];
    const only = ['--dimension', 'batch', '--up-to', 'batch=20'];
    const { status, report } = await searched(problem, ...words, ...only);
    expect(status).toBe(1);
    const { change } = report.dimensions[1];
    expect(change?.to).toBe((change?.from ?? 0) + 1);
  });
});

describe('a request that cannot be carried out', () => {
  it.each([
    [['--kernel', 'naive-fp32', '--runs', '1'], '--runs is 1'],
    [['--kernel', 'naive-fp32', '--up-to', 'splits=3'], '--up-to names no dimension'],
    [['--kernel', 'naive-fp32', '--up-to', 'batch=x'], '--up-to batch'],
    [['--kernel', 'naive-fp32', '--dimension', 'weather'], '--dimension names no dimension'],
    [['--kernel', 'naive-fp32', '--sequence', '7'], 'sequence 7 has no query'],
    [['--kernel', 'naive-fp32', '--splits', '1,2'], '--splits are asked of a command'],
    [[], 'there is no kernel'],
  ] as const)('is refused: %j', async (words, says) => {
    expect(await refusal('invariance', dense, ...words)).toContain(says);
  });

  inTurn('is one whose problem the kernel has no output of', async () => {
    expect(await refusal('invariance', dense, ...live('crash'))).toContain('no output');
    expect(await refusal('invariance', dense, '--exec', 'no-such-command-at-all')).toContain(
      'cannot be run',
    );
  });
});
