import { describe, expect, it } from 'vitest';
import {
  attentionOracle,
  type AttentionReference,
  forEachWeightTile,
  levels,
  type WeightTile,
  wholeMatrices,
  WorkingMemories,
} from '../../../../oracles/index.js';
import { randomValues } from '../../../../properties/problems/values.js';
import { decodeTensor } from '../../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../../src/problem/index.js';
import { filledProblem, tensor } from '../../../setup/problems.js';
import { turns } from '../../../setup/turns.js';
import { testSeed } from '../../../setup/effort.js';
import { featuredProblem, oracleFeatures, type OracleFeature } from './featured-problems.js';

const inTurn = turns(import.meta.url);

/**
 * Per row the sums over the keys of weights and of what is applied times V; how many tiles there are, and in how many
 * what is applied is not the weights themselves.
 */
function summedTiles(problem: Problem) {
  const reference = attentionOracle(problem);
  const { batch, heads, kvHeads, groupSize, queries, keys, vDim } = problemShape(problem);
  const v = decodeTensor(problem.v);
  const rows = batch * heads * queries;
  const sums = new Float64Array(rows);
  const out = new Float64Array(rows * vDim);
  let tiles = 0;
  let apart = 0;
  let current = 0;
  forEachWeightTile(problem, reference, {
    begin: (head) => (current = head),
    visit: ({ firstRow, rows, firstKey, keys: count, stride, weights, applied }) => {
      tiles++;
      if (weights !== applied) apart++;
      const kv = Math.floor(current / heads) * kvHeads + Math.floor((current % heads) / groupSize);
      for (let i = 0; i < rows; i++)
        for (let j = 0; j < count; j++) {
          const row = current * queries + firstRow + i;
          sums[row] += weights[i * stride + j];
          for (let c = 0; c < vDim; c++)
            out[row * vDim + c] +=
              applied[i * stride + j] * v[(kv * keys + firstKey + j) * vDim + c];
        }
    },
    end: () => undefined,
  });
  return { reference, sums, out, tiles, apart };
}

const sizes = { queries: 70, keys: 90, heads: 2, kvHeads: 1, dim: 4, vDim: 3 };

describe('weight tiles', () => {
  inTurn.each([
    [[]],
    [['bias']],
    [['alibiSlopes']],
    [['sink']],
    [['dropout']],
    [oracleFeatures],
  ] as readonly (readonly [readonly OracleFeature[]])[])(
    'of %s: weights add up to the share of the keys in the sum, what is applied gives O',
    (features) => {
      let allTiles = 0;
      for (let draw = 0; draw < 4; draw++) {
        const problem = featuredProblem(randomValues(testSeed + draw), features, sizes);
        const { reference, sums, out, tiles, apart } = summedTiles(problem);
        // A problem whose rows all see no key has no tile.
        expect(apart).toBe(features.includes('dropout') ? tiles : 0);
        allTiles += tiles;
        const { logits, inLse } = problem.sink ?? {};
        const sinks = logits === undefined ? null : decodeTensor(logits);
        const { heads, queries, vDim } = reference.shape;
        const largestAddend = 1e6;
        sums.forEach((sum, row) => {
          const denominator = reference.denominator[row];
          const level = levels[reference.level[row]];
          const sink = sinks?.[Math.floor(row / queries) % heads] ?? -Infinity;
          if (level === 'empty') {
            expect(sum).toBe(0);
            expect(denominator).toBe(sink);
            return;
          }
          // Rounding of logarithms as large as the scores, of up to 90 keys.
          const tolerance =
            2 ** -40 * (1 + 2 ** -10 * Math.min(Math.abs(denominator), largestAddend));
          expect(Math.abs(sum + Math.exp(sink - denominator) - 1)).toBeLessThan(90 * tolerance);
          if (inLse !== false) expect(reference.quantities.lse.values[row]).toBe(denominator);
          for (let c = 0; c < vDim; c++) {
            const at = row * vDim + c;
            const { values, magnitude } = reference.quantities.out;
            expect(Math.abs(out[at] - values[at])).toBeLessThanOrEqual(
              90 * tolerance * magnitude[at] + 2 ** -900,
            );
          }
        });
      }
      expect(allTiles).toBeGreaterThan(0);
    },
  );
});

/** All that a walk shows of each tile. */
function shownTiles(
  problem: Problem,
  reference: AttentionReference,
  projected: readonly Float64Array[],
  memories: WorkingMemories,
) {
  const shown: unknown[] = [];
  const visitor = {
    begin: () => undefined,
    visit: ({ firstRow, firstKey, rows, keys, weights, applied, projections }: WeightTile) =>
      shown.push({
        place: [firstRow, firstKey, rows, keys],
        numbers: [weights, applied, ...projections].map((values) => values.slice()),
      }),
    end: () => undefined,
  };
  const matrices = wholeMatrices(projected, reference.shape);
  forEachWeightTile(problem, reference, visitor, { projected: matrices, memories });
  return shown;
}

