import { forEachWeightTile, type AttentionReference, type Progress } from '../../oracles/index.js';
import type { FormatName } from '../formats/index.js';
import type { Problem } from '../problem.js';
import { outputRounding, type KernelBound } from './bound.js';

/**
 * The projections of a row's error that a rounding error leaves near zero and a bug does not:
 * `scale` is the regression slope of the output on the oracle, less one (Σ r·O / Σ O², relative);
 * `bias` the mean signed error over the row's columns (absolute).
 */
export const structureTests = ['scale', 'bias'] as const;
export type StructureTest = (typeof structureTests)[number];

/** Rows that a statistic is pooled over. */
export const structureScopes = ['row', 'tile', 'head'] as const;
export type StructureScope = (typeof structureScopes)[number];

/** Query rows per tile in the tile scope. */
export const structureTileRows = 128;

/** One statistic against its threshold. */
export interface StructureResult {
  readonly test: StructureTest;
  readonly scope: StructureScope;
  /** Flat index over [batch, heads]. */
  readonly head: number;
  /** First query row and number of rows pooled. */
  readonly firstRow: number;
  readonly rows: number;
  readonly statistic: number;
  readonly threshold: number;
}

/** Weight buckets per octave: 2^7, so that two weights in one bucket can round alike in any format. */
const bucketBits = 7;
/** Weights below 2^-octaves share the last bucket. */
const octaves = 40;
const buckets = (octaves + 1) << bucketBits;

/** Sums over the weights of one row that fall in one bucket. */
interface Buckets {
  /** Σ (w a)² and Σ w a, [rows × buckets] */
  readonly squares: Float64Array;
  readonly sums: Float64Array;
}

/**
 * z such that a sub-Gaussian statistic exceeds z standard deviations with probability at most
 * `falseAlarmRate` in any of `count` tests (Hoeffding: 2·exp(−z²/2) each).
 */
export function alarmDeviations(count: number, falseAlarmRate: number): number {
  return Math.sqrt(2 * Math.log((2 * Math.max(count, 1)) / falseAlarmRate));
}

/** Adds one tile of weights times projections to the buckets of its rows. */
function fillBuckets(
  target: Buckets,
  weights: Float64Array,
  projection: Float64Array,
  rows: number,
  keys: number,
  word: { readonly float: Float32Array; readonly bits: Uint32Array },
): void {
  const lowest = (127 - octaves) << bucketBits;
  for (let i = 0; i < rows; i++) {
    const base = i * buckets;
    for (let j = 0; j < keys; j++) {
      const w = weights[i * 64 + j]!;
      if (w === 0) continue;
      word.float[0] = w;
      const at = base + Math.max((word.bits[0]! >>> (23 - bucketBits)) - lowest, 0);
      const x = w * projection[i * 64 + j]!;
      target.squares[at]! += x * x;
      target.sums[at]! += x;
    }
  }
}

/**
 * Σ over buckets of max(Σ (w a)², (Σ w a)²): within a bucket roundings may be independent or all
 * alike (equal weights round alike), across buckets they are taken as independent.
 */
function bucketVariance(target: Buckets, row: number): number {
  let variance = 0;
  for (let at = row * buckets; at < (row + 1) * buckets; at++) {
    const sum = target.sums[at]!;
    variance += Math.max(target.squares[at]!, sum * sum);
  }
  return variance;
}

/** Variance of the output's rounding under a projection; equal outputs are taken to round alike. */
function outputVariance(
  reference: Float64Array,
  direction: Float64Array,
  start: number,
  count: number,
  format: FormatName,
): number {
  const groups = new Map<number, number>();
  for (let c = start; c < start + count; c++) {
    const value = reference[c]!;
    const key = Math.fround(Math.abs(value));
    const amplitude = outputRounding(format, value, 0) * Math.abs(direction[c]!);
    groups.set(key, (groups.get(key) ?? 0) + amplitude);
  }
  let variance = 0;
  for (const amplitude of groups.values()) variance += amplitude ** 2;
  return variance;
}

/**
 * The structure tests of an audit: for each row, for each tile of 128 query rows and for each head,
 * the slope and the bias of the kernel's error against what rounding errors can cause.
 *
 * The threshold of a row rests on these premises: the errors of the weights (rounding, exponential,
 * dot product) are independent of one another and of V with mean zero unless weights are equal to
 * within a bucket, those of O unless outputs are equal; each is bounded, so that sums of them obey
 * Hoeffding's inequality; accumulation adds √n roundings of the sum of magnitudes and a truncation
 * bias of n roundings of the sum itself; a weight error common to the whole row may take its worst
 * value. Rows are pooled by adding thresholds: no independence between rows is assumed. All tests together raise a false alarm with probability at
 * most `falseAlarmRate`.
 *
 * Rows that hold NaN or infinities, and rows of zeros, are left out. Returns, per test and scope, the
 * result that is largest relative to its threshold.
 */
