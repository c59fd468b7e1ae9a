import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  runNarrowKernel,
  type NarrowKernel,
} from '../../../src/audit/diagnosis/hypotheses/narrow/narrow-kernel.js';
import { rounderTo } from '../../../src/audit/premises/declared-row.js';

const bf16 = rounderTo('bf16');
const vDim = 3;

/** One split of an online softmax, key after key, as the law says it. */
function definition(scores: Float64Array, values: Float64Array, law: NarrowKernel) {
  const { block, weights, accumulator, rescale, every } = law;
  const same = (x: number) => x;
  const [ofKey, ofBlock] = every === 'key' ? [accumulator, undefined] : [undefined, accumulator];
  const [sumOfKey, sumOfBlock] = every === 'key' ? [law.sum, undefined] : [undefined, law.sum];
  const starts = Array.from({ length: Math.ceil(scores.length / block) }, (_, i) => i * block);
  if (law.order === 'last to first') starts.reverse();
  const out = new Float64Array(vDim);
  let maximum = -Infinity;
  let sum = 0;
  for (const first of starts) {
    const ofScores = scores.subarray(first, first + block);
    const largest = Math.max(maximum, ...ofScores);
    if (largest === -Infinity) continue;
    const factor = maximum === -Infinity ? 0 : Math.exp(maximum - largest);
    maximum = largest;
    sum *= factor;
    out.forEach((x, c) => (out[c] = x * (rescale ?? same)(factor)));
    ofScores.forEach((score, j) => {
      if (score === -Infinity) return;
      const p = 2 ** ((score - maximum) * Math.LOG2E);
      sum = (sumOfKey ?? same)(sum + p);
      for (let c = 0; c < vDim; c++)
        out[c] = (ofKey ?? same)(out[c] + weights(p) * values[(first + j) * vDim + c]);
    });
    out.forEach((x, c) => (out[c] = (ofBlock ?? same)(x)));
    sum = (sumOfBlock ?? same)(sum);
  }
  const inverse = (law.reciprocal ?? same)(1 / sum);
  return { out: out.map((x) => x * inverse), lse: maximum + Math.log(sum) };
}

const faults: readonly Partial<NarrowKernel>[] = [
  {},
  { accumulator: bf16, every: 'key' },
  { accumulator: bf16, every: 'block' },
  { sum: bf16, every: 'key' },
  { sum: bf16, every: 'block' },
  { reciprocal: bf16 },
  { rescale: bf16 },
];

/** A row of some keys, the first of which is seen, and values; NaN where a key is masked. */
const rows = fc
  .array(
    fc.record({
      score: fc.oneof(
        { weight: 4, arbitrary: fc.double({ min: -9, max: 9, noNaN: true }) },
        fc.constant(-Infinity),
      ),
      value: fc.array(fc.double({ min: -4, max: 4, noNaN: true }), {
        minLength: vDim,
        maxLength: vDim,
      }),
    }),
    { minLength: 1, maxLength: 40 },
  )
  .map((keys) => [{ score: 0, value: Array<number>(vDim).fill(1) }, ...keys])
  .map((keys) => ({
    scores: Float64Array.from(keys, ({ score }) => score),
    values: Float64Array.from(
      keys.flatMap(({ score, value }) => (score === -Infinity ? value.map(() => NaN) : value)),
    ),
  }));

const laws = fc.record({
  block: fc.integer({ min: 1, max: 9 }),
  order: fc.constantFrom('first to last' as const, 'last to first' as const),
  weights: fc.constantFrom(bf16, (x: number) => x),
});

describe('a kernel with numbers in a short format', () => {
  it('has the bits of its definition, which adds a key at a time', () => {
    fc.assert(
      fc.property(rows, laws, fc.constantFrom(...faults), ({ scores, values }, base, fault) => {
        const law = { ...base, ...fault };
        const { out, lse } = runNarrowKernel(scores, values, vDim, law);
        expect({ out, lse }).toEqual(definition(scores, values, law));
      }),
    );
  });

  it('has the same bits by the sums of a kernel whose row sum and results alone are others', () => {
    const others = fc.constantFrom<Partial<NarrowKernel>>(
      { sum: bf16, every: 'key' },
      { sum: bf16, every: 'block' },
      { reciprocal: bf16 },
      { partial: bf16 },
    );
    const splits = fc.integer({ min: 1, max: 3 });
    fc.assert(
      fc.property(rows, laws, others, splits, ({ scores, values }, base, other, count) => {
        const sound = { ...base, splits: count };
        const { sums } = runNarrowKernel(scores, values, vDim, sound);
        const law = { ...sound, ...other };
        const alone = runNarrowKernel(scores, values, vDim, law);
        const shared = runNarrowKernel(scores, values, vDim, law, sums);
        expect(shared).toEqual(alone);
      }),
    );
  });
});