describe('walks that share memories', () => {
  inTurn.each([[[]], [oracleFeatures]] as readonly (readonly [readonly OracleFeature[]])[])(
    'of %s show what walks of their own show, of one problem after the other',
    (features) => {
      const memories = new WorkingMemories();
      const random = randomValues(testSeed);
      const problems = [0, 1].map(() => {
        const problem = featuredProblem(random, features, sizes);
        return { problem, reference: attentionOracle(problem) };
      });
      for (const at of [0, 0, 1]) {
        const { problem, reference } = problems[at];
        for (const projected of [[], [reference.quantities.out.values]]) {
          const own = shownTiles(problem, reference, projected, new WorkingMemories());
          expect(shownTiles(problem, reference, projected, memories)).toEqual(own);
        }
      }
    },
  );
});

describe('special values of problems with features', () => {
  const frame = { queries: 2, keys: 3, dim: 1, vDim: 2, format: 'fp32' } as const;
  const ones = () => 1;
  const sink = (inLse: boolean) => ({ logits: tensor('fp32', [1], () => 2), inLse });
  const planted = (name: 'q' | 'k' | 'v', at: number, value: number, changes: Partial<Problem>) => {
    const problem = filledProblem(frame, ones, { scale: 1, ...changes });
    problem[name].data[at] = value;
    return problem;
  };
  const firstRow = (problem: Problem) => {
    const { quantities, denominator, level, maximum } = attentionOracle(problem);
    return {
      out: [...quantities.out.values.subarray(0, 2)],
      lse: quantities.lse.values[0],
      denominator: denominator[0],
      maximum: maximum[0],
      level: levels[level[0]],
    };
  };
  const log = (x: number) => expect.closeTo(Math.log(x), 14) as number;

  it('a row of scores of −∞ has the weight of its sink', () => {
    const problem = { ...planted('q', 0, -Infinity, {}), sink: sink(true) };
    expect(firstRow(problem)).toEqual({
      out: [0, 0],
      lse: 2,
      denominator: 2,
      maximum: -Infinity,
      level: 'special',
    });
    expect(firstRow({ ...problem, sink: sink(false) })).toMatchObject({
      lse: -Infinity,
      denominator: 2,
    });
  });

  it('a row without keys has the weight of its sink', () => {
    const mask = { shape: [2, 1], data: Uint8Array.of(0, 1) };
    const row = { out: [0, 0], maximum: -Infinity, level: 'empty', denominator: 2 };
    const problem = filledProblem(frame, ones, { scale: 1, mask });
    expect(firstRow({ ...problem, sink: sink(true) })).toEqual({ ...row, lse: 2 });
    expect(firstRow({ ...problem, sink: sink(false) })).toEqual({ ...row, lse: -Infinity });
    const none = { logits: tensor('fp32', [1], () => -Infinity), inLse: true };
    expect(firstRow({ ...problem, sink: none })).toEqual({
      ...row,
      lse: -Infinity,
      denominator: -Infinity,
    });
  });

  it('a score of −∞ leaves the others and the sink, with what is added to them', () => {
    const bias = tensor('fp32', [3], (key) => [5, 0, 3][key]);
    const problem = planted('k', 0, -Infinity, { bias, sink: sink(false) });
    const [a, b, s] = [Math.E, Math.exp(4), Math.exp(2)];
    const o = (a + b) / (a + b + s);
    expect(firstRow(problem)).toEqual({
      out: [expect.closeTo(o, 14), expect.closeTo(o, 14)],
      lse: log(a + b),
      denominator: log(a + b + s),
      maximum: expect.closeTo(4, 14) as number,
      level: 'special',
    });
  });

  it('a score of +∞ makes the row NaN, whatever the sink', () => {
    const problem = planted('k', 1, Infinity, { sink: sink(true) });
    expect(firstRow(problem)).toMatchObject({ out: [NaN, NaN], lse: Infinity, level: 'special' });
  });

  it('an infinity or a NaN in V under a weight that dropout takes away makes it NaN', () => {
    const kept = { shape: [1, 3], data: Uint8Array.of(1, 0, 1) };
    const dropout = { kept, probability: 0.5 };
    for (const value of [Infinity, -Infinity, NaN]) {
      const row = firstRow(planted('v', 2, value, { dropout }));
      expect(row.out[0]).toBeNaN();
      expect(row.out[1]).toBeCloseTo(2 / 3 / 0.5, 14);
    }
    expect(firstRow(planted('v', 4, Infinity, { dropout })).out[0]).toBe(Infinity);
  });

  it('a capped infinity is added to like every score', () => {
    const bias = tensor('fp32', [3], (key) => [-5, 0, 0][key]);
    const problem = planted('k', 0, Infinity, { softcap: 6, bias });
    const other = Math.exp(6 * Math.tanh(1 / 6));
    expect(firstRow(problem).lse).toBeCloseTo(Math.log(Math.E + 2 * other), 13);
  });
});
