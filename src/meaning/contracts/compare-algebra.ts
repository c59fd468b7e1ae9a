import { addDoubleDouble, type DoubleDouble } from '../../arith/index.js';
import type { Problem } from '../../problem/index.js';
import { capLaws } from './cap-laws.js';
import {
  compareLse,
  distanceOf,
  type LseComparison,
  type LseRow,
  type WorstDistance,
} from './compare-lse.js';
import {
  exactFactor,
  exactRowOf,
  exponentsOf,
  factorRatio,
  type ExactRow,
  type RealOf,
  type RowPlace,
} from './exact-row.js';
import { factorsOfProblem, nameTolerance, relativeDistance } from './factor-names.js';
import { inferFactor, type InferredFactor } from './infer-factor.js';

/** The comparison of O: distances are relative to Σ p|v| / Σ p of each element. */
export interface OutComparison {
  /** With the kernel's factor of q·k; null where nothing is compared. */
  readonly worst: WorstDistance | null;
  /** With the exact one. */
  readonly worstIdeal: WorstDistance | null;
  /** Numbers of elements. */
  readonly compared: number;
  readonly withoutMeaning: number;
  /** Those of the compared that are finite and have terms other than zeros: the others are the same by many laws. */
  readonly telling: number;
}

/** A kernel's real values against attention. */
export interface AlgebraComparison {
  /** The kernel's factor of q·k; null where its real values tell none, and then the exact one takes its place. */
  readonly factor: InferredFactor | null;
  /** Whether the real values are those of no other factor: not so where the exact one and its double give them. */
  readonly isFactorTold: boolean;
  readonly out: OutComparison;
  readonly lse: LseComparison;
}

/** No distance is relative to less: the low words of smaller values of O underflow. */
const leastYardstick = 2 ** -850;

/** Compares the elements of O of some rows. */
function createOutComparer() {
  let worst: WorstDistance | null = null;
  let worstIdeal: WorstDistance | null = null;
  let [compared, withoutMeaning, telling] = [0, 0, 0];
  const add = (place: RowPlace, column: number, real: DoubleDouble | null, rows: RowPair) => {
    if (real === null) {
      withoutMeaning++;
      return;
    }
    compared++;
    const { out, magnitude: sizes } = rows.ideal;
    if (Number.isFinite(out[column].high) && sizes[column].high > 0) telling++;
    const distanceTo = ({ out, magnitude }: ExactRow) =>
      distanceOf(real, out[column], Math.max(leastYardstick, magnitude[column].high));
    const distance = distanceTo(rows.inferred);
    const ofIdeal = rows.ideal === rows.inferred ? distance : distanceTo(rows.ideal);
    if (worst === null || distance > worst.distance) worst = { distance, place, column };
    if (worstIdeal === null || ofIdeal > worstIdeal.distance)
      worstIdeal = { distance: ofIdeal, place, column };
  };
  return {
    add,
    result: (): OutComparison => ({ worst, worstIdeal, compared, withoutMeaning, telling }),
  };
}

/** Of rows that a kernel may have, the one whose O is nearest to its real values. */
function nearestRow(
  rows: readonly ExactRow[],
  realOf: (column: number) => DoubleDouble | null,
): ExactRow {
  if (rows.length === 1) return rows[0];
  const far = ({ out }: ExactRow) =>
    out.reduce((sum, exact, column) => {
      const real = realOf(column);
      return real === null ? sum : sum + distanceOf(real, exact, 1);
    }, 0);
  return rows
    .map((row) => ({ row, distance: far(row) }))
    .reduce((a, b) => (b.distance < a.distance ? b : a)).row;
}

/** A row with the kernel's factor and with the exact one. */
interface RowPair {
  readonly inferred: ExactRow;
  readonly ideal: ExactRow;
}

