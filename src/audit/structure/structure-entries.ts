import type { PooledProjections } from './pooled-projections.js';
import { alarmDeviations, structureTileRows } from './structure-statistic.js';
import type {
  StructureResult,
  StructureScope,
  StructureTest,
  WorstResults,
} from './structure-result.js';

/**
 * The tests by scope, with the instruments that each is made with; `scale` is tested with two of them. The
 * entries here, dispersion, mean LSE and key tiles (twice) have equal shares of the false alarms.
 */
export const structureEntries = [
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

/** Number of other entries: dispersion, mean LSE, key tiles over tiles of queries and over heads. */
const otherEntries = 4;

/** Number of directions that errors are projected on: those of `createInstruments`. */
export const instrumentCount = 4;

/** The size of the problem whose rows are tested, all parts of it together. */
export interface StructureExtent {
  /** Number of heads over all batches. */
  readonly heads: number;
  /** Number of queries of a head. */
  readonly queries: number;
}

/** The rate at which tests may fail a correct kernel, and the deviations of statistics that follow from it. */
export interface StructureLimits {
  readonly extent: StructureExtent;
  /** The share of one test and scope. */
  readonly share: number;
  readonly deviations: Readonly<Record<StructureScope, number>>;
}

/** The limits of the tests of a whole problem. */
export function structureLimits(extent: StructureExtent, falseAlarmRate: number): StructureLimits {
  const { heads, queries } = extent;
  const tiles = Math.ceil(queries / structureTileRows);
  const share = falseAlarmRate / (structureEntries.length + otherEntries);
  return {
    extent,
    share,
    deviations: {
      row: alarmDeviations(heads * queries, share),
      tile: alarmDeviations(heads * tiles, share),
      head: alarmDeviations(heads, share),
    },
  };
}

/** The place of a statistic. */
export type StructurePlace = Pick<StructureResult, 'scope' | 'head' | 'firstRow' | 'rows'>;

/** Adds a projection of errors to the results, unless it tells nothing. */
export function addProjection(
  worst: WorstResults,
  test: StructureTest,
  place: StructurePlace,
  { signed, norm, tolerance }: { signed: number; norm: number; tolerance: number },
): void {
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
}

/** Judges the sums of the errors of a tile or a head. */
export function judgePooled(
  worst: WorstResults,
  of: PooledProjections,
  place: StructurePlace,
  isUsual: boolean,
  deviations: number,
): void {
  for (const { test, scope, instrument: d } of structureEntries) {
    // Effects of a declaration are no test of it.
    if (scope !== place.scope || (test === 'truncation' && !isUsual)) continue;
    const [signed, norm] = [of.signed[d], of.norm[d]];
    // The common errors of rows take a while to find, and most results do not need them.
    if (worst.isBeyond(test, scope, Math.abs(signed) / of.leastTolerance(d, deviations)))
      addProjection(worst, test, place, { signed, norm, tolerance: of.tolerance(d, deviations) });
  }
}
