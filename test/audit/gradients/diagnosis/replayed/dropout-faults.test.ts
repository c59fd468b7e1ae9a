import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { WeightFactors } from '../../../../../src/audit/gradients/diagnosis/replay/backward-row.js';
import { weightFaults } from '../../../../../src/audit/gradients/diagnosis/replayed/weight-faults.js';
import { problemShape } from '../../../../../src/problem/index.js';
import { filledProblem } from '../../../../setup/problems.js';
import { drawFrom } from '../../definitions/random-pairs.js';

const [batch, heads, queries, keys] = [2, 3, 4, 5] as const;

/** A problem with dropout of a probability, and which weights it keeps. */
function problemOf(seed: number, probability: number) {
  const { flips } = drawFrom(seed);
  const shape = [batch, heads, queries, keys];
  const data = Uint8Array.from({ length: batch * heads * queries * keys }, () => Number(flips()));
  const kept = { shape, data };
  const frame = { batch, heads, queries, keys, dim: 4 };
  return { problem: filledProblem(frame, () => 1, { dropout: { kept, probability } }), data };
}

/** The factor of a weight by its head over the batch, its query and its key. */
type Factor = (head: number, query: number, key: number) => number;

/** All factors that a change makes. */
function factorsOf(factors: WeightFactors): number[] {
  const all: number[] = [];
  for (let head = 0; head < batch * heads; head++)
    for (let query = 0; query < queries; query++) {
      const target = new Float64Array(keys).fill(1);
      factors?.(head, query, target);
      all.push(...target);
    }
  return all;
}

function allOf(factor: Factor): number[] {
  return Array.from({ length: batch * heads * queries * keys }, (_, i) => {
    const row = Math.floor(i / keys);
    return factor(Math.floor(row / queries), row % queries, i % keys);
  });
}

/** All faults of dropout in P and in dP; undefined where it is right. */
function wantedFaults(data: Uint8Array, probability: number) {
  const at: Factor = (head, query, key) => data[(head * queries + query) * keys + key];
  const around = (x: number, count: number) => (x < 0 ? count - 1 : x === count ? 0 : x);
  const shifted = (ofHead: number, ofQuery: number, ofKey: number) =>
    allOf((head, query, key) => {
      const from = [
        around(head + ofHead, batch * heads),
        around(query + ofQuery, queries),
        around(key + ofKey, keys),
      ] as const;
      return at(...from) / (1 - probability);
    });
  const back = 'in the backward pass';
  const of = (words: string) => `dropout-of-another: dropout ${back} keeps the weights of ${words}`;
  const [unscaled, ones] = [allOf(at), allOf(() => 1)];
  const both = (factors: number[]) => ({ p: factors, dp: factors });
  const name = 'dropout-missing: dropout is';
  const factor = "dropout-factor: dropout's factor 1 / (1 − p) is missing in";
  return [
    [of('the next key'), both(shifted(0, 0, 1))],
    [of('the key before'), both(shifted(0, 0, -1))],
    [of('the next query'), both(shifted(0, 1, 0))],
    [of('the query before'), both(shifted(0, -1, 0))],
    [of('the next head'), both(shifted(1, 0, 0))],
    [of('the head before'), both(shifted(-1, 0, 0))],
    [`${factor} the backward pass`, both(unscaled)],
    [`${factor} dP`, { p: undefined, dp: unscaled }],
    [`${name} left out ${back}`, both(ones)],
    [`${name} not applied to dP, which dS = P(dP − D) is made of`, { p: undefined, dp: ones }],
    [`${name} not applied to the P of dV`, { p: ones, dp: undefined }],
  ];
}

describe('faults of dropout', () => {
  it('drop and scale the weights that they say', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2 ** 30 }),
        fc.constantFrom(0.25, 0.5),
        (seed, probability) => {
          const { problem, data } = problemOf(seed, probability);
          const list = (of: WeightFactors | undefined) =>
            of === undefined ? undefined : factorsOf(of);
          const found = [...weightFaults(problem, problemShape(problem))]
            .filter(({ id }) => id.startsWith('dropout-'))
            .map(({ id, sentence, change: { keptOfP, keptOfDp, ...rest } }) => {
              expect(rest).toEqual({});
              return [`${id}: ${sentence}`, { p: list(keptOfP), dp: list(keptOfDp) }];
            });
          expect(found).toEqual(wantedFaults(data, probability));
        },
      ),
      { numRuns: 20 },
    );
  });
});
