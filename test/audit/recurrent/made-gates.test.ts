import { describe, expect } from 'vitest';
import {
  applicableFaults,
  emulateRecurrence,
  findRecurrentModel,
  runRecurrence,
  unrounded,
} from '../../../kernels/index.js';
import { gateRecurrence, recurrentOracle } from '../../../oracles/index.js';
import { auditRecurrent } from '../../../src/audit/index.js';
import { recurrentWorstCase } from '../../../src/audit/recurrent/bounds/index.js';
import { arithmeticsOf } from '../../../src/audit/recurrent/declared-arithmetics.js';
import type { RecurrentProblem } from '../../../src/problem/index.js';
import { madeGateProblem, type DrawnGates } from '../../setup/made-gates.js';
import { tensor } from '../../setup/problems.js';
import { turns } from '../../setup/turns.js';

const it = turns(import.meta.url);

/** What a model gives, in its formats. */
const resultsOf = (
  problem: RecurrentProblem,
  model: string,
  options: Parameters<typeof emulateRecurrence>[2] = {},
) => emulateRecurrence(problem, findRecurrentModel(model)!.arithmetic(problem), options);

const drawn: DrawnGates = {
  seed: 21,
  family: 'gated-delta',
  lengths: [90, 60],
  keyHeads: 2,
  keyDim: 16,
  valueDim: 16,
  bias: -2,
};

describe('kernels that make gates and write strengths', () => {
  it.each([
    ['naive-recurrent', drawn],
    ['chunked', drawn],
    ['naive-recurrent', { ...drawn, family: 'kda', seed: 4 }],
    ['chunked', { ...drawn, family: 'kda', seed: 5 }],
    ['chunked', { ...drawn, family: 'gla', format: 'fp16', seed: 6 }],
    [
      'naive-recurrent',
      { ...drawn, family: 'simple-gla', format: 'fp32', hasBias: false, bias: -6 },
    ],
    ['naive-recurrent', { ...drawn, format: 'fp32', bias: 6 }],
    ['naive-recurrent', { ...drawn, format: 'fp32', bias: -14 }],
  ] as const)('of the model %s pass', (model, one) => {
    const problem = madeGateProblem(one as DrawnGates);
    const { verdict } = auditRecurrent(problem, { results: resultsOf(problem, model) });
    expect([verdict.status, verdict.sentence]).toEqual(['PASS', verdict.sentence]);
  });

  it('are not judged by gradients', () => {
    const problem = madeGateProblem(drawn);
    const zeros = (shape: readonly number[]) => tensor('bf16', shape, () => 0);
    const gradientInputs = { dout: zeros(problem.v.shape) };
    const judge = (results: object) => () => auditRecurrent(problem, { results, gradientInputs });
    expect(judge({ dv: zeros(problem.v.shape) })).toThrow(
      'gradients beside A_log, b or gates of base 2 are not judged, and dv is one; give g and beta',
    );
    expect(judge({ dg: zeros([1, 150, 4]) })).toThrow(
      'there is dg, which gated-delta here has not',
    );
  });
});

describe.each(['gated-delta', 'kda'] as const)('a kernel of %s with a fault', (family) => {
  // Short sequences, as gates above 0 make states grow.
  const problem = madeGateProblem({ ...drawn, family, lengths: [14, 9], bias: 0.3 });
  const faults = applicableFaults({ problem, chunk: 64 }).filter(
    ({ id, isOutside }) => isOutside === true || id === 'beta-missing' || id === 'decay-missing',
  );

  it.each(faults.map((fault) => [fault.id, fault] as const))(
    'fails, and its cause is %s',
    (id, fault) => {
      const results = resultsOf(problem, 'chunked', { fault });
      const declared = { form: 'chunked', chunk: 64 } as const;
      const { verdict } = auditRecurrent(problem, { results }, { declared });
      const { status, diagnosis } = verdict;
      expect([id, status]).toEqual([id, 'FAIL']);
      expect([diagnosis?.id, ...(diagnosis?.equivalents ?? [])]).toContain(id);
    },
    60_000,
  );

  it('has all that are known of gates', () => {
    expect(faults.filter(({ isOutside }) => isOutside).length).toBe(11);
  });
});

