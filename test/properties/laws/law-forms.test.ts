import { describe, expect, it } from 'vitest';
import { attentionGradients } from '../../../oracles/index.js';
import {
  laws,
  resolvePromises,
  runCase,
  type AttentionKernel,
  type KernelPromises,
  type LawCase,
  type LawId,
} from '../../../properties/index.js';
import { gradientDifference } from '../../../properties/laws/gradients/compare-gradients.js';
import { decodeTensor, type Tensor } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { rightMerge, type mergeBy } from '../../kernels/features/index.js';
import { filledProblem, tensor } from '../../setup/problems.js';
import { bellShaped } from '../../audit/gradients/gradient-case.js';
import { exactKernel } from '../exact-kernel.js';

/** What becomes of a law on one case. */
function tried(
  id: LawId,
  lawCase: LawCase,
  kernel: AttentionKernel,
  promises: Partial<KernelPromises> = {},
) {
  const resolved = resolvePromises({ formats: ['fp32', 'fp64'], lse: true, ...promises });
  return runCase(id, lawCase, kernel, resolved, { diagnose: false });
}

const [queries, keys, dim] = [6, 96, 4] as const;

/** A problem of some batch entries and a dO of it. */
function gradientCase(batch: number) {
  const random = bellShaped(batch);
  const problem = filledProblem({ batch, queries, keys, dim, format: 'fp32' }, random);
  return { problem, dout: tensor('fp32', [batch, 1, queries, dim], random) };
}

type Gradients = Readonly<Record<'dq' | 'dk' | 'dv', Float64Array>>;

/** The exact gradients, in fp64, with errors. */
function backward(change: (values: Gradients) => void): AttentionKernel {
  return (problem, conditions = {}) => {
    const { dout } = conditions;
    const forward = exactKernel(problem);
    if (dout === undefined) return forward;
    const exact = attentionGradients(problem, dout);
    const values = { dq: exact.dq!.values, dk: exact.dk!.values, dv: exact.dv!.values };
    change(values);
    const { batch } = problemShape(problem);
    const of = (data: Float64Array, rows: number): Tensor => ({
      format: 'fp64',
      shape: [batch, 1, rows, dim],
      data,
    });
    return {
      ...forward,
      dq: of(values.dq, queries),
      dk: of(values.dk, keys),
      dv: of(values.dv, keys),
    };
  };
}

describe('sums of gradients that are conserved', () => {
  const id = 'gradients-conserved';
  const { problem, dout } = gradientCase(2);
  const promises = { gradients: true };
  /** An error of the last element of dV, or the same on each element of its last column. */
  const wrong = (error: number, isSpread = false) =>
    backward(({ dv }) => {
      for (let i = dv.length - 1; i >= 0; i -= dim)
        if (isSpread || i === dv.length - 1) dv[i] += error;
    });

  it('are off from the worst case of their terms on', async () => {
    const lawCase = { problem, dout, choice: 0 };
    const found = await tried(id, lawCase, wrong(1), promises);
    const explained = found.status === 'violated' && /explains (\S+)$/.exec(found.statement);
    const limit = Number((explained || [])[1]);
    expect(limit).toBeGreaterThan(0);
    expect((await tried(id, lawCase, wrong(1.02 * limit), promises)).status).toBe('violated');
    expect((await tried(id, lawCase, wrong(0.98 * limit), promises)).status).toBe('held');
  });

  it('are in the last forms off from what independent roundings leave on', async () => {
    // A hundredth of what the terms may be off by together.
    const limit = async (choice: number) => {
      const found = await tried(id, { problem, dout, choice }, wrong(1, true), promises);
      expect(found.status).toBe('violated');
      return Number(
        /explains (\S+)$/.exec(found.status === 'violated' ? found.statement : '')?.[1],
      );
    };
    const last = laws[id].choices - 1;
    const worst = (await limit(0)) / keys;
    const status = async (choice: number) =>
      (await tried(id, { problem, dout, choice }, wrong(worst / 2, true), promises)).status;
    expect(await status(0)).toBe('held');
    expect(await status(last)).toBe('violated');
    expect((await tried(id, { problem, dout, choice: last }, wrong(0), promises)).status).toBe(
      'held',
    );
  });
});

describe('gradients that are compared', () => {
  const { problem, dout } = gradientCase(1);
  const shape = problemShape(problem);
  const exact = attentionGradients(problem, dout);
  const values = { dq: exact.dq!.values, dk: exact.dk!.values, dv: exact.dv!.values };
  const errors = {
    dq: values.dq.map(() => 1),
    dk: values.dk.map(() => 1),
    dv: values.dv.map(() => 1),
  };
  const compared = (changed: Gradients, of: Gradients | null) =>
    gradientDifference(
      { values, errors: of },
      { values: changed, errors: of },
      { shape, usual: 'at first', changed: 'then' },
    );

  it('differ where one is NaN and the other is not, whatever they may be off by', () => {
    const broken = { ...values, dv: values.dv.map((x, i) => (i === 5 ? NaN : x)) };
    for (const of of [errors, null])
      expect(compared(broken, of)).toMatch(
        /^dV at head 0, key 1, column 1 is \S+ at first but NaN then/,
      );
    expect(compared(values, errors)).toBeNull();
  });
});

