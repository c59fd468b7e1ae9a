import type { PooledProjections } from './pooled-projections.js';
import { alarmDeviations, structureTileRows } from './structure-statistic.js';
import type {
  StructureResult,
  StructureScope,
  StructureTest,
  WorstResults,
} from './structure-result.js';

/**
 * The tests by scope, with the instruments that each is made with; `scale` is looked for with two of them.
 * One false alarm in as many as there are entries here, and dispersion, mean LSE and twice the key
 * tiles beside them, is an entry's.
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

/** Dispersion, mean LSE, key tiles over tiles of queries and over heads. */
const otherEntries = 4;

/** Directions that errors are projected on: those of `createInstruments`. */
export const instrumentCount = 4;

/** How large the problem is whose rows are tested, all parts of it together. */
export interface StructureExtent {
  /** Over all batches. */
  readonly heads: number;
  /** Of a head. */
  readonly queries: number;
}

/** How often tests may fail a correct kernel, and how far statistics may deviate for that. */
export interface StructureLimits {
  readonly extent: StructureExtent;
  /** Of one test and scope. */
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

/** Where a statistic is of. */
export type StructurePlace = Pick<StructureResult, 'scope' | 'head' | 'firstRow' | 'rows'>;

/** Adds a projection of errors to the results, unless it says nothing. */
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

/** Judges what the errors of a tile or a head come to. */
export function judgePooled(
  worst: WorstResults,
  of: PooledProjections,
  place: StructurePlace,
  isUsual: boolean,
  deviations: number,
): void {
  for (const { test, scope, instrument: d } of structureEntries) {
    // What follows from a declaration is no test of it.
    if (scope !== place.scope || (test === 'truncation' && !isUsual)) continue;
    const [signed, norm] = [of.signed[d], of.norm[d]];
    // What rows have in common takes a while to find, and most results need not be known.
    if (worst.isBeyond(test, scope, Math.abs(signed) / of.leastTolerance(d, deviations)))
      addProjection(worst, test, place, { signed, norm, tolerance: of.tolerance(d, deviations) });
  }
}
