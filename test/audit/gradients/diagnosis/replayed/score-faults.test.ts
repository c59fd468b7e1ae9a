import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { BackwardChange } from '../../../../../src/audit/gradients/diagnosis/replay/backward-row.js';
import { scoreFaults } from '../../../../../src/audit/gradients/diagnosis/replayed/score-faults.js';
import { decodeTensor } from '../../../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../../../src/problem/index.js';
import { filledProblem, sequencesOf, tensor } from '../../../../setup/problems.js';
import { drawFrom, expectAlike } from '../../definitions/random-pairs.js';

const [queries, keys] = [5, 7] as const;

/** What a test draws of a problem. */
const drawns = fc.record({
  seed: fc.integer({ min: 1, max: 2 ** 30 }),
  batch: fc.constantFrom(1, 2),
  heads: fc.constantFrom(1, 2, 3),
  scale: fc.constantFrom(0.5, 0.3, 1, 0.71),
  softcap: fc.constantFrom(null, 2),
  isPacked: fc.boolean(),
  hasBias: fc.boolean(),
  /** Whether slopes are those of a batch entry or sequence each; null for no slopes. */
  slopesApart: fc.constantFrom(null, false, true),
});

type Drawn = typeof drawns extends fc.Arbitrary<infer T> ? T : never;

/** Sequences, the last of which is shorter in queries and longer in keys. */
const sequences = sequencesOf([
  [3, 2],
  [2, 5],
]);

function problemOf(of: Drawn): Problem {
  const { seed, heads, scale, softcap, isPacked, hasBias, slopesApart } = of;
  const { between } = drawFrom(seed);
  const random = () => between(-1, 1);
  const batch = isPacked ? 1 : of.batch;
  const units = isPacked ? sequences.length : batch;
  return filledProblem({ batch, heads, queries, keys, dim: 4 }, random, {
    scale,
    softcap,
    ...(isPacked && { sequences }),
    ...(hasBias && {
      bias: tensor('fp32', [units, heads, ...(isPacked ? [3, 5] : [queries, keys])], random),
    }),
    ...(slopesApart !== null && {
      alibiSlopes: tensor('fp32', slopesApart ? [units, heads] : [heads], () => between(0.1, 1)),
    }),
  });
}

/** Where a pair is: its sequence or batch entry, and its places there. */
function placeOf(problem: Problem, row: number, key: number) {
  const { heads } = problemShape(problem);
  const [head, query] = [Math.floor(row / queries), row % queries];
  if (problem.sequences === undefined)
    return { unit: Math.floor(head / heads), head: head % heads, query, key, queries, keys };
  const unit = query < sequences[1].firstQuery ? 0 : 1;
  const own = sequences[unit];
  const at = { query: query - own.firstQuery, key: key - own.firstKey };
  return { unit, head, ...at, queries: own.queries, keys: own.keys };
}

/** A head of the same batch entry. */
type Other = (head: number) => number;

const own: Other = (head) => head;

/** What is added to the score of a pair: its bias times a factor, or that of another head. */
function biasOf(problem: Problem, factor: number, other = own) {
  const { heads } = problemShape(problem);
  const bias = problem.bias && decodeTensor(problem.bias);
  const [rows, columns] = problem.bias?.shape.slice(-2) ?? [0, 0];
  return (row: number, at: number) => {
    const { unit, head, query, key } = placeOf(problem, row, at);
    const from = (unit * heads + other(head)) * rows + query;
    return bias === undefined ? 0 : factor * bias[from * columns + key];
  };
}

/** A distance of a query and a key of a sequence. */
type Distance = (query: number, key: number, corner: number) => number;

const usualDistance: Distance = (i, j, corner) => Math.abs(i + corner - j);

/** What ALiBi adds to the score of a pair, by its distance and its head. */
function slopeOf(problem: Problem, distance = usualDistance, other = own) {
  const { heads } = problemShape(problem);
  const { alibiSlopes } = problem;
  const slopes = alibiSlopes && decodeTensor(alibiSlopes);
  return (row: number, at: number) => {
    const { unit, head, query, key, ...count } = placeOf(problem, row, at);
    const first = alibiSlopes?.shape.length === 2 ? unit * heads : 0;
    const far = distance(query, key, count.keys - count.queries);
    return slopes === undefined ? 0 : -slopes[first + other(head)] * far;
  };
}

/** What a faulty pass does, where it is not what is right. */
interface Wanted {
  readonly scale?: number;
  readonly outerScale?: number;
  readonly softcap?: null;
  readonly slopePower?: number;
  readonly bias?: ReturnType<typeof biasOf>;
  readonly alibi?: ReturnType<typeof slopeOf>;
}

