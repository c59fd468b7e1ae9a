import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AttentionReference, WeightTile } from '../../../oracles/index.js';
import { CommonOffset } from '../../../src/audit/structure/common-offset.js';
import {
  joinScorePlaces,
  ScorePlaces,
  sharedRoundings,
} from '../../../src/audit/structure/declared/score-places.js';
import { filledProblem, pseudorandom, tensor } from '../../setup/problems.js';
import { handMadeReference } from '../hand-made.js';

const [heads, queries, vDim, keys] = [2, 3, 2, 4];
/** The first row, the number of rows and of keys of a tile, and the elements from one row to the next. */
const [first, rows, stride] = [2, 4, 5];
const { places } = new CommonOffset('bf16');
const roundoff = 2 ** -8;

const near = (found: ArrayLike<number>, expected: readonly number[]) => {
  expect(found.length).toBe(expected.length);
  expected.forEach((x, i) => {
    if (!(Math.abs(found[i] - x) <= 1e-9 * Math.max(1, Math.abs(x))))
      expect(found[i], `element ${i}`).toBe(x);
  });
};

/** The place of a number in its octave. */
function placeOf(x: number): number {
  if (x === 0) return 0;
  const size = Math.abs(x);
  const octave = Math.floor(Math.log2(size));
  return Math.min(places - 1, Math.floor((Math.log2(size) - octave) * places));
}

/** A problem's rows and a tile of their weights, made up. */
function made(seed: number, hasSink: boolean) {
  const random = pseudorandom(seed);
  const numbers = (count: number, one: () => number) => Float64Array.from({ length: count }, one);
  const sinks = [0.5, hasSink ? -1.25 : 0];
  const problem = filledProblem({ heads, queries, keys, dim: vDim }, () => 0, {
    ...(hasSink && {
      sink: { logits: tensor('fp32', [heads], (head) => sinks[head]), inLse: seed % 2 === 0 },
    }),
  });
  const all = heads * queries;
  const plain = handMadeReference({ heads, queries, vDim, out: () => random() });
  const maximum = numbers(all, () => 3 * random());
  const denominator = maximum.map((most) => most + 1 + random());
  // The LSE may lack the sink that the denominator has.
  const lse = denominator.map((x) => x - 0.25 * (1 + random()));
  const reference: AttentionReference = {
    ...plain,
    quantities: { ...plain.quantities, lse: { ...plain.quantities.lse, values: lse } },
    maximum,
    denominator,
  };
  // O·X of all rows by instrument: the first is that of scale, and the third that of bias.
  const own = Array.from({ length: all }, () => numbers(4, random));
  const tileOf = (ofRow: number): WeightTile => ({
    firstRow: first,
    rows: ofRow,
    firstKey: 0,
    keys,
    stride,
    weights: numbers(rows * stride, () => Math.max(0, random())),
    applied: numbers(rows * stride, () => Math.max(0, random())),
    projections: [0, 1, 2].map(() => numbers(rows * stride, random)),
  });
  return { problem, reference, ownOf: own, sinks, tiles: [tileOf(rows), tileOf(rows - 1)] };
}

type Made = ReturnType<typeof made>;

/** The sums by their definition: a term for every weight. */
function plainSums({ problem, reference, ownOf, sinks, tiles }: Made, used: Set<number>) {
  const { quantities, maximum, denominator } = reference;
  const byPlace = () => [0, 1, 2].map(() => Array<number>(places).fill(0));
  const [scores, distances] = [byPlace(), byPlace()];
  const curvature = Array.from({ length: rows }, () => [0, 0, 0]);
  const own = (row: number, d: number) => ownOf[row][2 * d];
  for (let i = 0; i < rows; i++) {
    const row = first + i;
    const lse = quantities.lse.values[row];
    if (problem.sink !== undefined) {
      const sink = sinks[Math.floor(row / queries)];
      const distance = Math.max(0, maximum[row] - sink);
      const error = roundoff * (3 * Math.abs(sink) + distance);
      const weight = Math.exp(sink - denominator[row]);
      curvature[i][0] += error * weight * Math.abs(own(row, 0));
      curvature[i][1] += error * weight * Math.abs(own(row, 1));
      curvature[i][2] += error * Math.min(1, Math.exp(sink - lse));
    }
    if (!used.has(i)) continue;
    for (const { rows: count, weights, applied, projections } of tiles)
      for (let key = 0; i < count && key < keys; key++) {
        const j = i * stride + key;
        const w = weights[j];
        if (w === 0) continue;
        const score = Math.log(w) + denominator[row];
        const distance = Math.max(0, maximum[row] - score);
        const effects = [
          applied[j] * projections[0][j] - w * own(row, 0),
          applied[j] * projections[2][j] - w * own(row, 1),
          w * Math.exp(denominator[row] - lse),
        ];
        effects.forEach((c, d) => {
          scores[d][placeOf(score)] += c * score;
          distances[d][placeOf(distance)] += c * distance;
          curvature[i][d] += Math.abs(c) * (roundoff ** 2 / 6) * (3 * score ** 2 + distance ** 2);
        });
      }
  }
  return { scores, distances, curvature };
}

describe('the roundings of written scores', () => {
  it('are summed by the places of scores and distances, row by row of those that are used', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 20 }), fc.boolean(), (seed, hasSink) => {
        const of = made(seed, hasSink);
        const sums = new ScorePlaces(of.problem, of.reference, 'bf16');
        const used = new Set([0, 1, 2, 3].filter((i) => ((seed >> i) & 1) === 1));
        const expected = plainSums(of, used);
        // What a block has is forgotten by the next.
        for (let again = 1; again <= 2; again++) {
          sums.begin(first, rows, (i) => of.ownOf[first + i]);
          for (const tile of of.tiles) sums.visit(tile, (i) => used.has(i));
          expected.curvature.forEach((ofRow, i) => near(sums.curvature(i), ofRow));
          const { scores, distances } = sums.state();
          near(
            scores,
            expected.scores.flat().map((x) => again * x),
          );
          near(
            distances,
            expected.distances.flat().map((x) => again * x),
          );
        }
        const state = sums.state();
        sums.clear();
        expect([...sums.state().scores, ...sums.state().distances].every((x) => x === 0)).toBe(
          true,
        );
        expect(joinScorePlaces(null, state)).toBe(state);
        const three = joinScorePlaces(state, joinScorePlaces(state, state));
        near(
          three.scores,
          [...state.scores].map((x) => 3 * x),
        );
        near(
          three.distances,
          [...state.distances].map((x) => 3 * x),
        );
      }),
      { numRuns: 10 },
    );
  });

  it('that all rows share are the largest that one factor on all scores makes', () => {
    const random = pseudorandom(5);
    const filled = () => Float64Array.from({ length: 3 * places }, random);
    const state = { scores: filled(), distances: filled() };
    const { errors } = new CommonOffset('bf16');
    const largest = (sums: Float64Array, d: number) => {
      const own = sums.subarray(d * places, (d + 1) * places);
      let most = 0;
      for (let shift = 0; shift < places; shift++) {
        let sum = 0;
        for (let at = 0; at < places; at++) sum += own[at] * errors[(at + shift) % places];
        most = Math.max(most, Math.abs(sum));
      }
      return most;
    };
    near(
      sharedRoundings('bf16', state),
      [0, 1, 2].map((d) => 2 * largest(state.scores, d) + largest(state.distances, d)),
    );
  });
});
