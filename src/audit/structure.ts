import {
  forEachWeightTile,
  type AttentionReference,
  type Progress,
  type WeightTile,
} from '../../oracles/index.js';
import { formats, smallestNormal, type FormatName } from '../formats/index.js';
import type { Problem } from '../problem.js';
import { outputRounding, type KernelBound } from './bound.js';
import { ErrorPool, NearlyEqual } from './error-pool.js';

/**
 * The projections of a kernel's error that rounding leaves near zero and a bug does not: `scale` is
 * the regression slope of the output on the oracle, less one (Σ r·O / Σ O², relative); `bias` the
 * mean signed error over the columns (absolute).
 */
export const structureTests = ['scale', 'bias'] as const;
export type StructureTest = (typeof structureTests)[number];

/** Rows that a statistic is pooled over: one query, a tile of 128 queries, a head. */
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

/** Weights in one of 2^7 steps of an octave are taken to round alike; below 2^-40 all of them. */
const weightGroups = new NearlyEqual(7, -40, 0);

/** Outputs that agree to an eighth of an ulp are taken to round alike. */
function outputGroups(format: FormatName): NearlyEqual {
  return new NearlyEqual(Math.min(formats[format].precision + 2, 13), -40, 20);
}

/**
 * z such that a sub-Gaussian statistic exceeds z standard deviations with probability at most
 * `falseAlarmRate` in any of `count` tests (2·exp(−z²/2) each).
 */
export function alarmDeviations(count: number, falseAlarmRate: number): number {
  return Math.sqrt(2 * Math.log((2 * Math.max(count, 1)) / falseAlarmRate));
}

/** What one statistic has collected over the rows of its scope. */
class Statistic {
  readonly weights = new ErrorPool(weightGroups.size);
  readonly outputs: ErrorPool;
  /** Σ r·X and Σ X². */
  signed = 0;
  norm = 0;
  /** Σ of squared random accumulation errors, Σ of systematic ones. */
  accumulation = 0;
  systematic = 0;

  constructor(outputGroupCount: number) {
    this.outputs = new ErrorPool(outputGroupCount);
  }

  merge(row: Statistic, weightAmplitude: number): void {
    this.weights.merge(row.weights, weightAmplitude);
    this.outputs.merge(row.outputs, 1);
    this.signed += row.signed;
    this.norm += row.norm;
    this.accumulation += row.accumulation;
    this.systematic += row.systematic;
  }

  clear(): void {
    this.weights.clear();
    this.outputs.clear();
    this.signed = 0;
    this.norm = 0;
    this.accumulation = 0;
    this.systematic = 0;
  }

  tolerance(deviations: number): number {
    return (
      this.weights.tolerance(deviations) +
      this.outputs.tolerance(deviations) +
      deviations * Math.sqrt(this.accumulation) +
      this.systematic
    );
  }
}

/** Adds one tile's weights times projections to the pools of its rows. */
function collectWeights(
  pools: readonly ErrorPool[],
  tile: WeightTile,
  projection: Float64Array,
  toLargest: Float64Array,
): void {
  const { weights, rows, keys, stride } = tile;
  for (let i = 0; i < rows; i++) {
    const pool = pools[i]!;
    const factor = toLargest[i]!;
    for (let at = i * stride; at < i * stride + keys; at++) {
      const w = weights[at]!;
      if (w !== 0) pool.add(weightGroups.group(w * factor), w * projection[at]!);
    }
  }
}

/**
 * The structure tests of an audit: for each row, for each tile of 128 query rows and for each head,
 * the slope and the bias of the kernel's error against what rounding errors can cause.
 *
 * The threshold rests on these premises. The errors of the weights (rounding of P, exponential, dot
 * product) are uniform within their bound, the same for weights equal to within 1/128 of an octave
 * (measured against the row's largest), and independent otherwise; the roundings of O are uniform
 * within half an ulp, the same for outputs equal to an eighth of an ulp, and independent otherwise.
 * Where a worst case is less than that, it counts. Accumulation adds √n roundings of the sum of
 * magnitudes, independent from row to row, and a bias of n roundings of the sum itself. All tests
 * together raise a false alarm with probability at most `falseAlarmRate`.
 *
 * Rows that hold NaN or infinities, rows of zeros and rows whose squares overflow fp64 are left out. Returns, per test and scope, the
 * result that is largest relative to its threshold, and the deviation Σ w|v − O| of every element,
 * which falls off on the way.
 */
