import { describe, expect, it } from 'vitest';
import {
  isWellInside,
  rowScores,
  vanishingWeight,
} from '../../../properties/laws/value-scaling.js';
import { decodeTensor, formats, smallestNormal } from '../../../src/formats/index.js';
import { scoreLaw, scoreOf } from '../../../src/problem/index.js';
import { definedAttention } from '../../kernels/features/index.js';
import { tensor } from '../../setup/problems.js';
import { changedKernel } from './changed-kernel.js';
import { tryLaw, variedProblem } from './try-law.js';

const sizes = { batch: 2, heads: 2, kvHeads: 1, queries: 3, keys: 4, dim: 2, vDim: 1 } as const;

describe('the scores of rows', () => {
  it('are those of the keys that each sees, with a radius of four roundings and two a dimension', () => {
    for (const changes of [
      {},
      { causal: true },
      { softcap: 0.5 },
      { bias: tensor('bf16', [3, 4], (i) => i / 4) },
    ]) {
      const problem = variedProblem({ scale: -0.7, ...changes }, { ...sizes, format: 'bf16' });
      const [q, k] = [decodeTensor(problem.q), decodeTensor(problem.k)];
      const { visible } = definedAttention(problem);
      const law = scoreLaw(problem);
      let rows = 0;
      for (const { row, kvHead, visible: seen, scores, radii } of rowScores(problem)) {
        expect([row, kvHead]).toEqual([rows, Math.floor(rows / 6)]);
        rows++;
        expect([...seen]).toEqual(visible[row]);
        seen.forEach((key, j) => {
          const products = [0, 1].map((t) => q[2 * row + t] * k[(kvHead * 4 + key) * 2 + t]);
          const score = scoreOf(law, products[0] + products[1], Math.floor(row / 3), row % 3, key);
          expect(scores[j]).toBe(score);
          const size = 0.7 * (Math.abs(products[0]) + Math.abs(products[1]));
          const coarse = 4 * 2 ** -8;
          const added = 'bias' in changes ? 2 * coarse * (Math.abs(score) + 11 / 4) : 0;
          const capped = 'softcap' in changes ? coarse * 0.5 : 0;
          const radius = (coarse + 6 * 2 * 2 ** -24) * size + capped + added;
          expect(Math.abs(radii[j] / radius - 1)).toBeLessThan(1e-12);
        });
      }
      expect(rows).toBe(12);
    }
  });

  it('are compared where outputs are well inside their format', () => {
    for (const name of ['fp32', 'fp16', 'e4m3'] as const) {
      const { maxFinite } = formats[name];
      const least = 2 * smallestNormal(formats[name]);
      const inside = [least, -least, least * 0.99, maxFinite / 2, (-maxFinite / 2) * 1.01, 0];
      expect(inside.map((x) => isWellInside(name, x))).toEqual([
        true,
        true,
        false,
        true,
        false,
        false,
      ]);
    }
    expect(Math.log2(vanishingWeight)).toBe(-174);
  });

  /** Whether a change of the second result is seen, with keys of these scores and values. */
  async function isCompared(scores: readonly number[], values: readonly number[], choice = 0) {
    const frame = {
      batch: 1,
      heads: 1,
      kvHeads: 1,
      queries: 1,
      keys: scores.length,
      dim: 1,
      vDim: 1,
    };
    const problem = {
      ...variedProblem({ scale: 1 }, frame),
      q: tensor('fp32', [1, 1, 1, 1], () => 1),
      k: tensor('fp32', [1, 1, scores.length, 1], (i) => scores[i]),
      v: tensor('fp32', [1, 1, scores.length, 1], (i) => values[i]),
    };
    const kernel = changedKernel(({ out }, run) => run === 1 && (out[0] *= 1 + 2 ** -40));
    return (await tryLaw('value-scaling', { problem, choice }, { kernel })).status === 'violated';
  }

  it('of O where no product of a weight and a value may underflow', async () => {
    expect(await isCompared([0, 0], [1, 1])).toBe(true);
    // A product of 2^-60, and a weight of 2^-40 with a value of 2^-20 and less.
    const low = -40 * Math.LN2;
    expect([
      await isCompared([0, low], [1, 2 ** -18]),
      await isCompared([0, low], [1, 2 ** -22]),
    ]).toEqual([true, false]);
    expect([
      await isCompared([0, 0], [1, 2 ** -59]),
      await isCompared([0, 0], [1, 2 ** -61]),
    ]).toEqual([true, false]);
    // Halved, the value must be twice as large.
    expect([
      await isCompared([0, 0], [1, 2 ** -58], 1),
      await isCompared([0, 0], [1, 2 ** -60], 1),
    ]).toEqual([true, false]);
    // A weight that is 0 in any kernel takes no part, nor does a value of 0.
    expect([await isCompared([0, -200], [1, 1]), await isCompared([0, low], [1, 0])]).toEqual([
      true,
      true,
    ]);
    expect(await isCompared([0, -100], [1, 2 ** 20])).toBe(false);
  });
});
