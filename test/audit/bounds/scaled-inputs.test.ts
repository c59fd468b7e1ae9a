import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import { elementBounds, resolvePremises } from '../../../src/audit/index.js';
import { anyKernelArithmetic, KernelBound } from '../../../src/audit/bounds/index.js';
import { tensorScales, type ScaleFactors, type Tensor } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { filledProblem, sumNormalNumbers, uniformNumbers } from '../../setup/problems.js';

const dim = 32;

/** The tensor with a factor for each block of columns. */
function withFactors(tensor: Tensor, values: readonly number[]): Tensor {
  const { shape } = tensor;
  const factors: ScaleFactors = {
    name: 'block_scale',
    format: 'fp32',
    values: Float64Array.from(values),
    shape: [1, 1, 1, values.length],
    blocks: [...shape.slice(0, -1), dim / values.length],
  };
  return { ...tensor, scales: tensorScales(tensor, [factors]) };
}

function boundsOf(problem: Problem) {
  const reference = attentionOracle(problem);
  const premises = resolvePremises(problem, 'fp64', {});
  return elementBounds(
    problem,
    reference,
    anyKernelArithmetic(problem, 'fp64', premises),
    new KernelBound(problem, reference, 'fp64', premises),
  ).quantities;
}

describe('bounds of inputs with factors', () => {
  const normal = sumNormalNumbers(uniformNumbers(170_903));
  // Many of K are subnormal in e4m3.
  const fills = { q: () => normal(), k: () => 0.01 * normal(), v: () => normal() };
  const plain = filledProblem({ queries: 9, keys: 70, dim, format: 'e4m3' }, fills, { scale: 8 });

  it('are those of the scale that powers of two come to', () => {
    const scaled = {
      ...plain,
      q: withFactors(plain.q, [2 ** -3]),
      k: withFactors(plain.k, [2 ** 5]),
      scale: 2,
    };
    const [ours, theirs] = [boundsOf(scaled), boundsOf(plain)];
    expect(ours.lse?.total).toEqual(theirs.lse?.total);
    expect(ours.out?.total).toEqual(theirs.out?.total);
  });

  it('do not know of the factor of a key that no query sees', () => {
    const hidden = { ...plain, causal: true };
    const { k } = hidden;
    const values = new Float64Array(70).fill(1);
    values[69] = 2 ** 30;
    const factors: ScaleFactors = {
      name: 'descale',
      format: 'fp32',
      values,
      shape: [1, 1, 70, 1],
      blocks: [1, 1, 1, dim],
    };
    const scaled = { ...hidden, k: { ...k, scales: tensorScales(k, [factors]) } };
    const [ours, theirs] = [boundsOf(scaled), boundsOf(hidden)];
    // The last query sees it, and the oracle's radius is not quite the same.
    for (let row = 0; row < 8; row++)
      expect((ours.lse?.total[row] ?? NaN) / (theirs.lse?.total[row] ?? NaN)).toBeCloseTo(1, 9);
  });

  it('of V scale with its factor', () => {
    const factor = 2 ** 7;
    const scaled = { ...plain, v: withFactors(plain.v, [factor]) };
    const [ours, theirs] = [boundsOf(scaled), boundsOf(plain)];
    ours.out?.total.forEach((x, i) =>
      expect(x / factor / (theirs.out?.total[i] ?? NaN)).toBeCloseTo(1, 6),
    );
  });
});

describe('bounds of columns of V', () => {
  it('scale with their column, however small it is beside the others', () => {
    const normal = sumNormalNumbers(uniformNumbers(31_337));
    const scores = Float64Array.from({ length: 46 * dim }, () => normal());
    const columns = (factor: number) =>
      filledProblem(
        { queries: 40, keys: 6, dim, format: 'bf16' },
        {
          q: (index) => scores[index],
          k: (index) => scores[40 * dim + index],
          v: (index) => ((index * 7919) % 97 < 48 ? 1 : -1.5) * (index % 2 === 0 ? 1 : factor),
        },
      );
    // Beside a sink sums depend on the order of tiles.
    const logits = { format: 'fp32', shape: [1], data: Float32Array.of(0) } as const;
    const sink = { logits, inLse: true };
    // Squares of the small ones are far below the range of fp32.
    const factor = 2 ** -80;
    const [ours, theirs] = [factor, 1].map((by) => {
      const problem = { ...columns(by), sink };
      const reference = attentionOracle(problem);
      const premises = resolvePremises(problem, 'bf16', {});
      const bound = new KernelBound(problem, reference, 'bf16', premises);
      return elementBounds(problem, reference, anyKernelArithmetic(problem, 'bf16'), bound)
        .quantities.out;
    });
    for (const name of ['total', 'deviation'] as const)
      for (let i = 1; i < 40 * dim; i += 2)
        expect((ours?.[name][i] ?? NaN) / factor / (theirs?.[name][i] ?? NaN)).toBeCloseTo(1, 4);
  });
});
