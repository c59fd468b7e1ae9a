import { describe, expect, it } from 'vitest';
import { headRows } from '../../../src/audit/parts/head-rows.js';
import {
  checkProblem,
  keptWeights,
  problemMask,
  scoreLaw,
  type Problem,
  type ProblemFeatures,
} from '../../../src/problem/index.js';
import { testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { filledProblem, tensor, uniformNumbers } from '../../setup/problems.js';

const inTurn = turns(import.meta.url);

const [batch, heads, kvHeads, queries, keys] = [2, 4, 2, 23, 31];

const draw = uniformNumbers(testSeed);

function truths(shape: readonly number[], share = 0.6) {
  const length = shape.reduce((product, size) => product * size, 1);
  return { shape, data: Uint8Array.from({ length }, () => (draw() < share ? 1 : 0)) };
}

function integers(shape: readonly number[], value: (i: number) => number) {
  const length = shape.reduce((product, size) => product * size, 1);
  return { shape, data: Int32Array.from({ length }, (_, i) => value(i)) };
}

const normal = () => draw() * 2 - 1;
const sequences = [
  { firstQuery: 0, queries: 9, firstKey: 0, keys: 20 },
  { firstQuery: 9, queries: 0, firstKey: 20, keys: 0 },
  { firstQuery: 9, queries: 14, firstKey: 20, keys: 11 },
];

const cases: Readonly<Record<string, Partial<Problem>>> = {
  causal: { causal: true },
  'a window': { window: { left: 5, right: 2 } },
  'a mask of all sizes': { mask: truths([batch, heads, queries, keys]) },
  'a mask by head': { mask: truths([heads, 1, keys]) },
  'a mask by batch': { mask: truths([batch, 1, queries, 1]) },
  'a mask of keys': { mask: truths([keys]) },
  'a bias by head': { bias: tensor('fp32', [1, heads, queries, keys], normal) },
  'a bias by batch, causal': {
    causal: true,
    bias: tensor('bf16', [batch, 1, 1, keys], normal),
  },
  slopes: { causal: true, alibiSlopes: tensor('fp32', [heads], normal) },
  'slopes by batch': { alibiSlopes: tensor('fp32', [batch, heads], normal) },
  segments: {
    segments: {
      queries: integers([batch, queries], (i) => Math.floor(i / 6)),
      keys: integers([batch, keys], (i) => Math.floor(i / 8)),
    },
  },
  'segments of all batches, with a prefix': {
    causal: true,
    prefix: 3,
    segments: {
      queries: integers([queries], (i) => Math.floor(i / 6)),
      keys: integers([keys], (i) => Math.floor(i / 8)),
    },
  },
  blocks: {
    blockMask: {
      counts: integers([batch, heads, 6], () => Math.floor(draw() * 4)),
      indices: integers([batch, heads, 6, 4], (i) => i % 4),
      blockQueries: 4,
      blockKeys: 8,
    },
  },
  'blocks of all heads': {
    blockMask: {
      counts: integers([6], () => Math.floor(draw() * 4)),
      indices: integers([6, 4], (i) => i % 4),
      blockQueries: 4,
      blockKeys: 8,
    },
  },
  dropout: { dropout: { kept: truths([batch, heads, queries, keys]), probability: 0.4 } },
};

const packed: Readonly<Record<string, ProblemFeatures & { causal?: boolean }>> = {
  sequences: { sequences, causal: true },
  'sequences with masks of their own': { sequences, mask: truths([3, heads, 14, 20]) },
  'sequences with a bias by head': {
    sequences,
    bias: tensor('fp32', [1, heads, 14, 20], normal),
  },
  'sequences with slopes': { sequences, alibiSlopes: tensor('fp32', [3, heads], normal) },
};

/** Everything that the score law, the mask and dropout say of a row. */
function rowOf(problem: Problem, head: number, query: number) {
  const shape = checkProblem(problem);
  const added = new Float64Array(shape.keys);
  scoreLaw(problem, shape).addend?.(head, query, 0, added);
  const kept = new Uint8Array(shape.keys);
  keptWeights(problem, shape)?.fill(head, query, 0, kept);
  return { ranges: problemMask(problem, shape).ranges(head, query), added, kept };
}

/** Expects rows of a head, cut out, to be what they are in the problem. */
function expectSameRows(problem: Problem, first: number, rows: number): void {
  const shape = checkProblem(problem);
  for (let head = 0; head < shape.batch * shape.heads; head++) {
    const cut = headRows(problem, shape, head, first, rows);
    const kv = Math.floor(head / 2);
    const { data } = problem.k;
    expect(cut.k.data).toEqual(data.subarray(kv * keys * 4, (kv + 1) * keys * 4));
    const from = (head * shape.queries + first) * 4;
    expect(cut.q.data).toEqual(problem.q.data.subarray(from, from + rows * 4));
    for (let row = 0; row < rows; row++)
      expect(rowOf(cut, 0, row)).toEqual(rowOf(problem, head, first + row));
    // Rows of rows are theirs too.
    const half = Math.floor(rows / 2);
    const again = headRows(cut, checkProblem(cut), 0, half, rows - half);
    for (let row = half; row < rows; row++)
      expect(rowOf(again, 0, row - half)).toEqual(rowOf(problem, head, first + row));
  }
}

describe('rows of one head as a problem of their own', () => {
  for (const [name, features] of Object.entries(cases))
    inTurn(`see what they saw, with ${name}`, () => {
      const frame = { batch, heads, kvHeads, queries, keys, dim: 4 };
      const problem = filledProblem(frame, normal, features);
      expectSameRows(problem, 0, queries);
      expectSameRows(problem, 7, 11);
    });
  for (const [name, features] of Object.entries(packed))
    it(`see what they saw, with ${name}`, () => {
      const frame = { batch: 1, heads, kvHeads, queries, keys, dim: 4 };
      expectSameRows(filledProblem(frame, normal, features), 5, 11);
    });
});