/** All faults of a problem's scores, by what is said of them. */
function wantedFaults(problem: Problem): Map<string, Wanted> {
  const { scale, softcap, bias, alibiSlopes } = problem;
  const { heads } = problemShape(problem);
  const back = 'in the backward pass';
  const others: [string, Other][] =
    heads === 1
      ? []
      : [
          ['of the next head', (head) => (head === heads - 1 ? 0 : head + 1)],
          ['of the head before', (head) => (head === 0 ? heads - 1 : head - 1)],
          ['of the first head', () => 0],
        ];
  const all: [string, Wanted][] = [];
  const slope = "the softcap's derivative 1 − tanh²";
  if (softcap !== null)
    all.push(
      [`softcap-derivative-missing: ${slope} is missing in dS`, { slopePower: 0 }],
      [`softcap-derivative-twice: ${slope} is applied twice in dS`, { slopePower: 2 }],
      [`softcap-missing: the softcap is left out ${back}`, { softcap: null }],
      [
        `softcap-missing: the softcap and its derivative are left out ${back}`,
        { softcap: null, slopePower: 0 },
      ],
    );
  if (bias !== undefined) {
    const times = (factor: number): Wanted => ({ bias: biasOf(problem, factor) });
    all.push(
      [`bias-missing: the bias is left out of the scores ${back}`, times(0)],
      [`bias-scaled: the bias is multiplied by the scale ${back}`, times(scale)],
      [`bias-scaled: the bias is divided by the scale ${back}`, times(1 / scale)],
      [`bias-scaled: the bias is taken for one in base 2 ${back}`, times(Math.log(2))],
      [`bias-sign: the bias is subtracted from the scores ${back}`, times(-1)],
    );
    if (alibiSlopes === undefined)
      for (const [words, other] of others)
        all.push([
          `bias-of-other-head: the bias is that ${words} ${back}`,
          { bias: biasOf(problem, 1, other) },
        ]);
  }
  if (alibiSlopes !== undefined) {
    const by = (distance: Distance): Wanted => ({ alibi: slopeOf(problem, distance) });
    const words = "ALiBi's distance";
    all.push(
      [`alibi-missing: ALiBi's slopes are left out of the scores ${back}`, by(() => 0)],
      [
        `alibi-top-left: ${words} is measured from the first query and key, not from the last ${back}`,
        by((i, j) => Math.abs(j - i)),
      ],
      [`alibi-sign: ${words} has the other sign ${back}`, by((...at) => -usualDistance(...at))],
      [
        `alibi-signed: ${words} is of the signed distance, not of its size ${back}`,
        by((i, j, corner) => corner + i - j),
      ],
      [
        `alibi-off-by-one: ${words} is measured from the key behind ${back}`,
        by((i, j, corner) => Math.abs(i + 1 + corner - j)),
      ],
    );
    if (bias === undefined)
      for (const [of, other] of others)
        all.push([
          `alibi-of-other-head: ALiBi's slope is that ${of} ${back}`,
          { alibi: slopeOf(problem, usualDistance, other) },
        ]);
  }
  for (const [other, words] of [
    [1, 'are not scaled'],
    [scale ** 2, 'are scaled twice'],
    [0.5, 'have the usual scale 1/√d'],
    [scale * Math.log(2), 'are taken for those in base 2'],
    [scale / Math.log(2), 'are multiplied by log2 e twice'],
  ] as const)
    if (other !== scale)
      all.push([
        `score-scale: scores ${words} as the backward pass makes P again`,
        { scale: other, outerScale: scale },
      ]);
  return new Map(all);
}

/** Expects a change to be the wanted one, pair by pair. */
function expectChange(problem: Problem, change: BackwardChange, wanted: Wanted): void {
  const { scale, softcap } = problem;
  const { batch, heads } = problemShape(problem);
  const { law, slopePower, outerScale, ...rest } = change;
  expect(rest).toEqual({});
  expect([slopePower, outerScale]).toEqual([wanted.slopePower, wanted.outerScale]);

  expect(law === undefined).toBe(Object.keys(wanted).every((name) => name === 'slopePower'));
  if (law === undefined) return;
  expectAlike(law.scale, wanted.scale ?? scale, 'scale');
  expect(law.softcap).toBe(wanted.softcap === null ? null : softcap);
  const { bias = biasOf(problem, 1), alibi = slopeOf(problem) } = wanted;
  // What was there before is overwritten.
  const target = new Float64Array(keys).fill(5);
  for (let row = 0; row < batch * heads * queries; row++) {
    if (law.addend === null) target.fill(0);
    law.addend?.(Math.floor(row / queries), row % queries, 0, target);
    for (let key = 0; key < keys; key++) {
      const at = placeOf(problem, row, key);
      if (at.key < 0 || at.key >= at.keys) continue;
      expectAlike(target[key], bias(row, key) + alibi(row, key), `row ${row}, key ${key}`);
    }
  }
}

describe('faults of scores', () => {
  it('are all that a problem can have, and do what they say', () => {
    fc.assert(
      fc.property(drawns, (drawn) => {
        const problem = problemOf(drawn);
        const wanted = wantedFaults(problem);
        const found = [...scoreFaults(problem)];
        const names = found.map(({ id, sentence }) => `${id}: ${sentence}`);
        expect(names).toEqual([...wanted.keys()]);
        found.forEach(({ change }, i) => expectChange(problem, change, wanted.get(names[i])!));
      }),
      { numRuns: 40 },
    );
  });
});
