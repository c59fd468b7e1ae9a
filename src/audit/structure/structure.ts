import { forEachWeightTile, type Progress, type WeightVisitor } from '../../../oracles/index.js';
import { decodeTensor, formats } from '../../formats/index.js';
import type { Tensor } from '../../problem/index.js';
import { CommonOffset } from './common-offset.js';
import { NearlyEqual } from './error-pool.js';
import { createInstruments, surveyRows } from './instruments.js';
import { testKeyTiles } from './key-tile-test.js';
import { SlopeDispersion, type StructureInput, tanhError, testMeanLse } from './head-tests.js';
import {
  PooledProjections,
  leastRowTolerance,
  rowTolerance,
  rowVariances,
  type RowProjections,
  type Variances,
} from './pooled-projections.js';
import { RowCollector } from './row-projections.js';
import {
  alarmDeviations,
  outputGroups,
  structureTileRows,
  weightGroups,
} from './structure-statistic.js';
import {
  inTestOrder,
  structureScopes,
  WorstResults,
  type StructureResult,
  type StructureScope,
  type StructureTest,
} from './structure-result.js';

/**
 * The tests by scope, with the instruments that each is made with; `scale` is looked for with two of them.
 * One false alarm in as many as there are entries here, and dispersion, mean LSE and twice the key
 * tiles beside them, is an entry's.
 */
const entries = [
  { test: 'scale', scope: 'row', instrument: 0 },
  { test: 'scale', scope: 'tile', instrument: 0 },
  { test: 'scale', scope: 'tile', instrument: 1 },
  { test: 'scale', scope: 'head', instrument: 0 },
  { test: 'scale', scope: 'head', instrument: 1 },
  { test: 'bias', scope: 'row', instrument: 2 },
  { test: 'bias', scope: 'tile', instrument: 2 },
  { test: 'bias', scope: 'head', instrument: 2 },
  { test: 'truncation', scope: 'head', instrument: 3 },
] as const satisfies readonly {
  readonly test: StructureTest;
  readonly scope: StructureScope;
  readonly instrument: number;
}[];

/** Dispersion, mean LSE, key tiles over tiles of queries and over heads. */
const otherEntries = 4;

/** The largest finite magnitude. */
function largestMagnitude(tensor: Tensor): number {
  let largest = 0;
  for (const x of decodeTensor(tensor)) {
    const magnitude = Math.abs(x);
    if (magnitude > largest && magnitude < Infinity) largest = magnitude;
  }
  return largest;
}

/** Significant bits from which on the places of weights in an ulp tell nothing. */
const finestPrecision = 12;

/**
 * The structure tests of an audit: per row, per tile of 128 query rows and per head, projections of the
 * kernel's error against what rounding errors can cause. The premises and the proof of the thresholds are
 * in docs/bounds.md, "The structure". All tests together raise a false alarm with probability at most
 * `falseAlarmRate`.
 *
 * Rows that hold NaN or infinities, rows of zeros and rows whose sums overflow fp64 are left out.
 * Returns, per test and scope, the result that is largest relative to its threshold.
 *
 * @param observer sees the weights of all rows as well, since the walk over them is made anyway
 */
