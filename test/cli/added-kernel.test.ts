import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { kernelModels } from '../../kernels/index.js';
import { scoreProblem } from '../../properties/index.js';
import { writeSafetensors } from '../../src/io/index.js';
import { toyModel } from '../kernels/toy-kernel.js';
import { testSeed } from '../setup/effort.js';
import { runInProcess, runInProcessWith } from './run-in-process.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-added-'));
afterAll(() => rmSync(scratch, { recursive: true }));

const path = join(scratch, 'problem.safetensors');
const outputs = join(scratch, 'outputs.safetensors');
const given = ['--output', `${outputs}:out`, '--lse', `${outputs}:lse`];
const run = (...args: string[]) =>
  runInProcessWith({ models: [...kernelModels, toyModel] }, ...args);

beforeAll(async () => {
  const sizes = { queries: 20, keys: 40, dim: 16 };
  const { q, k, v } = scoreProblem('normal-1', { ...sizes, format: 'fp32', seed: testSeed });
  await writeSafetensors(path, { q, k, v }, {});
  const { stdout } = await run('emulate', 'toy', path, '--save', outputs);
  expect(stdout).toMatch(/^toy: out fp32 /);
});

it('is in the list of models', async () => {
  expect((await run('emulate', 'list')).stdout).toContain(`\ntoy  ${toyModel.description}`);
  expect((await runInProcess('emulate', 'list')).stdout).not.toContain('toy');
});

it('is not known where nobody adds it', async () => {
  await expect(runInProcess('emulate', 'toy', path)).rejects.toThrow(/no kernel model "toy"/);
  await expect(runInProcess('audit', path, ...given, '--as', 'toy')).rejects.toThrow(/--as is/);
});

it('has bounds', async () => {
  const { stdout } = await run('bound', path, '--kernel', 'toy', '--set', 'blockKeys=4');
  expect(stdout).toContain('toy: fp32, sums by blocks');
});

it('is audited as it runs, and by its outputs', async () => {
  const own = await run('audit', path, '--kernel', 'toy', '--json', '-');
  expect(own.status).toBe(0);
  expect(JSON.parse(own.stdout)).toMatchObject({ techniques: { kernel: 'toy' } });
  const read = await run('audit', path, ...given, '--as', 'toy', '--quiet');
  expect(read.status).toBe(0);
  expect(read.stdout).toMatch(/^PASS/);
});

it('is told from the others', async () => {
  const { stdout } = await run('audit', path, ...given, '--identify');
  expect(stdout).toMatch(/toy/);
});

it('is checked', async () => {
  const words = ['--runs', '1', '--seed', '1', '--property', 'within-bound', '--quiet'];
  const { status } = await run('check', '--kernel', 'toy', ...words);
  expect(status).toBe(0);
});
