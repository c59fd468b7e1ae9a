import { describe, expect } from 'vitest';
import {
  applicableFaults,
  findRecurrentModel,
  roundingTo,
  runRecurrence,
  unrounded,
  type RecurrentRunOptions,
} from '../../../kernels/index.js';
import { recurrentOracle } from '../../../oracles/index.js';
import { auditRecurrent } from '../../../src/audit/index.js';
import { recurrentWorstCase } from '../../../src/audit/recurrent/bounds/index.js';
import { arithmeticsOf } from '../../../src/audit/recurrent/declared-arithmetics.js';
import {
  recurrentQuantityNames,
  recurrentQuantityShape,
  recurrentShape,
  type RecurrentProblem,
  type RecurrentResults,
} from '../../../src/problem/index.js';
import { drawnInputs } from '../../oracles/recurrent/drawn-recurrences.js';
import { mamba2Problem, type DrawnMamba2 } from '../../setup/mamba2-problems.js';
import { tensor } from '../../setup/problems.js';
import { turns } from '../../setup/turns.js';

const it = turns(import.meta.url);

/** What a model gives, in its formats. */
function resultsOf(
  problem: RecurrentProblem,
  model: string,
  { fault, gradientInputs }: RecurrentRunOptions = {},
): RecurrentResults {
  const arithmetic = findRecurrentModel(model)!.arithmetic(problem);
  const options = { fault, gradientInputs };
  const values = runRecurrence(problem, arithmetic, roundingTo(arithmetic), options);
  const shape = recurrentShape(problem);
  return Object.fromEntries(
    recurrentQuantityNames.flatMap((name) => {
      const sizes = recurrentQuantityShape(name, problem, shape);
      const of = values[name];
      if (sizes === null || of === undefined) return [];
      return [[name, tensor(arithmetic.outputs[name] ?? 'fp32', sizes, (i) => of[i])] as const];
    }),
  );
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
    expect(quantities.map(({ quantity }) => quantity.name)).toEqual(['out', 'final_states']);
  });
});

describe('a kernel with a fault', () => {
  const problem = mamba2Problem(drawn);
  const faults = applicableFaults({ problem, chunk: 64 }).filter(
    ({ id, isOutside, isOfGradients }) =>
      (isOutside === true && !isOfGradients) || id === 'key-heads-interleaved',
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
});

describe('gradients', () => {
  const ungated: DrawnMamba2 = { ...drawn, lengths: [70, 25], has: { z: false } };

  it.each([
    ['naive-recurrent', ungated],
    ['chunked', ungated],
    ['chunked', { ...ungated, format: 'fp32', hasWideD: true, dtLimit: [0, Infinity], bias: -3 }],
    ['naive-recurrent', { ...ungated, format: 'fp16', has: { z: false, d: false, dtBias: false } }],
    ['chunked', { ...ungated, bias: -9, dtLimit: [0, Infinity] }],
  ] as const)('of the model %s pass', (model, one) => {
    const problem = mamba2Problem(one as DrawnMamba2);
    const gradientInputs = drawnInputs(problem, 5);
    const results = resultsOf(problem, model, { gradientInputs });
    const { verdict, quantities } = auditRecurrent(problem, { results, gradientInputs });
    expect([verdict.status, verdict.sentence]).toEqual(['PASS', verdict.sentence]);
    expect(quantities.map(({ quantity }) => quantity.label)).toEqual(
      expect.arrayContaining(['dC', 'dB', 'dx', 'ddt', 'dA', 'dS_0']),
    );
  });

  const problem = mamba2Problem(ungated);
  const gradientInputs = drawnInputs(problem, 5);
  const faults = applicableFaults({ problem, chunk: 64, gradientInputs }).filter(
    ({ isOutside, isOfGradients }) => isOutside === true && isOfGradients,
  );

  it.each(faults.map((fault) => [fault.id, fault] as const))(
    'of a kernel with the fault %s fail, and that is the cause',
    (id, fault) => {
      const results = resultsOf(problem, 'chunked', { fault, gradientInputs });
      const declared = { form: 'chunked', chunk: 64 } as const;
      const { verdict } = auditRecurrent(problem, { results, gradientInputs }, { declared });
      const { status, diagnosis } = verdict;
      expect([status, diagnosis?.id, ...(diagnosis?.equivalents ?? [])]).toContain(id);
      expect(status).toBe('FAIL');
    },
    60_000,
  );

  it('beside a gate, and sums over a batch, are refused', () => {
    const gated = mamba2Problem({ seed: 3 });
    const zeros = tensor('bf16', gated.v.shape, () => 0);
    const judge = (one: RecurrentProblem, results: RecurrentResults) => () =>
      auditRecurrent(one, { results, gradientInputs: { dout: one.v } });
    expect(judge(gated, { dv: zeros })).toThrow(/gradients beside a gate z are not judged/);
    const { v, q, k, mamba2, initialState, ...rest } = mamba2Problem({
      seed: 3,
      lengths: [8],
      has: { z: false, state: false },
    });
    expect(initialState).toBeUndefined();
    const halves = <T extends { shape: readonly number[] }>(one: T): T => ({
      ...one,
      shape: [2, 4, ...one.shape.slice(2)],
    });
    const batch = {
      ...rest,
      v: halves(v),
      q: halves(q),
      k: halves(k),
      mamba2: { ...mamba2!, dt: halves(mamba2!.dt) },
    };
    expect(judge(batch, { dA: tensor('fp32', [2], () => 0) })).toThrow(
      'dA is a sum over a batch of 2, and is judged of a batch of 1',
    );
  });
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
      const problem = mamba2Problem({
        ...drawn,
        format: 'fp32',
        bias,
        has: { z, d, ...rest },
        dtLimit: [0, Infinity],
      });
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