export function structureResults(
  problem: Problem,
  reference: AttentionReference,
  out: Float64Array,
  outputFormat: FormatName,
  bound: KernelBound,
  falseAlarmRate: number,
  progress?: Progress,
): StructureResult[] {
  const { shape } = reference;
  const { queries, vDim } = shape;
  const rows = reference.lse.length;
  const deviations = alarmDeviations(rows * 3 * structureTests.length, falseAlarmRate);
  const ones = new Float64Array(reference.out.length).fill(1);
  const directions: Record<StructureTest, Float64Array> = { scale: reference.out, bias: ones };
  const float = new Float32Array(1);
  const word = { float, bits: new Uint32Array(float.buffer) };
  const state = structureTests.map(() => ({
    squares: new Float64Array(64 * buckets),
    sums: new Float64Array(64 * buckets),
  }));
  /** Per test and row: signed statistic, its threshold and its normaliser. */
  const signed = structureTests.map(() => new Float64Array(rows));
  const allowed = structureTests.map(() => new Float64Array(rows));
  const norms = structureTests.map(() => new Float64Array(rows));

  const finishRow = (row: number, local: number) => {
    const rowBound = bound.row(row);
    const n = rowBound.keys;
    const start = row * vDim;
    structureTests.forEach((test, index) => {
      const direction = directions[test];
      let statistic = 0;
      let norm = 0;
      let magnitude = 0;
      let own = 0;
      for (let c = start; c < start + vDim; c++) {
        const x = direction[c]!;
        statistic += (out[c]! - reference.out[c]!) * x;
        norm += x * x;
        magnitude += reference.magnitude[c]! * Math.abs(x);
        own += Math.abs(reference.out[c]! * x);
      }
      if (!Number.isFinite(statistic) || norm === 0) return;
      const { weight, typicalWeight, accumulation, elementwise } = rowBound.parts;
      const variance =
        (rowBound.weightRounding + typicalWeight) ** 2 * bucketVariance(state[index]!, local) +
        outputVariance(reference.out, direction, start, vDim, outputFormat) +
        (Math.sqrt(n) * accumulation * magnitude) ** 2;
      signed[index]![row] = statistic;
      allowed[index]![row] =
        deviations * Math.sqrt(variance) +
        (2 * weight + n * accumulation + 4 * elementwise) * own +
        rowBound.floor * Math.sqrt(norm * vDim);
      norms[index]![row] = norm;
    });
  };

  let block = -1;
  let blockRows = 0;
  const flush = () => {
    for (let i = 0; i < blockRows; i++) finishRow(block + i, i);
    for (const { squares, sums } of state) {
      squares.fill(0);
      sums.fill(0);
    }
  };
  forEachWeightTile(
    problem,
    reference,
    structureTests.map((test) => directions[test]),
    (head, tile) => {
      const first = head * queries + tile.firstRow;
      if (first !== block) {
        if (block >= 0) flush();
        block = first;
        blockRows = tile.rows;
      }
      structureTests.forEach((_, index) =>
        fillBuckets(
          state[index]!,
          tile.weights,
          tile.projections[index]!,
          tile.rows,
          tile.keys,
          word,
        ),
      );
    },
    progress,
  );
  if (block >= 0) flush();

  return structureTests.flatMap((test, index) =>
    structureScopes.map((scope) =>
      worstGroup(test, scope, queries, signed[index]!, allowed[index]!, norms[index]!),
    ),
  );
}

/** Pools rows by scope and returns the group with the largest statistic relative to its threshold. */
function worstGroup(
  test: StructureTest,
  scope: StructureScope,
  queries: number,
  signed: Float64Array,
  allowed: Float64Array,
  norms: Float64Array,
): StructureResult {
  const size = scope === 'row' ? 1 : scope === 'tile' ? structureTileRows : queries;
  let worst: StructureResult = {
    test,
    scope,
    head: 0,
    firstRow: 0,
    rows: 0,
    statistic: 0,
    threshold: 0,
  };
  let worstRatio = -1;
  for (let head = 0; head * queries < signed.length; head++)
    for (let firstRow = 0; firstRow < queries; firstRow += size) {
      const rows = Math.min(size, queries - firstRow);
      let statistic = 0;
      let threshold = 0;
      let norm = 0;
      for (let row = head * queries + firstRow, i = 0; i < rows; i++, row++) {
        statistic += signed[row]!;
        threshold += allowed[row]!;
        norm += norms[row]!;
      }
      if (norm === 0) continue;
      const ratio = Math.abs(statistic) / threshold;
      if (ratio <= worstRatio) continue;
      worstRatio = ratio;
      worst = {
        test,
        scope,
        head,
        firstRow,
        rows,
        statistic: statistic / norm,
        threshold: threshold / norm,
      };
    }
  return worst;
}