describe('the worst case', () => {
  /** Each rounding of what gates and write strengths are made of goes one way, as far as fp32 lets it. */
  function adversary(problem: RecurrentProblem, form: 'recurrent' | 'chunked', sign: number) {
    const [arithmetic] = arithmeticsOf(problem, { form, chunk: 16, intermediate: 'fp32' });
    const results = runRecurrence(problem, arithmetic, {
      ...unrounded,
      value: (of, values, first, end) => {
        if (of !== 'time-step' && of !== 'gates' && of !== 'decay') return;
        for (let i = first; i < end; i++) values[i] *= 1 + sign * 2 ** -24;
      },
    });
    return { arithmetic, results };
  }

  it.each([
    ...[-20, -7, -3, 1, 6, 25].map((bias) => ['gated-delta', 'recurrent', bias] as const),
    ...[-7, 1].map((bias) => ['gated-delta', 'chunked', bias] as const),
    ...[-7, 1].map((bias) => ['kda', 'recurrent', bias] as const),
    ...[-7, 1].map((bias) => ['kda', 'chunked', bias] as const),
  ])(
    'of %s, %s, holds kernels whose roundings go one way, dt_bias about %d',
    (family, form, bias) => {
      const problem = madeGateProblem({ ...drawn, family, lengths: [40], format: 'fp32', bias });
      const { out } = recurrentOracle(problem);
      for (const sign of [1, -1]) {
        const { arithmetic, results } = adversary(problem, form, sign);
        const bounds = recurrentWorstCase(problem, arithmetic).out!;
        let most = 0;
        out.values.forEach((exact, i) => {
          most = Math.max(most, Math.abs(results.out![i] - exact) / (bounds[i] + out.radius[i]));
        });
        expect(most).toBeLessThanOrEqual(1);
        // Not without reason so large.
        expect(most).toBeGreaterThan(1e-3);
      }
    },
  );

  it.each([
    ['gated-delta', 'recurrent', 'b'],
    ['gated-delta', 'chunked', 'b'],
    ['kda', 'chunked', 'b'],
    ['gated-delta', 'chunked', 'b behind one write'],
    ['kda', 'chunked', 'b behind one write'],
    ['gated-delta', 'recurrent', 'a'],
    ['gated-delta', 'chunked', 'a'],
    ['kda', 'recurrent', 'a'],
    ['kda', 'chunked', 'a'],
    ['gla', 'recurrent', 'a'],
  ] as const)('of %s, %s, follows what %s is made to with few bits', (family, form, made) => {
    const drawnProblem = madeGateProblem({
      ...drawn,
      family,
      lengths: [40],
      format: 'fp32',
      bias: 1,
    });
    // What the other is made of is given, so that nothing else has few bits.
    const plain = gateRecurrence(drawnProblem);
    const problem: RecurrentProblem = { ...drawnProblem };
    const changed: { -readonly [Key in keyof RecurrentProblem]: RecurrentProblem[Key] } = problem;
    if (made !== 'a') {
      delete changed.gateInputs;
      changed.g = plain.g!;
      if (made !== 'b') {
        // Only what a chunk wrote before is lacked by later tokens.
        delete changed.initialState;
        const first = 4 * 16;
        const { v } = problem;
        changed.v = tensor('fp32', v.shape, (i) => (i < first ? 1 + (i % 7) : 0));
        changed.g = tensor('fp32', plain.g!.shape, () => -0.01);
      }
    } else if (drawnProblem.strengthLogits) {
      delete changed.strengthLogits;
      changed.beta = plain.beta!;
    }
    const [usual] = arithmeticsOf(problem, { form, chunk: 16, intermediate: 'fp32' });
    const arithmetic = { ...usual, formats: { ...usual.formats, 'time-step': 'bf16' } } as const;
    const { out } = recurrentOracle(problem);
    const bounds = recurrentWorstCase(problem, arithmetic).out!;
    for (const sign of [1, -1]) {
      let calls = 0;
      const results = runRecurrence(problem, arithmetic, {
        ...unrounded,
        value: (of, values, first, end) => {
          if (of !== 'time-step') return;
          // 1 + e^−b and its reciprocal go opposite ways, lest they cancel.
          const sense = made !== 'a' && calls++ % 2 === 0 ? -sign : sign;
          for (let i = first; i < end; i++) values[i] *= 1 + sense * 2 ** -9;
        },
      });
      let most = 0;
      out.values.forEach((exact, i) => {
        most = Math.max(most, Math.abs(results.out![i] - exact) / (bounds[i] + out.radius[i]));
      });
      expect(most).toBeLessThanOrEqual(1);
      expect(most).toBeGreaterThan(0.002);
    }
  });

  it('does not hold a β of fewer bits', () => {
    const problem = madeGateProblem({ ...drawn, lengths: [20], format: 'fp32', bias: -3 });
    for (const form of ['recurrent', 'chunked'] as const) {
      const [arithmetic] = arithmeticsOf(problem, { form, chunk: 16, intermediate: 'fp32' });
      const { out } = recurrentOracle(problem);
      // A β that is 2^-16 too large is far beyond what fp32 makes of it.
      const wrong = runRecurrence(problem, arithmetic, {
        ...unrounded,
        value: (of, values, first, end) => {
          if (of === 'time-step') for (let i = first; i < end; i++) values[i] *= 1 + 2 ** -16;
        },
      });
      const bounds = recurrentWorstCase(problem, arithmetic).out!;
      const isBeyond = out.values.some((x, i) => Math.abs(wrong.out![i] - x) > bounds[i]);
      expect([form, isBeyond]).toEqual([form, true]);
    }
  });
});
