import {
  addDoubleDouble,
  divideDoubleDoubleByFloat64,
  doubleDouble,
  multiplyDoubleDouble,
  subtractDoubleDouble,
  type DoubleDouble,
} from '../../arith/index.js';
import type { ExponentRow } from '../../../oracles/index.js';
import { problemShape, type Problem } from '../../problem/index.js';
import { capLaws, type CapLaw } from './cap-laws.js';
import { exactFactor, exponentsOf, type RealOf, type RowPlace } from './exact-row.js';
import { nameOfFactor, nameTolerance, relativeDistance } from './factor-names.js';
import { columnSlopes } from './column-slopes.js';
import { weighColumns, weighRow } from './weigh-row.js';

/** The factor of q·k that a kernel's real values follow from. */
export interface InferredFactor {
  readonly value: DoubleDouble;
  /**
   * How it comes about, by `namedFactors`, of a softcap that of the scores behind the tanh; null for none of these, and where the
   * values do not tell.
   */
  readonly name: string | null;
  /** How it makes the tanh of a softcap; null for the exact one, and without a softcap. */
  readonly cap: CapLaw | null;
  /** value / exact − 1. */
  readonly fromExact: number;
  /** The relative error that double-double leaves it. */
  readonly uncertainty: number;
}

/** Rows that the factor is inferred from, spread over all. */
const mostRows = 16;

/** Relative to Σ p|v| / Σ p, the error of an element in double-double, of the kernel's real value too. */
const elementError = 2 ** -94;

/** An element whose O moves by less than this of its magnitude, where the factor doubles, does not tell the factor. */
const leastSensitivity = 2 ** -30;

/** Newton's steps; from a start near enough five are plenty. */
const mostSteps = 20;

/** Elements that the factor is solved on, in turn: the rows of some may be wrong in themselves. */
const mostElements = 5;

/** The median distance of real values, relative to their magnitudes, at which no other factor is looked for. */
const fittingDistance = 2 ** -70;

/** Ratios to the exact factor to start from: exact, without log2 e, with it twice, and with the scale's square or none. */
function startRatios({ scale }: Problem): readonly number[] {
  return [1, Math.LN2, Math.LOG2E, ...[scale, 1 / scale].map(Math.abs).filter(Number.isFinite)];
}

/** A row with the real values of its columns. */
interface RealRow {
  readonly row: ExponentRow;
  readonly real: readonly (DoubleDouble | null)[];
}

/** An element of a row, and by what share of its magnitude it moves with the logarithm of the factor. */
interface Element {
  readonly of: RealRow;
  readonly column: number;
  readonly sensitivity: number;
}

/** The element of each row that tells most, those that tell more first. */
function mostSensitive(rows: readonly RealRow[]): readonly Element[] {
  const ofRows = rows.map((of) => {
    let best: Element = { of, column: 0, sensitivity: 0 };
    columnSlopes(of.row, null).forEach(({ slope, magnitude }, column) => {
      const real = of.real[column];
      if (real === null || !Number.isFinite(real.high) || of.row.specialOut[column] !== 0) return;
      const sensitivity = Math.abs(slope) / magnitude;
      if (sensitivity > best.sensitivity) best = { of, column, sensitivity };
    });
    return best;
  });
  return ofRows
    .filter(({ sensitivity }) => sensitivity >= leastSensitivity)
    .sort((a, b) => b.sensitivity - a.sensitivity)
    .slice(0, mostElements);
}

/** The ratio to the exact factor at which an element has its real value, by Newton's method; null where none is found. */
function solveRatio({ of: { row, real }, column }: Element, start: number): DoubleDouble | null {
  const wanted = real[column] ?? doubleDouble(NaN);
  let ratio = doubleDouble(start);
  let last = Infinity;
  for (let step = 0; step < mostSteps; step++) {
    const { out } = weighColumns(row, weighRow(row, ratio))[column];
    const { slope } = columnSlopes(row, ratio)[column];
    const change = divideDoubleDoubleByFloat64(subtractDoubleDouble(wanted, out), slope);
    // The slope is that by the logarithm of the ratio.
    const moved = addDoubleDouble(ratio, multiplyDoubleDouble(ratio, change));
    const size = Math.abs(change.high);
    if (!(moved.high > 0 && moved.high < Infinity)) return null;
    // Near the root steps square; where they no longer shrink, rounding is all that is left.
    if (size >= last && last < 2 ** -60) return ratio;
    ratio = moved;
    if (size === 0) return ratio;
    last = size;
  }
  return null;
}