describe('heads and batches in another order', () => {
  it('show what is wrong in one batch entry of several', async () => {
    const { problem, dout } = gradientCase(2);
    const lawCase = { problem, dout, choice: 0 };
    const ofSecond = backward(({ dq }) => {
      for (let i = dq.length / 2; i < dq.length; i++) dq[i] *= 1.5;
    });
    const promises = { gradients: true };
    const id = 'gradients-heads';
    expect((await tried(id, lawCase, ofSecond, promises)).status).toBe('violated');
    expect(
      (
        await tried(
          id,
          lawCase,
          backward(() => undefined),
          promises,
        )
      ).status,
    ).toBe('held');
  });
});

describe('results that are merged', () => {
  const problem = filledProblem({ queries: 3, keys: 8, dim: 4, format: 'fp32' }, bellShaped(2));
  const withLse =
    (change: (x: number) => number): ReturnType<typeof mergeBy> =>
    (parts) => {
      const { out, lse } = rightMerge(parts);
      const data = Float32Array.from(decodeTensor(lse!), change);
      return { out, lse: { ...lse!, data } };
    };
  const status = async (merge: ReturnType<typeof mergeBy>, choice: number) =>
    (await tried('merging', { problem, choice }, exactKernel, { merge })).status;

  it.each([
    ['NaN of parts without keys', 0, (x: number) => (x === -Infinity ? NaN : x)],
    ['0 of parts without keys', 0, (x: number) => (x === -Infinity ? 0 : x)],
    ['NaN of parts', 3, () => NaN],
    ['too much by a thousandth', 3, (x: number) => x + 1e-3],
  ] as const)('have no LSE that is %s', async (_, choice, change) => {
    expect(await status(withLse(change), choice)).toBe('violated');
    expect(await status(rightMerge, choice)).toBe('held');
  });
});

/** The problems that a kernel is asked for under each choice of a law. */
async function problemsOf(id: LawId, problem: Problem, promises: Partial<KernelPromises>) {
  const seen: Problem[][] = [];
  for (let choice = 0; choice < laws[id].choices; choice++) {
    const asked: Problem[] = [];
    const kernel: AttentionKernel = (posed) => {
      asked.push(posed);
      return exactKernel(posed);
    };
    await tried(id, { problem, choice }, kernel, promises);
    seen.push(asked);
  }
  return seen;
}

describe('the choices of a law', () => {
  const problem = filledProblem(
    { batch: 2, queries: 3, keys: 8, dim: 4, format: 'fp32' },
    bellShaped(3),
  );

  it('go round all features that change nothing', async () => {
    const features = ['bias', 'mask', 'sink', 'dropout', 'alibi'] as const;
    const asked = (await problemsOf('neutral-features', problem, { features })).flat();
    for (const name of ['bias', 'mask', 'sink', 'dropout', 'alibiSlopes'] as const)
      expect(asked.filter((one) => one[name] !== undefined).length, name).toBeGreaterThan(0);
  });

  it('have sequences by themselves, and packed among others', async () => {
    const bits = { 'sequences-alone': 'bits' } as const;
    const promises = { features: ['packed'], laws: bits } as const;
    const asked = await problemsOf('sequences-alone', problem, promises);
    // By themselves, among others, documents: of these the problem has none.
    expect(asked.map((problems) => problems.length > 0)).toEqual(
      asked.map((_, choice) => choice % 3 !== 2),
    );
    const isPacked = (problems: readonly Problem[]) =>
      problems.some(({ sequences = [] }) => sequences.length > 1);
    expect(asked.map(isPacked)).toEqual(asked.map((_, choice) => choice % 3 === 1));
  });
});

describe('a kernel that throws', () => {
  const problem = filledProblem({ queries: 3, keys: 8, dim: 4, format: 'fp32' }, bellShaped(4));

  it.each([0, 1])('is at fault, after %i runs that are right', async (right) => {
    let runs = 0;
    const kernel: AttentionKernel = (posed) => {
      if (runs++ >= right) throw new Error('out of memory');
      return exactKernel(posed);
    };
    const found = await tried('determinism', { problem, choice: 0 }, kernel);
    expect(found).toMatchObject({
      status: 'violated',
      fault: 'the kernel threw: out of memory',
      isSlow: false,
    });
    expect(found.status === 'violated' && found.runs).toHaveLength(right);
  });
});
