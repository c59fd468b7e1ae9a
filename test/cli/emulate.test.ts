import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTensorFile, writeSafetensors } from '../../src/io/index.js';
import { builtDist } from '../setup/built-dist.js';
import { turns } from '../setup/turns.js';
import { fewQueriesOf, writeFewQueries } from './few-queries.js';
import { refusal, runInProcess } from './run-in-process.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-emulate-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const fixture = fewQueriesOf;

describe('flashproof emulate', () => {
  let main = '';
  beforeAll(async () => {
    main = join(await builtDist(), 'src/cli/main.js');
  });
  const spawned = (...args: string[]) =>
    spawnSync(process.execPath, [main, ...args], { encoding: 'utf8' });

  inTurn.each(['fa4', 'naive-fp32'])('%s saves the same whatever the threads', async (model) => {
    const tensors = [];
    for (const threads of ['1', '2']) {
      const path = join(scratch, `${model}-${threads}.safetensors`);
      const words = ['emulate', model, fixture, '--save', path, '--threads', threads];
      const { status, stderr } = threads === '1' ? await runInProcess(...words) : spawned(...words);
      expect(stderr).toBe('');
      expect(status).toBe(0);
      const file = await openTensorFile(path);
      const names = ['out', 'lse', ...(model === 'fa4' ? ['rescales'] : [])];
      expect([...file.entries.keys()].sort()).toEqual([...names].sort());
      tensors.push(await Promise.all(names.map((name) => file.sha256(name))));
      await file.close();
    }
    expect(tensors[0]).toEqual(tensors[1]);
  });

  it('prints settings, counters and evidence, as text and as JSON', async () => {
    const emulated = ['emulate', 'fa4', fixture, '--threads', '1'];
    const text = await runInProcess(...emulated, '--set', 'rescale.threshold=0');
    expect(text.stdout).toMatch(/^fa4: out bf16 \[1, 200, 64\] in /);
    expect(text.stdout).toMatch(/rescale\.threshold +0\n/);
    expect(text.stdout).toContain('matrix products: [model]');
    const { stdout } = await runInProcess(...emulated, '--json', '-');
    expect(JSON.parse(stdout)).toMatchObject({
      kind: 'emulate',
      kernel: 'fa4',
      saved: null,
      settings: { 'rescale.threshold': 8 },
      counters: { mmas: 2 * 3 * (4 + 8) },
    });
  });

  it('lists the models with their settings', async () => {
    const { stdout, status } = await runInProcess('emulate', 'list');
    expect(status).toBe(0);
    expect(stdout).toMatch(/^fa4 /m);
    expect(stdout).toMatch(/^naive-input /m);
    expect(stdout).toContain('exp2.degree');
  });

  inTurn('judges an emulated kernel', async () => {
    const json = join(scratch, 'audit.json');
    const problem = join(scratch, 'few-queries.safetensors');
    await writeFewQueries(problem);
    const audited = ['audit', problem, '--kernel', 'fa4', '--threads', '1', '--quiet'];
    const good = await runInProcess(...audited, '--json', json);
    expect(good.stdout).toMatch(/^PASS/);
    expect(good.status).toBe(0);
    const report = JSON.parse(readFileSync(json, 'utf8')) as { inputs: { command: string } };
    expect(report.inputs.command).toBe('flashproof emulate fa4');
    // A polynomial of degree 1 is what the model says that it has; a bug is not.
    const coarse = await runInProcess(...audited, '--set', 'exp2.degree=1');
    expect(coarse.status).toBe(0);
    const offset = await runInProcess(...audited, '--set', 'variant=lse-base-2');
    expect(offset.stdout).toMatch(/^FAIL/);
    expect(offset.status).toBe(1);
  });

  inTurn('refuses what it cannot do, and writes nothing', async () => {
    const nan = join(scratch, 'fp32.safetensors');
    const tensor = { format: 'fp32' as const, shape: [1, 1, 1], data: new Float32Array(1) };
    await writeSafetensors(nan, { q: tensor, k: tensor, v: tensor });
    const saved = join(scratch, 'never.safetensors');
    const cases: readonly (readonly [readonly string[], RegExp])[] = [
      [
        ['emulate', 'fa4', nan, '--save', saved],
        /q is fp32; the fa4 model takes bf16, fp16, e4m3, e5m2/,
      ],
      [['emulate', 'fa5', fixture], /no kernel model "fa5"; did you mean fa4; there are fa4/],
      [['emulate', 'fa4'], /name a problem for fa4/],
      [['emulate', 'fa4', fixture, '--set', 'exp2'], /--set is "exp2"; give <key>=<value>/],
      [['emulate', 'fa4', fixture, '--set', 'a=1'], /has no setting "a"; it has architecture/],
      [['emulate', 'naive-fp32', fixture, '--set', 'a=1'], /has no setting "a"; it has none/],
      [['audit', fixture, '--set', 'a=1'], /name one with --kernel/],
      [['audit', fixture, '--kernel', 'fa4', '--output', ':fa4.out'], /leave out --output/],
    ];
    for (const [args, message] of cases) {
      const words = await refusal(...args);
      expect(words).toMatch(message);
      expect(words).not.toContain('\n');
    }
    const [args, message] = cases[0];
    const { status, stderr, stdout } = spawned(...args);
    expect(stderr).toMatch(message);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stdout).toBe('');
    expect(status).toBe(2);
    expect(existsSync(saved)).toBe(false);
  });
});
