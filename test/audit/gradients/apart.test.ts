import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import { auditGradientsApart, type GradientTensors } from '../../../src/audit/index.js';
import { multiplyAddsOf } from '../../../src/audit/rows/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { lazily } from '../../../src/reuse.js';
import { normalProblem, normalTensor, seededRandom } from '../../kernels/features/index.js';
import { backwardKernel, drawDout } from '../../kernels/gradients/index.js';
import { testSeed } from '../../setup/effort.js';

const small = { batch: 1, heads: 4, queries: 6, keys: 9, dim: 4 } as const;

/** A problem of some heads of K, and the gradients of a correct kernel. */
function drawn(kvHeads: number) {
  const random = seededRandom(testSeed);
  const problem: Problem = {
    ...normalProblem(random, { ...small, kvHeads }),
    bias: normalTensor(random, 'bf16', [small.heads, small.queries, small.keys], 1),
    sink: { logits: normalTensor(random, 'fp32', [small.heads], 1), inLse: true },
  };
  const dout = drawDout(random, problem);
  const { dbias, dsink, ...own } = backwardKernel()(problem, dout);
  return {
    problem,
    own: { dout, ...own },
    shared: { dbias: dbias ?? null, dsink: dsink ?? null },
    reference: attentionOracle(problem),
    effort: multiplyAddsOf(problem, problemShape(problem)),
  };
}

const several = lazily(() => drawn(2));
const single = lazily(() => drawn(1));

/** Thrown as soon as it is known where groups are measured. */
class Measured extends Error {
  constructor(readonly groups: number | 'together') {
    super(`measured: ${groups}`);
  }
}

/** The number of groups that are measured apart, or that they are measured together. */
async function measuredGroups(
  { problem, reference }: ReturnType<typeof drawn>,
  tensors: GradientTensors,
  effort?: number,
): Promise<number | 'together'> {
  const progress = () => {
    throw new Measured('together');
  };
  const start = (_: unknown, groups: number) => {
    throw new Measured(groups);
  };
  try {
    await auditGradientsApart(problem, tensors, { reference, progress }, { start }, effort);
  } catch (error) {
    if (error instanceof Measured) return error.groups;
    throw error;
  }
  throw new Error('no group was measured');
}

describe('groups of heads', () => {
  it('are measured apart where there are several', async () => {
    expect(await measuredGroups(several(), several().own, 1)).toBe(2);
    expect(await measuredGroups(single(), single().own, 1)).toBe('together');
  });

  it('are so from as many multiply-adds on as it is worth, by default more than little problems have', async () => {
    const of = several();
    expect(await measuredGroups(of, of.own, of.effort)).toBe(2);
    expect(await measuredGroups(of, of.own, of.effort + 1)).toBe('together');
    expect(await measuredGroups(of, of.own)).toBe('together');
  });

  it.each(['dbias', 'dsink'] as const)(
    'are not where a gradient is a sum over all of them: %s',
    async (name) => {
      const of = several();
      const given = { ...of.own, [name]: of.shared[name] };
      expect(await measuredGroups(of, given, 1)).toBe('together');
    },
  );
});
