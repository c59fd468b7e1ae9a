import { describe, expect, it } from 'vitest';
import { runKernelModel } from '../../../kernels/index.js';
import { checkKernel } from '../../../properties/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { testSeed } from '../../setup/effort.js';
import { tensor } from '../../setup/problems.js';

/** A kernel that scales the output of the last head by half. */
function halvedLastHead(problem: Problem) {
  const { out, lse } = runKernelModel('naive-fp32', problem);
  const { heads, queries, vDim } = problemShape(problem);
  const values = decodeTensor(out);
  const head = (i: number) => Math.floor(i / (queries * vDim)) % heads;
  const halved = (i: number) => (head(i) === heads - 1 ? 0.5 : 1) * values[i];
  return { out: tensor(out.format, out.shape, halved), lse };
}

/** The cause that a check of the kernel tells. */
async function causeOf(shrinkSeconds: number): Promise<string | null> {
  const sizes = {
    batch: { min: 1, max: 1 },
    kvHeads: { min: 3, max: 3 },
    groupSize: { min: 1, max: 1 },
    queries: { min: 20, max: 30 },
    keys: { min: 40, max: 60 },
    qkDim: { min: 16, max: 16 },
    vDim: { min: 16, max: 16 },
  };
  const { laws } = await checkKernel(
    halvedLastHead,
    { sizes, features: [], laws: {} },
    {
      laws: ['within-bound'],
      regimes: ['normal'],
      seed: testSeed,
      runs: 1,
      shrinkSeconds,
    },
  );
  return laws[0].failure!.cause;
}

describe('the cause that a check tells', () => {
  it('has its place in the problem that is shown', async () => {
    expect(await causeOf(0)).toMatch(/\(head 2\)$/);
  });

  it('has its place in the problem as it was drawn, where a simpler one is shown', async () => {
    expect(await causeOf(0.5)).toMatch(/\(head 2 of the problem as it was drawn\)$/);
  });
});