export function structureResults(
  problem: Problem,
  reference: AttentionReference,
  out: Float64Array,
  outputFormat: FormatName,
  bound: KernelBound,
  falseAlarmRate: number,
  progress?: Progress,
): { readonly results: StructureResult[]; readonly deviation: Float64Array } {
  const { shape } = reference;
  const { queries, vDim } = shape;
  const headCount = shape.batch * shape.heads;
  const groups = outputGroups(outputFormat);
  const smallest = smallestNormal(formats[outputFormat]);
  // Subnormal outputs are as far apart as the smallest normal ones.
  const outputGroup = (magnitude: number): number =>
    groups.group(magnitude < smallest ? magnitude + smallest : magnitude);
  const ones = new Float64Array(reference.out.length).fill(1);
  const directions: Record<StructureTest, Float64Array> = { scale: reference.out, bias: ones };
  const tests = structureTests.map((test) => ({
    test,
    direction: directions[test],
    rows: Array.from({ length: 64 }, () => new ErrorPool(weightGroups.size)),
    row: new Statistic(groups.size),
    tile: new Statistic(groups.size),
    head: new Statistic(groups.size),
    worst: new Map<StructureScope, StructureResult>(),
  }));
  const testCounts: Record<StructureScope, number> = {
    row: headCount * queries,
    tile: headCount * Math.ceil(queries / structureTileRows),
    head: headCount,
  };
  const share = falseAlarmRate / (structureTests.length * structureScopes.length);
  const deviations = (scope: StructureScope) => alarmDeviations(testCounts[scope], share);

  const judge = (
    entry: (typeof tests)[number],
    scope: StructureScope,
    statistic: Statistic,
    where: Pick<StructureResult, 'head' | 'firstRow' | 'rows'>,
  ) => {
    if (statistic.norm === 0) return;
    const result: StructureResult = {
      test: entry.test,
      scope,
      ...where,
      statistic: statistic.signed / statistic.norm,
      threshold: statistic.tolerance(deviations(scope)) / statistic.norm,
    };
    const worst = entry.worst.get(scope);
    const ratio = ({ statistic, threshold }: StructureResult) => Math.abs(statistic) / threshold;
    if (worst === undefined || ratio(result) > ratio(worst)) entry.worst.set(scope, result);
  };

  /** Turns the collected weights of a row into its statistic and passes it on to tile and head. */
  const finishRow = (row: number, local: number) => {
    const query = row % queries;
    const head = Math.floor(row / queries);
    const { typicalWeight, addition, normalisation, floor, keys, weightRounding } = bound.row(row);
    for (const entry of tests) {
      const statistic = entry.row;
      let signed = 0;
      let norm = 0;
      let magnitude = 0;
      let own = 0;
      for (let c = row * vDim; c < (row + 1) * vDim; c++) {
        const x = entry.direction[c]!;
        const exact = reference.out[c]!;
        signed += (out[c]! - exact) * x;
        norm += x * x;
        magnitude += reference.magnitude[c]! * Math.abs(x);
        own += Math.abs(exact * x);
        const half = outputRounding(outputFormat, exact, 0);
        statistic.outputs.add(outputGroup(Math.abs(exact)), half * x * Math.sign(exact));
      }
      if (Number.isFinite(signed) && norm > 0 && norm < Infinity && keys > 0) {
        statistic.signed = signed;
        statistic.norm = norm;
        statistic.accumulation = keys * (addition * magnitude) ** 2;
        statistic.systematic =
          (typicalWeight + normalisation) * own + floor * Math.sqrt(norm * vDim);
        statistic.weights.merge(entry.rows[local]!, weightRounding + typicalWeight);
        judge(entry, 'row', statistic, { head, firstRow: query, rows: 1 });
        entry.tile.merge(statistic, 1);
        entry.head.merge(statistic, 1);
      }
      statistic.clear();
      const tileEnds = query % structureTileRows === structureTileRows - 1 || query === queries - 1;
      if (tileEnds) {
        const firstRow = query - (query % structureTileRows);
        judge(entry, 'tile', entry.tile, { head, firstRow, rows: query - firstRow + 1 });
        entry.tile.clear();
      }
      if (query === queries - 1) {
        judge(entry, 'head', entry.head, { head, firstRow: 0, rows: queries });
        entry.head.clear();
      }
    }
  };

  let finished = 0;
  const toLargest = new Float64Array(64);
  const deviation = forEachWeightTile(
    problem,
    reference,
    tests.map(({ direction }) => direction),
    {
      begin: (head, firstRow, rows) => {
        for (let i = 0; i < rows; i++) {
          const row = head * queries + firstRow + i;
          toLargest[i] = Math.exp(reference.lse[row]! - reference.maximum[row]!);
        }
      },
      visit: (tile) =>
        tests.forEach((entry, index) =>
          collectWeights(entry.rows, tile, tile.projections[index]!, toLargest),
        ),
      end: (head, firstRow, rows) => {
        for (let i = 0; i < rows; i++) {
          finishRow(head * queries + firstRow + i, i);
          for (const { rows: pools } of tests) pools[i]!.clear();
        }
        finished += rows;
        progress?.(finished / (headCount * queries));
      },
    },
  );
  return { results: tests.flatMap(({ worst }) => [...worst.values()]), deviation };
}
