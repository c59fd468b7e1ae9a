import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type KernelModel, kernelModels, runBackward } from '../../kernels/index.js';
import { writeSafetensors } from '../../src/io/index.js';
import { type AuditReport, type ModelMatch } from '../../src/report/json/index.js';
import { validateReport } from '../../src/report/validation/index.js';
import { normalCase } from '../audit/gradients/gradient-case.js';
import { encode } from '../audit/damage.js';
import { refusal, runInProcess, runInProcessWith } from './run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const folder = mkdtempSync(join(tmpdir(), 'flashproof-model-matches-'));
const path = (name: string) => join(folder, `${name}.safetensors`);
const { problem, dout, exact, shapes } = normalCase(
  { heads: 2, kvHeads: 1, queries: 24, keys: 32, dim: 16 },
  5,
  { causal: true },
);
const { q, k, v } = problem;
const notes = { scale: String(problem.scale), causal: 'true' };
const naive = kernelModels.find(({ name }) => name === 'naive-fp32')!;
const { forward, dq, dk, dv } = runBackward(naive, problem, { dout });
/** One bit of one element of dV. */
const flipped = { ...dv, data: (dv.data as Uint16Array).map((x, i) => (i === 7 ? x ^ 1 : x)) };

beforeAll(async () => {
  const inputs = { q, k, v, dout };
  const write = (name: string, tensors: Parameters<typeof writeSafetensors>[1]) =>
    writeSafetensors(path(name), { ...inputs, ...tensors }, notes);
  await write('own', { ...forward, dq, dk, dv });
  await write('flipped', { ...forward, dq, dk, dv: flipped });
  await write('alone', { dq, dk });
  const wide = encode(exact.dq, 'fp32', shapes.dq);
  await write('wide', { ...forward, dq: wide });
  const input = runBackward('naive-input', problem, { dout });
  await write('input', { dq: input.dq, dk: input.dk, dv: input.dv });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const words = (name: string, ...args: string[]) =>
  ['audit', path(name), '--threads', '1', '--no-techniques', ...args] as const;

async function modelsOf(stdout: string): Promise<readonly ModelMatch[]> {
  const report = JSON.parse(stdout) as AuditReport;
  await validateReport(report);
  return report.gradients!.models;
}

describe('flashproof audit --as, of gradients', () => {
  inTurn('judges them by what the model says, and compares every bit', async () => {
    const page = join(folder, 'own.html');
    const args = words('own', '--as', 'naive-fp32', '--html', page);
    const { stdout, status } = await runInProcess(...args);
    expect(status).toBe(0);
    expect(stdout.replace(/\s+/g, ' ')).toContain(
      'These are the gradients of naive-fp32, in every bit.',
    );
    expect(stdout).toContain('Bounds of the textbook kernel in fp32');
    expect(readFileSync(page, 'utf8')).toContain('Kernel models, bit for bit');
    const { stdout: json } = await runInProcess(...args, '--json', '-');
    expect(await modelsOf(json)).toEqual([
      {
        model: 'naive-fp32',
        settings: {},
        forward: 'given',
        reason: null,
        gradients: [
          ['dq', 'dQ', 768],
          ['dk', 'dK', 512],
          ['dv', 'dV', 512],
        ].map(([name, label, elements]) => ({
          name,
          label,
          elements,
          equal: elements,
          someOrder: 0,
          undecided: 0,
          noOrder: 0,
          likeness: null,
        })),
      },
    ]);
  });

  inTurn('counts the elements that differ, and says whose forward pass it read', async () => {
    const { stdout } = await runInProcess(...words('flipped', '--as', 'naive-fp32', '--json', '-'));
    const [{ gradients }] = await modelsOf(stdout);
    expect(gradients.map(({ noOrder }) => noOrder)).toEqual([0, 0, 1]);
    const text = await runInProcess(...words('flipped', '--as', 'naive-fp32'));
    expect(text.stdout.replace(/\s+/g, ' ')).toContain(
      'These are not the bits of naive-fp32: of 1,792 elements 1 differ.',
    );
    const alone = await runInProcess(...words('alone', '--as', 'naive-fp32', '--json', '-'));
    const [match] = await modelsOf(alone.stdout);
    expect(match.forward).toBe('own');
    expect(match.gradients.map(({ name, equal }) => [name, equal])).toEqual([
      ['dq', 768],
      ['dk', 512],
    ]);
  });

  inTurn('asks a model without a fixed order whether some order gives what differs', async () => {
    const asked: unknown[] = [];
    const { prepare, ...rest } = naive.backward!;
    const model: KernelModel = {
      ...naive,
      name: 'atomic',
      backward: {
        ...rest,
        prepare: (...given) => ({
          ...prepare(...given),
          someOrder: (piece, patterns) => {
            asked.push(piece);
            const all = (given: object | null, equal: number, someOrder: number) =>
              given === null ? null : { equal, someOrder, undecided: 0, noOrder: 0 };
            const { dq, dk, dv } = patterns;
            return { dq: all(dq, 768, 0), dk: all(dk, 512, 0), dv: all(dv, 511, 1) };
          },
        }),
      },
    };
    const run = (name: string, ...args: string[]) =>
      runInProcessWith({ models: [model] }, ...words(name, '--as', 'atomic', ...args));
    const [match] = await modelsOf((await run('flipped', '--json', '-')).stdout);
    expect(match.gradients[2]).toMatchObject({ equal: 511, someOrder: 1, noOrder: 0 });
    expect(asked).toEqual([0]);
    const text = (await run('flipped')).stdout.replace(/\s+/g, ' ');
    expect(text).toContain(
      'These are gradients of atomic, in every bit, by an order of its additions',
    );
    // Nothing differs, so that nobody is asked; and too much, so that orders do not explain it.
    await run('own');
    const [other] = await modelsOf((await run('input', '--json', '-')).stdout);
    expect(other.gradients.some(({ undecided }) => undecided > 0)).toBe(true);
  });

  it('says why bits cannot be compared, and refuses a model of the forward pass for gradients alone', async () => {
    const { stdout } = await runInProcess(...words('wide', '--as', 'naive-fp32', '--json', '-'));
    expect(await modelsOf(stdout)).toMatchObject([
      {
        forward: null,
        reason: 'dq is fp32, and naive-fp32 gives bf16; their bits cannot be compared',
        gradients: [],
      },
    ]);
    expect(await refusal(...words('alone', '--as', 'fa1'))).toMatch(
      /^fa1 has no backward pass; choose a model that has one$/,
    );
    const both = await runInProcess(...words('own', '--as', 'eager', '--json', '-'));
    expect(await modelsOf(both.stdout)).toEqual([]);
  });
});

describe('flashproof audit --identify, of gradients', () => {
  inTurn(
    'tells the model whose gradients they are, and why others cannot be compared',
    async () => {
      const { stdout } = await runInProcess(...words('input', '--identify', '--json', '-'));
      const models = await modelsOf(stdout);
      expect(models[0]).toMatchObject({ model: 'naive-input', forward: 'own', reason: null });
      expect(models[0].gradients.every(({ equal, elements }) => equal === elements)).toBe(true);
      const other = models.find(({ model }) => model === 'naive-fp32')!;
      for (const { likeness } of other.gradients)
        expect(likeness!.equalMisrounded / likeness!.misrounded).toBeLessThan(0.5);
      const names = new Set(models.map(({ model }) => model));
      expect([...names].sort()).toEqual(
        kernelModels
          .filter(({ backward }) => backward !== null)
          .map(({ name }) => name)
          .sort(),
      );
      // Below head dimension 128 one CTA is what fa4 has anyway.
      const ofFa4 = models.filter(({ model }) => model === 'fa4').map(({ settings }) => settings);
      expect(ofFa4).toHaveLength(2);
      expect(ofFa4).toEqual(expect.arrayContaining([{}, { deterministic: 'true' }]));
      const text = await runInProcess(...words('input', '--identify'));
      expect(text.stdout).toMatch(/^Bit for bit/m);
      expect(text.stdout.replace(/\s+/g, ' ')).toContain('These are the gradients of naive-input');
    },
  );

  inTurn('stands beside what is said of the output', async () => {
    const { stdout } = await runInProcess(...words('own', '--identify'));
    expect(stdout).toContain('not correctly rounded. Likeness');
    expect(stdout.replace(/\s+/g, ' ')).toContain('These are the gradients of naive-fp32');
  });
});