/** The median distance of the rows' real values from those at a ratio, relative to their magnitudes. */
function distanceAt(rows: readonly RealRow[], ratio: DoubleDouble): number {
  const distances = rows.flatMap(({ row, real }) =>
    weighColumns(row, weighRow(row, ratio)).flatMap(({ out, magnitude }, column) => {
      const given = real[column];
      if (given === null || !Number.isFinite(out.high) || magnitude.high === 0) return [];
      return [Math.abs(subtractDoubleDouble(given, out).high) / magnitude.high];
    }),
  );
  return distances.sort((a, b) => a - b)[Math.floor(distances.length / 2)];
}

/** A ratio to the exact factor, and the element that it is solved on. */
interface Solution {
  readonly ratio: DoubleDouble;
  readonly element: Element;
  /** As `distanceAt` gives it. */
  readonly distance: number;
  /** As `InferredFactor` has it. */
  readonly cap: CapLaw | null;
}

/** The solution that most real values fit: on each element from the exact factor, and then on the first from the others. */
function bestSolution(
  rows: readonly RealRow[],
  [exact, ...others]: readonly number[],
  cap: CapLaw | null,
): Solution | null {
  const elements = mostSensitive(rows);
  const trials = [
    ...elements.map((element) => ({ element, start: exact })),
    ...elements.slice(0, 1).flatMap((element) => others.map((start) => ({ element, start }))),
  ];
  let best: Solution | null = null;
  for (const { element, start } of trials) {
    const ratio = solveRatio(element, start);
    if (ratio === null) continue;
    const distance = distanceAt(rows, ratio);
    if (best === null || distance < best.distance) best = { ratio, element, distance, cap };
    if (distance <= fittingDistance) break;
  }
  return best;
}

/** The solution that most real values fit with any law of a softcap; the exact one is tried first. */
function bestOfLaws(
  problem: Problem,
  realRows: (rowOf: (place: RowPlace) => ExponentRow) => readonly RealRow[],
): Solution | null {
  const starts = startRatios(problem);
  let best = bestSolution(realRows(exponentsOf(problem)), starts, null);
  for (const cap of capLaws(problem)) {
    if (best !== null && best.distance <= fittingDistance) break;
    // The constants of a law are near the exact ones.
    const found = bestSolution(
      realRows((place) => cap.rowsOf(place)[0]),
      starts.slice(0, 1),
      cap,
    );
    if (found !== null && (best === null || found.distance < best.distance)) best = found;
  }
  return best;
}

/** So many of a list, spread over it. */
function spread<T>(list: readonly T[], most: number): readonly T[] {
  const count = Math.min(list.length, most);
  return Array.from({ length: count }, (_, i) => list[Math.floor((i * list.length) / count)]);
}

/**
 * The factor of q·k in a base 2 exponent that makes attention of the real values of some rows, solved in double-double on an
 * element that depends on it much: that of the solutions which most elements fit, so that rows may be wrong in themselves. Null where no element depends on it (all scores
 * of a row alike, a scale of 0), and where none gives its real value: then O is of another law.
 *
 * @throws RequestError when the problem's shapes do not fit together
 */
export function inferFactor(
  problem: Problem,
  realOf: RealOf,
  rows: readonly RowPlace[],
): InferredFactor | null {
  if (problem.scale === 0) return null;
  const { vDim } = problemShape(problem);
  const chosen = spread(rows, mostRows).map((place) => {
    const real = Array.from({ length: vDim }, (_, column) => realOf('out', place, column));
    return { place, real };
  });
  const best = bestOfLaws(problem, (rowOf) =>
    chosen.map(({ place, real }): RealRow => ({ row: rowOf(place), real })),
  );
  if (best === null) return null;
  const exact = exactFactor(problem);
  const value = multiplyDoubleDouble(best.ratio, exact);
  const uncertainty = elementError / best.element.sensitivity;
  return {
    value,
    name: uncertainty <= nameTolerance ? nameOfFactor(value, problem) : null,
    cap: best.cap,
    fromExact: relativeDistance(value, exact),
    uncertainty,
  };
}
