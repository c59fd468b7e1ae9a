import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BackwardModel, kernelModels, runBackward } from '../../kernels/index.js';
import { writeSafetensors } from '../../src/io/index.js';
import { type BoundReport } from '../../src/report/json/index.js';
import { validateBoundReport } from '../../src/report/validation/index.js';
import { normalCase } from '../audit/gradients/gradient-case.js';
import { refusal, runInProcess, runInProcessWith } from './run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const folder = mkdtempSync(join(tmpdir(), 'flashproof-bound-gradients-'));
const path = (name: string) => join(folder, `${name}.safetensors`);
const { problem, dout, exact } = normalCase(
  { heads: 2, kvHeads: 1, queries: 24, keys: 32, dim: 16 },
  5,
  { causal: true },
);
const { q, k, v } = problem;
const notes = { scale: String(problem.scale), causal: 'true' };

beforeAll(async () => {
  await writeSafetensors(path('training'), { q, k, v, dout }, notes);
  await writeSafetensors(path('forward'), { q, k, v, 'mine.do': dout, short: k }, notes);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const words = (name: string, ...args: string[]) =>
  ['bound', path(name), '--threads', '1', ...args] as const;

async function boundedOf(...args: string[]): Promise<BoundReport> {
  const { stdout, status } = await runInProcess(...words('training', ...args, '--json', '-'));
  expect(status).toBe(0);
  const report = JSON.parse(stdout) as BoundReport;
  await validateBoundReport(report);
  return report;
}

/** What all techniques may do to an element at worst, by gradient. */
const worstOf = ({ gradients }: BoundReport) =>
  Object.fromEntries(
    gradients!.gradients.map(({ name, techniques }) => [name, Number(techniques.total.worst)]),
  );

describe('flashproof bound --backward', () => {
  inTurn('bounds every gradient technique by technique, as text and as JSON', async () => {
    const any = await boundedOf('--backward');
    expect(any.gradients).toMatchObject({ arithmetic: 'any correct kernel', format: 'bf16' });
    expect(any.gradients!.gradients.map(({ name }) => name)).toEqual(['dq', 'dk', 'dv']);
    const own = await boundedOf('--backward', '--as', 'naive-fp32');
    expect(own.gradients!.arithmetic).toBe('the textbook kernel in fp32');
    // Who knows the kernel knows more; and what it gives stays within, on the average all the more.
    const made = runBackward('naive-fp32', problem, { dout });
    for (const name of ['dq', 'dk', 'dv'] as const) {
      expect(worstOf(own)[name]).toBeLessThan(worstOf(any)[name]!);
      const values = new Float32Array(
        Uint32Array.from(made[name].data as Uint16Array, (pattern) => pattern << 16).buffer,
      );
      const off = values.reduce((sum, x, i) => sum + Math.abs(x - exact[name][i]), 0);
      expect(off / values.length).toBeLessThan(worstOf(own)[name]!);
      expect(off).toBeGreaterThan(0);
    }
    const { stdout } = await runInProcess(...words('training', '--backward'));
    for (const label of ['dQ', 'dK', 'dV'])
      expect(stdout).toMatch(new RegExp(`^Techniques of ${label} `, 'm'));
    expect(stdout.replace(/\s+/g, ' ')).toContain(
      'Bounds of any correct kernel of gradients in bf16',
    );
  });

  it('leaves gradients out where they are not asked for', async () => {
    expect((await boundedOf()).gradients).toBeNull();
  });

  inTurn('takes premises, a format, dO from elsewhere and settings of either pass', async () => {
    const declared = await boundedOf('--backward', '--gradient-premise', 'dp=input');
    const any = await boundedOf('--backward');
    expect(worstOf(declared)['dq']).toBeGreaterThan(worstOf(any)['dq']!);
    expect(worstOf(declared)['dv']).toBe(worstOf(any)['dv']);
    const wide = await boundedOf('--backward', '--output-format', 'fp32');
    expect(wide.gradients!.format).toBe('fp32');
    const naive = kernelModels.find(({ name }) => name === 'naive-fp32')!;
    const seen: unknown[] = [];
    const model = {
      ...naive,
      name: 'mine',
      backward: {
        ...naive.backward!,
        settings: [{ key: 'order', description: 'of additions' }],
        arithmetic: (...[posed, settings]: Parameters<BackwardModel['arithmetic']>) => {
          seen.push(settings.get('order'));
          return naive.backward!.arithmetic(posed, new Map());
        },
      },
    };
    const args = words('forward', '--kernel', 'mine', '--set', 'order=any');
    const context = { models: [model] };
    await runInProcessWith(context, ...args, '--backward', '--dout', ':mine.do');
    expect(seen).toEqual(['any']);
    await expect(runInProcessWith(context, ...args)).rejects.toThrow(/has no setting "order"/);
  });

  it('refuses what it cannot bound', async () => {
    const cases = [
      ['forward', ['--backward'], /has no tensor "dout" or "do".*, which --backward begins with/],
      [
        'training',
        ['--backward', '--kernel', 'fa4', '--set', 'backward.blockQueries=7'],
        /^backward.blockQueries is 7; give a multiple of 16/,
      ],
      ['training', ['--dout', ':dout'], /^--dout is for the backward pass; add --backward$/],
      [
        'training',
        ['--gradient-premise', 'dp=bf16'],
        /^--gradient-premise is for the backward pass; add --backward$/,
      ],
      ['training', ['--backward', '--gradient-premise', 'x=1'], /--gradient-premise/],
      ['training', ['--backward', '--rows', '8'], /^--backward bounds gradients, to which every/],
      ['forward', ['--backward', '--dout', ':short'], /shape \[1, 1, 32, 16\]/],
    ] as const;
    for (const [name, args, message] of cases) {
      const said = await refusal(...words(name, ...args));
      expect(said).toMatch(message);
      expect(said).not.toContain('\n');
    }
    const naive = kernelModels.find(({ name }) => name === 'naive-fp32')!;
    const forwards = { models: [{ ...naive, name: 'forwards', backward: null }] };
    await expect(
      runInProcessWith(forwards, ...words('training', '--backward', '--kernel', 'forwards')),
    ).rejects.toThrow(/^forwards has no backward pass/);
  });
});
