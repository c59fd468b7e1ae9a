import { describe, expect, it } from 'vitest';
import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import { KernelBound } from '../../src/audit/index.js';
import { RowReader } from '../../src/audit/diagnosis/row-reader.js';
import { headRows } from '../../src/audit/parts/head-rows.js';
import { referenceRows } from '../../src/audit/parts/reference-rows.js';
import { planKeyTiles } from '../../src/audit/structure/key-tile-plan.js';
import type { RowErrors } from '../../src/audit/structure/key-tile-statistics.js';
import { testKeyTiles } from '../../src/audit/structure/key-tile-test.js';
import {
  keyTileKeys,
  WorstResults,
  type StructureResult,
} from '../../src/audit/structure/structure-result.js';
import {
  outputGroups,
  projectionFormat,
  weightGroups,
} from '../../src/audit/structure/structure-statistic.js';
import { problemShape, type Problem } from '../../src/problem/index.js';
import { filledProblem } from '../setup/problems.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

interface Sizes {
  readonly batch: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly queries: number;
  readonly keys: number;
}

const dim = 8;

function problemOf(sizes: Partial<Sizes>, changes: Partial<Problem> = {}): Problem {
  const wave = (seed: number) => (i: number) =>
    1.5 * Math.sin(seed + i * 1.7 + 0.013 * ((i * i) % 9973));
  return filledProblem(
    { dim, queries: 140, keys: 300, kvHeads: 1, ...sizes },
    { q: wave(1), k: wave(2), v: wave(3) },
    changes,
  );
}

/** The worst results of all tiles of keys. */
function keyTileResults(problem: Problem, errors: RowErrors): StructureResult[] {
  const { shape } = errors.reference;
  const { groups, limits } = planKeyTiles(problem, shape, 1e-10);
  const worst = new WorstResults();
  for (const group of groups) {
    const blocks = group.blocks.map(({ firstRow, rows }) => {
      const block = headRows(problem, shape, group.head, firstRow, rows);
      const first = group.head * shape.queries + firstRow;
      const reference = referenceRows(errors.reference, problemShape(block), first);
      const out = errors.out.subarray(first * dim, (first + rows) * dim);
      const bound = new KernelBound(block, reference, 'bf16');
      return {
        problem: block,
        errors: { ...errors, reference, out, bound },
        format: projectionFormat('bf16', 'bf16'),
      };
    });
    for (const result of testKeyTiles(group, blocks, limits).worst) worst.add(result);
  }
  return worst.list();
}

function judge(problem: Problem, reference: AttentionReference, out: Float64Array) {
  const bound = new KernelBound(problem, reference, 'bf16');
  const errors = {
    reference,
    out,
    outputFormat: 'bf16',
    bound,
    groups: outputGroups('bf16'),
    weightGroups: weightGroups('bf16'),
  } as const;
  return keyTileResults(problem, errors);
}

/** Per row: weights, and what leaving out keys [begin, end) makes of O; by plain loops. */
function withoutTile(reader: RowReader, reference: AttentionReference, row: number, tile: number) {
  const scores = reader.scores(row);
  const values = reader.values(reader.kvHead(row));
  const first = new Float64Array(dim);
  let weight = 0;
  scores.forEach((s, j) => {
    if (s === -Infinity || Math.floor(j / keyTileKeys) !== tile) return;
    const w = Math.exp(s - reference.quantities.lse.values[row]);
    weight += w;
    for (let c = 0; c < dim; c++)
      first[c] += w * (reference.quantities.out.values[row * dim + c] - values[j * dim + c]);
  });
  return { weight, first };
}

const masks: readonly (readonly [
  name: string,
  sizes: Partial<Sizes>,
  changes: Partial<Problem>,
])[] = [
  ['no mask', {}, {}],
  ['causal', { queries: 300 }, { causal: true }],
  ['causal, fewer queries than keys', {}, { causal: true }],
  ['causal, more queries than keys', { queries: 400, keys: 290 }, { causal: true }],
  ['a window', { queries: 300 }, { window: { left: 150, right: 140 } }],
  [
    'a window to the left, causal',
    { queries: 300 },
    { causal: true, window: { left: 160, right: 5 } },
  ],
  ['a window to the right', { queries: 200 }, { window: { left: -1, right: 60 } }],
  ['grouped heads in a batch', { batch: 2, heads: 4, kvHeads: 2, queries: 40 }, { softcap: 2 }],
];

describe.each(masks)('key tiles under %s', (_, sizes, changes) => {
  const problem = problemOf(sizes, changes);
  const reference = attentionOracle(problem);
  const { shape } = reference;
  const reader = new RowReader(problem, shape);
  const rows = reference.quantities.lse.values.length;

  inTurn('a tile left out by one head shows as 1 or more there, and nowhere else as much', () => {
    const head = shape.batch * shape.heads - 1;
    const out = reference.quantities.out.values.slice();
    for (let row = head * shape.queries; row < rows; row++) {
      const { weight, first } = withoutTile(reader, reference, row, 1);
      if (weight < 0.99)
        for (let c = 0; c < dim; c++) out[row * dim + c] += first[c] / (1 - weight);
    }
    const results = judge(problem, reference, out);
    expect(results.map(({ scope }) => scope)).toEqual(['tile', 'head']);
    for (const result of results) {
      expect(result).toMatchObject({ test: 'key-tile', head });
      expect(Math.abs(result.statistic)).toBeGreaterThan(100 * result.threshold);
    }
  });

  it('the statistic is the regression of the error on the effect of the tile', () => {
    // An error that is 0.3 times the effect of the last tile, to first order, gives 0.3 exactly.
    const tile = Math.ceil(shape.keys / keyTileKeys) - 1;
    const out = reference.quantities.out.values.slice();
    for (let row = 0; row < rows; row++) {
      const { first } = withoutTile(reader, reference, row, tile);
      for (let c = 0; c < dim; c++) out[row * dim + c] += 0.3 * first[c];
    }
    const results = judge(problem, reference, out).filter(
      ({ firstKey }) => firstKey === tile * keyTileKeys,
    );
    expect(results).not.toEqual([]);
    for (const { statistic } of results) expect(statistic).toBeCloseTo(0.3, 9);
  });

  it('exact outputs give zero', () => {
    for (const { statistic } of judge(problem, reference, reference.quantities.out.values))
      expect(Math.abs(statistic)).toBe(0);
  });
});

describe('key tiles', () => {
  it('are not tested where there is one', () => {
    const problem = problemOf({ keys: 128 });
    const reference = attentionOracle(problem);
    expect(judge(problem, reference, reference.quantities.out.values)).toEqual([]);
  });

  it('of long problems are tested against some blocks of queries, the last among them', () => {
    const problem = problemOf({ queries: 520, keys: 520 }, { causal: true });
    const reference = attentionOracle(problem);
    const out = reference.quantities.out.values.slice();
    const reader = new RowReader(problem, reference.shape);
    for (let row = 512; row < 520; row++) {
      const { weight, first } = withoutTile(reader, reference, row, 2);
      for (let c = 0; c < dim; c++) out[row * dim + c] += first[c] / (1 - weight);
    }
    const [ofTile] = judge(problem, reference, out);
    expect(ofTile).toMatchObject({
      scope: 'tile',
      firstRow: 512,
      rows: 8,
      firstKey: 256,
      keys: 128,
    });
    expect(ofTile!.statistic).toBeGreaterThan(1);
    expect(ofTile!.statistic).toBeGreaterThan(10 * ofTile!.threshold);
  });
});