/**
 * Compares the real values of a kernel's outputs on some rows with attention, exactly and with the factor of q·k that the
 * kernel's values follow from (`findFactor`).
 *
 * @param realOf the kernel's real values; for LSE with column 0
 * @param given the kernel's factor of q·k, where it is known
 * @throws RequestError when the problem's shapes do not fit together
 */
export function compareAlgebra(
  problem: Problem,
  realOf: RealOf,
  rows: readonly RowPlace[],
  given?: InferredFactor | null,
): AlgebraComparison {
  const found = given === undefined ? findFactor(problem, realOf, rows) : null;
  const factor = found === null ? (given ?? null) : found.factor;
  const ratio = factor === null ? null : factorRatio(problem, factor.value);
  const rowOf = exponentsOf(problem);
  const out = createOutComparer();
  const lseRows: LseRow[] = [];
  let lseWithoutMeaning = 0;
  for (const place of rows) {
    const row = rowOf(place);
    const ideal = exactRowOf(row, null);
    const ofKernel = factor?.cap?.rowsOf(place) ?? [row];
    const inferred =
      ratio === null
        ? ideal
        : nearestRow(
            ofKernel.map((one) => exactRowOf(one, ratio)),
            (column) => realOf('out', place, column),
          );
    const pair = { ideal, inferred };
    for (let column = 0; column < row.vDim; column++)
      out.add(place, column, realOf('out', place, column), pair);
    const real = realOf('lse', place, 0);
    if (real === null) lseWithoutMeaning++;
    else
      lseRows.push({
        place,
        real,
        inferred: pair.inferred.lseParts,
        ideal: pair.ideal.lseParts,
      });
  }
  return {
    factor,
    isFactorTold: found?.isTold ?? true,
    out: out.result(),
    lse: compareLse(lseRows, problem, lseWithoutMeaning),
  };
}

/** Rows that a named factor is tried on. */
const mostTriedRows = 16;

/** Values that fit to this distance follow from a factor: double-doubles err by less. */
const fittingDistance = 1e-26;

/**
 * The factor of q·k that the real values follow from: that which O tells (`inferFactor`). Where O hardly depends on it, as where
 * scores or values of a row are alike, the first of the named factors that O and the LSE fit, with the exact softcap or
 * a law of it, which O tells as little; null where that is the exact one, since then the values tell none, and where none fits.
 */
function findFactor(
  problem: Problem,
  realOf: RealOf,
  rows: readonly RowPlace[],
): { readonly factor: InferredFactor | null; readonly isTold: boolean } {
  const inferred = inferFactor(problem, realOf, rows);
  if (problem.scale === 0 || (inferred !== null && inferred.uncertainty <= nameTolerance))
    return { factor: inferred, isTold: true };
  const step = Math.ceil(rows.length / mostTriedRows);
  const tried = rows.filter((_, i) => i % step === 0);
  const exact = exactFactor(problem);
  const fitsOn = (some: readonly RowPlace[], factor: InferredFactor | null) => {
    const { out, lse } = compareAlgebra(problem, realOf, some, factor);
    const worst = Math.max(out.worst?.distance ?? 0, lse.worst?.distance ?? 0);
    return worst <= fittingDistance;
  };
  // Most factors fit no row, and two tell that sooner.
  const fits = (factor: InferredFactor | null) =>
    fitsOn(tried.slice(-2), factor) && fitsOn(tried, factor);
  if (fits(null)) {
    const value = addDoubleDouble(exact, exact);
    const doubled = { name: null, value, cap: null, uncertainty: nameTolerance, fromExact: 1 };
    return { factor: null, isTold: !fits(doubled) };
  }
  for (const cap of [null, ...capLaws(problem)])
    for (const { name, value } of factorsOfProblem(problem)) {
      const fromExact = relativeDistance(value, exact);
      const factor = { name, value, cap, uncertainty: nameTolerance, fromExact };
      if (fits(factor)) return { factor, isTold: true };
    }
  return { factor: null, isTold: true };
}