export function structureResults(
  input: StructureInput,
  progress?: Progress,
  observer?: WeightVisitor,
): StructureResult[] {
  const { problem, reference, outputs, bound, premises, falseAlarmRate } = input;
  const { values: out, format: outputFormat } = outputs.out;
  const { shape } = reference;
  const { queries } = shape;
  const headCount = shape.batch * shape.heads;
  const { weightFormat, isUsual } = premises;
  const { precision } = formats[weightFormat];
  const fineGroups = new NearlyEqual(Math.min(precision + 1, 13), -40, 0);
  const survey = surveyRows(problem, reference, weightFormat, fineGroups);
  const { scale, lightScale, bias, truncation } = createInstruments(
    { problem, reference, bound, outputFormat, weightFormat },
    survey,
  );
  const instruments = [scale, lightScale, bias, truncation];
  const offset = precision <= finestPrecision ? new CommonOffset(weightFormat) : null;
  const { exponential } = premises;
  const collector = new RowCollector({
    reference,
    out,
    outputFormat,
    bound,
    instruments,
    weightGroups: fineGroups,
    outputGroups: outputGroups(outputFormat),
    sumsTruncate: weightFormat !== 'fp32' && weightFormat !== 'fp64',
    scoreError: tanhError(problem, premises),
    roundingErrors: offset?.errors ?? null,
    premises,
    weightFormat,
    weightScale: premises.weightScale,
    largestValue: largestMagnitude(problem.v),
  });
  const pooled = () => new PooledProjections(instruments.length, offset, exponential);
  const tile = pooled();
  const head = pooled();
  const tiles = Math.ceil(queries / structureTileRows);
  const share = falseAlarmRate / (entries.length + otherEntries);
  const deviations: Record<StructureScope, number> = {
    row: alarmDeviations(headCount * queries, share),
    tile: alarmDeviations(headCount * tiles, share),
    head: alarmDeviations(headCount, share),
  };
  const worst = new WorstResults();
  const dispersion = new SlopeDispersion(share / Math.max(headCount, 1), instruments.length);
  const ofScope = (scope: StructureScope) => entries.filter((entry) => entry.scope === scope);
  const [rowEntries, tileEntries, headEntries] = structureScopes.map(ofScope);

  type Place = Pick<StructureResult, 'scope' | 'head' | 'firstRow' | 'rows'>;
  const report = (
    test: StructureTest,
    place: Place,
    signed: number,
    norm: number,
    tolerance: number,
  ) => {
    // Weights of elements near the ends of fp64 may sum up to infinity: no statistic.
    if (!(Math.abs(norm) > 0 && Math.abs(norm) < Infinity)) return;
    worst.add({
      test,
      ...place,
      firstKey: null,
      keys: null,
      statistic: signed / norm,
      threshold: tolerance / Math.abs(norm),
    });
  };
  const judge = (
    of: PooledProjections,
    listed: readonly (typeof entries)[number][],
    place: Place,
  ) => {
    const z = deviations[place.scope];
    for (const { test, instrument: d } of listed) {
      // What follows from a declaration is no test of it.
      if (test === 'truncation' && !isUsual) continue;
      const signed = of.signed[d];
      // What rows have in common takes a while to find, and most results need not be known.
      if (worst.isBeyond(test, place.scope, Math.abs(signed) / of.leastTolerance(d, z)))
        report(test, place, signed, of.norm[d], of.tolerance(d, z));
    }
  };
  const judgeRow = (row: RowProjections, variances: Variances, place: Place) => {
    const allowance = { variances, deviations: deviations.row, exponential };
    for (const { test, instrument: d } of rowEntries!) {
      const signed = row.signed[d];
      if (worst.isBeyond(test, 'row', Math.abs(signed) / leastRowTolerance(row, d, allowance)))
        report(test, place, signed, row.norm[d], rowTolerance(row, d, allowance));
    }
  };

  /** Passes a row on to its tile and head, and ends those that end with it. */
  const finishRow = (row: number, local: number) => {
    const query = row % queries;
    const ofHead = Math.floor(row / queries);
    const collected = collector.finish(row, local, tile);
    if (collected !== null) {
      const variances = rowVariances(collected, exponential);
      judgeRow(collected, variances, { scope: 'row', head: ofHead, firstRow: query, rows: 1 });
      tile.add(collected, variances, survey.isShared(row) ? survey.unit[row] : null);
      dispersion.add(collected, variances, survey.unit[row]);
    }
    const isLast = query === queries - 1;
    if (isLast || query % structureTileRows === structureTileRows - 1) {
      const firstRow = query - (query % structureTileRows);
      const rows = query - firstRow + 1;
      judge(tile, tileEntries!, { scope: 'tile', head: ofHead, firstRow, rows });
      head.merge(tile);
      tile.clear();
    }
    if (!isLast) return;
    const place = { scope: 'head', head: ofHead, firstRow: 0, rows: queries } as const;
    judge(head, headEntries!, place);
    const { statistic, threshold } = dispersion.result();
    if (threshold !== 0 && isUsual)
      worst.add({ test: 'dispersion', ...place, firstKey: null, keys: null, statistic, threshold });
    const mean = testMeanLse(input, head, ofHead, deviations.head, survey.unit);
    if (mean !== null)
      worst.add({ test: 'lse-mean', ...place, firstKey: null, keys: null, ...mean });
    dispersion.clear();
    head.clear();
  };

  let finished = 0;
  forEachWeightTile(
    problem,
    reference,
    instruments.map(({ direction }) => direction),
    {
      begin: (ofHead, firstRow, rows) => {
        collector.begin(ofHead * queries + firstRow, rows);
        observer?.begin(ofHead, firstRow, rows);
      },
      visit: (weights) => {
        collector.visit(weights, tile);
        observer?.visit(weights);
      },
      end: (ofHead, firstRow, rows) => {
        observer?.end(ofHead, firstRow, rows);
        for (let i = 0; i < rows; i++) finishRow(ofHead * queries + firstRow + i, i);
        finished += rows;
        progress?.(finished / (headCount * queries));
      },
    },
  );
  const errors = {
    reference,
    out,
    outputFormat,
    bound,
    groups: outputGroups(outputFormat),
    weightGroups: weightGroups(weightFormat),
  };
  for (const result of testKeyTiles(problem, errors, share)) worst.add(result);
  const found = worst.list();
  return inTestOrder(
    structureScopes.flatMap((scope) => found.filter((result) => result.scope === scope)),
  );
}
