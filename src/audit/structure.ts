import {
  forEachWeightTile,
  type AttentionReference,
  type Progress,
  type WeightVisitor,
} from '../../oracles/index.js';
import type { FormatName } from '../formats/index.js';
import type { Problem } from '../problem.js';
import type { KernelBound } from './bound.js';
import { testKeyTiles } from './key-tile-test.js';
import {
  alarmDeviations,
  collectRow,
  collectWeights,
  createRowPools,
  outputGroups,
  Statistic,
  structureTileRows,
  walkRows,
  weightGroups,
} from './structure-statistic.js';
import { workingFormat } from './premises.js';

/**
 * The projections of a kernel's error that rounding leaves near zero and a bug does not: `scale` is
 * the regression slope of the output on the oracle, less one (Σ r·O / Σ O², relative); `bias` the
 * mean signed error over the columns (absolute); `key-tile` the part of a tile of keys' contribution
 * that is missing (Σ r·D / Σ D², D what leaving the tile out does to O, to first order in its weight).
 */
export const structureTests = ['scale', 'bias', 'key-tile'] as const;
/** One of {@link structureTests}. */
export type StructureTest = (typeof structureTests)[number];

/** Rows that a statistic is pooled over: one query, a tile of 128 queries, a head. */
export const structureScopes = ['row', 'tile', 'head'] as const;
/** One of {@link structureScopes}. */
export type StructureScope = (typeof structureScopes)[number];

/** The tests that every row enters, in every scope. */
const rowTests = ['scale', 'bias'] as const;
type RowTest = (typeof rowTests)[number];

/** Key tiles are tested over a tile of queries and over a head. */
const keyTileScopes = 2;

/** One statistic against its threshold. */
export interface StructureResult {
  readonly test: StructureTest;
  readonly scope: StructureScope;
  /** Flat index over [batch, heads]. */
  readonly head: number;
  /** First query row and number of rows pooled. */
  readonly firstRow: number;
  readonly rows: number;
  /** First key and number of keys of a key tile; null for the tests that are about all keys. */
  readonly firstKey: number | null;
  readonly keys: number | null;
  readonly statistic: number;
  readonly threshold: number;
}

/**
 * The structure tests of an audit: for each row, for each tile of 128 query rows and for each head,
 * the slope and the bias of the kernel's error against what rounding errors can cause; and so for the
 * contribution of each tile of keys (see `testKeyTiles`).
 *
 * The threshold rests on these premises. The errors of the weights (rounding of P, exponential, dot
 * product) are uniform within their bound, the same for weights equal to within 1/128 of an octave
 * (measured against the row's largest), and independent otherwise; the roundings of O are uniform
 * within half an ulp, the same for outputs equal to an eighth of an ulp, and independent otherwise.
 * Where a worst case is less than that, it counts. Accumulation adds √n roundings of the sum of
 * magnitudes, independent from row to row, and a bias of n roundings of the sum itself. All tests
 * together raise a false alarm with probability at most `falseAlarmRate`.
 *
 * Rows that hold NaN or infinities, rows of zeros and rows whose squares overflow fp64 are left out.
 * Returns, per test and scope, the result that is largest relative to its threshold.
 *
 * @param observer sees the weights of all rows as well, since the walk over them is made anyway
 */
export function structureResults(
  problem: Problem,
  reference: AttentionReference,
  out: Float64Array,
  outputFormat: FormatName,
  bound: KernelBound,
  falseAlarmRate: number,
  progress?: Progress,
  observer?: WeightVisitor,
): StructureResult[] {
  const { shape } = reference;
  const { queries, vDim } = shape;
  const headCount = shape.batch * shape.heads;
  const groups = outputGroups(outputFormat);
  const errors = {
    ...{ reference, out, outputFormat, bound, groups },
    weightGroups: weightGroups(workingFormat(problem.v.format, outputFormat)),
  };
  const ones = new Float64Array(reference.out.length).fill(1);
  const directions: Record<RowTest, Float64Array> = { scale: reference.out, bias: ones };
  const pools = createRowPools(rowTests.length);
  const tests = rowTests.map((test, index) => ({
    test,
    direction: directions[test],
    rows: pools[index]!,
    row: new Statistic(),
    tile: new Statistic(),
    head: new Statistic(),
    worst: new Map<StructureScope, StructureResult>(),
  }));
  const testCounts: Record<StructureScope, number> = {
    row: headCount * queries,
    tile: headCount * Math.ceil(queries / structureTileRows),
    head: headCount,
  };
  const share = falseAlarmRate / (rowTests.length * structureScopes.length + keyTileScopes);
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
      firstKey: null,
      keys: null,
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
    for (const entry of tests) {
      const statistic = entry.row;
      const direction = entry.direction.subarray(row * vDim, (row + 1) * vDim);
      if (collectRow(statistic, errors, row, direction, entry.rows[local]!)) {
        judge(entry, 'row', statistic, { head, firstRow: query, rows: 1 });
        entry.tile.merge(statistic, 1);
        entry.head.merge(statistic, 1);
      }
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
  const toLargest = new Float64Array(walkRows);
  forEachWeightTile(
    problem,
    reference,
    tests.map(({ direction }) => direction),
    {
      begin: (head, firstRow, rows) => {
        for (let i = 0; i < rows; i++) {
          const row = head * queries + firstRow + i;
          toLargest[i] = Math.exp(reference.lse[row]! - reference.maximum[row]!);
        }
        observer?.begin(head, firstRow, rows);
      },
      visit: (tile) => {
        collectWeights(pools, errors.weightGroups, tile, toLargest);
        observer?.visit(tile);
      },
      end: (head, firstRow, rows) => {
        observer?.end(head, firstRow, rows);
        for (let i = 0; i < rows; i++) {
          finishRow(head * queries + firstRow + i, i);
          for (const ofTest of pools) ofTest[i]!.clear();
        }
        finished += rows;
        progress?.(finished / (headCount * queries));
      },
    },
  );
  const keyTiles = testKeyTiles(problem, errors, share);
  return [...tests.flatMap(({ worst }) => [...worst.values()]), ...keyTiles];
}
