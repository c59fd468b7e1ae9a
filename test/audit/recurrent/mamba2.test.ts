import { describe, expect, it } from 'vitest';
import {
  applicableFaults,
  findRecurrentModel,
  roundingTo,
  runRecurrence,
  unrounded,
  type RecurrentFault,
} from '../../../kernels/index.js';
import { recurrentOracle } from '../../../oracles/index.js';
import { auditRecurrent } from '../../../src/audit/index.js';
import { recurrentWorstCase } from '../../../src/audit/recurrent/bounds/index.js';
import { arithmeticsOf } from '../../../src/audit/recurrent/declared-arithmetics.js';
import type { RecurrentProblem, RecurrentResults } from '../../../src/problem/index.js';
import { mamba2Problem, type DrawnMamba2 } from '../../setup/mamba2-problems.js';
import { tensor } from '../../setup/problems.js';

/** What a model gives, outputs in the format of x. */
function resultsOf(
  problem: RecurrentProblem,
  model: string,
  fault?: RecurrentFault,
): RecurrentResults {
  const arithmetic = findRecurrentModel(model)!.arithmetic(problem);
  const rounding = roundingTo(arithmetic);
  const { out, final_state: state } = runRecurrence(problem, arithmetic, rounding, { fault });
  const { valueHeads, keyDim, valueDim, sequences } = recurrentOracle(problem).shape;
  return {
    ...(out && { out: tensor(problem.v.format, problem.v.shape, (i) => out[i]) }),
    ...(state && {
      final_state: tensor(
        'fp32',
        [sequences.length, valueHeads, keyDim, valueDim],
        (i) => state[i],
      ),
    }),
  };
}

const drawn: DrawnMamba2 = {
  seed: 21,
  lengths: [90, 60],
  groups: 2,
  stateDim: 16,
  headDim: 16,
  dtLimit: [0.3, 3],
  bias: 1,
};

describe("Mamba-2's kernels", () => {
  it.each([
    ['naive-recurrent', { ...drawn }],
    ['chunked', { ...drawn }],
    ['naive-recurrent', { ...drawn, format: 'fp32', seed: 5 }],
    ['chunked', { ...drawn, format: 'fp16', seed: 6, hasWideD: true }],
    ['chunked', { ...drawn, has: { z: false, d: false }, dtLimit: [0, Infinity] }],
    ['naive-recurrent', { ...drawn, has: { softplus: false, dtBias: false }, dtFormat: 'fp32' }],
    ['naive-recurrent', { ...drawn, format: 'fp32', bias: -9, dtLimit: [0, Infinity] }],
    ['chunked', { ...drawn, bias: -14, dtLimit: [0, Infinity] }],
  ] as const)('of the model %s pass', (model, one) => {
    const problem = mamba2Problem(one as DrawnMamba2);
    const { verdict } = auditRecurrent(problem, { results: resultsOf(problem, model) });
    expect([verdict.status, verdict.sentence]).toEqual(['PASS', verdict.sentence]);
  });

  it('are judged by heads, as whole', () => {
    const problem = mamba2Problem(drawn);
    const { shape, quantities } = auditRecurrent(problem, {
      results: resultsOf(problem, 'chunked'),
    });
    expect(shape).toMatchObject({ keyHeads: 2, valueHeads: 4 });
    expect(quantities.map(({ quantity }) => quantity.name)).toEqual(['out', 'final_state']);
  });
});

describe('a kernel with a fault', () => {
  const problem = mamba2Problem(drawn);
  const faults = applicableFaults({ problem, chunk: 64 }).filter(
    ({ id, isOfMamba2 }) => isOfMamba2 === true || id === 'key-heads-interleaved',
  );

  it.each(faults.map((fault) => [fault.id, fault] as const))(
    'fails, and its cause is %s',
    (id, fault) => {
      const results = resultsOf(problem, 'chunked', fault);
      const declared = { form: 'chunked', chunk: 64 } as const;
      const { verdict } = auditRecurrent(problem, { results }, { declared });
      const { status, diagnosis } = verdict;
      expect([id, status]).toEqual([id, 'FAIL']);
      expect([diagnosis?.id, ...(diagnosis?.equivalents ?? [])]).toContain(id);
    },
    60_000,
  );
});

describe('the worst case', () => {
  /** Each rounding of Δ and of what comes behind it goes one way, as far as a format lets it. */
  function adversary(problem: RecurrentProblem, sign: number) {
    const [arithmetic] = arithmeticsOf(problem, { form: 'recurrent' });
    const results = runRecurrence(problem, arithmetic, {
      ...unrounded,
      value: (of, values, first, end) => {
        if (of !== 'time-step' && of !== 'gates') return;
        for (let i = first; i < end; i++) values[i] *= 1 + sign * 2 ** -24;
      },
    });
    return { arithmetic, results };
  }

  it.each([-20, -12, -7, -3, 1, 6, 25])(
    'holds kernels whose Δ is rounded one way, dt_bias about %d',
    (bias) => {
      const { z, d, ...rest } = { z: false, d: false, softplus: true };
      const problem = mamba2Problem({ ...drawn, format: 'fp32', bias, has: { z, d, ...rest }, dtLimit: [0, Infinity] });
      const { out } = recurrentOracle(problem);
      for (const sign of [1, -1]) {
        const { arithmetic, results } = adversary(problem, sign);
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

  it('grows with what the gate and D make of the output', () => {
    const problem = mamba2Problem({ ...drawn, format: 'fp32', has: { state: false } });
    const [arithmetic] = arithmeticsOf(problem, { form: 'recurrent' });
    const { out } = recurrentOracle(problem);
    const bounds = recurrentWorstCase(problem, arithmetic).out!;
    const kernel = runRecurrence(problem, arithmetic, roundingTo(arithmetic)).out!;
    let most = 0;
    kernel.forEach((x, i) => (most = Math.max(most, Math.abs(x - out.values[i]) / bounds[i])));
    expect(most).toBeLessThan(1);
    expect(most).toBeGreaterThan(0.01);
  });
});
