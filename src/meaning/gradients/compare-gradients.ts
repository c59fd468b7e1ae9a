import {
  divideDoubleDouble,
  doubleDouble,
  multiplyDoubleDouble,
  type DoubleDouble,
} from '../../arith/index.js';
import { problemShape, type Problem } from '../../problem/index.js';
import { distanceOf, type RowPlace, type WorstDistance } from '../contracts/index.js';
import { gradientRows, type GradientInputs } from './gradient-row.js';
import {
  gradientNames,
  sumGradients,
  type FormsByGradient,
  type GradientName,
  type GradientVector,
  type PlacesByGradient,
} from './gradient-sums.js';
import type { GradientForm } from './row-terms.js';
import { nameScale, type InferredScale } from './scale-names.js';
import {
  deltaSources,
  idealWeights,
  keptFactors,
  weightForms,
  type DeltaSource,
} from './weight-forms.js';

/**
 * What an element of a gradient would be without any rounding; null for one that has no meaning.
 * @param place a query of a query head for dQ, a key of a head of K for dK and dV
 */
export type GradientRealOf = (
  gradient: GradientName,
  place: RowPlace,
  column: number,
) => DoubleDouble | null;

/** The real values of a kernel: those that decide, and others that are compared in the same form; null for none. */
export interface GradientReals {
  readonly decisive: GradientRealOf;
  readonly others: GradientRealOf | null;
}

/** A gradient's real values against those of attention: distances are relative to the sum of the sizes of an element's terms. */
export interface GradientComparison {
  readonly gradient: GradientName;
  /** How the kernel makes P. */
  readonly weights: string;
  /** Where its δ of dS = P∘(dP − δ) comes from; null for dV, which has none. */
  readonly delta: DeltaSource | null;
  /** The factor behind the sum; of dV 1. */
  readonly factor: InferredScale;
  /** In that form; null where nothing is compared. */
  readonly worst: WorstDistance | null;
  /** From exact attention's gradients. */
  readonly worstIdeal: WorstDistance | null;
  /** Of the other real values; null where there are none. */
  readonly worstOfOthers: WorstDistance | null;
  /** Numbers of rows and of elements. */
  readonly rows: number;
  readonly compared: number;
  readonly withoutMeaning: number;
  /** Those of the compared that have terms other than zeros. */
  readonly telling: number;
}

/** Rows of a gradient by which its form is found, spread over all. */
const mostProbes = 5;

/** A form at this distance or less fits, and no later one is taken for it. */
const fittingDistance = 1e-27;

/** No distance is relative to less: the low words of smaller values underflow. */
const leastYardstick = 2 ** -850;

function spread<T>(list: readonly T[], most: number): readonly T[] {
  const count = Math.min(list.length, most);
  return Array.from(
    { length: count },
    (_, i) => list[Math.floor(((i + 0.5) * list.length) / count)],
  );
}

function mapGradients<T>(make: (name: GradientName) => T): Readonly<Record<GradientName, T>> {
  return { dq: make('dq'), dk: make('dk'), dv: make('dv') };
}

/** The forms of a gradient that the given inputs allow. */
function formsOf(
  problem: Problem,
  { lse, out, delta }: GradientInputs,
  gradient: GradientName,
): readonly GradientForm[] {
  const isGiven: Readonly<Record<DeltaSource, boolean>> = {
    'delta as given': delta !== null,
    'Σ dO·O of the given O': out !== null,
    'Σ P·dP': true,
  };
  // Of dV all sources are alike.
  const sources = deltaSources.filter((source) => isGiven[source]);
  return weightForms(problem, lse !== null).flatMap((weights) =>
    keptFactors(problem).flatMap((kept) =>
      (gradient === 'dv' ? sources.slice(0, 1) : sources).map((source) => ({
        weights,
        kept,
        delta: source,
      })),
    ),
  );
}

/** A row of a gradient: its real values, and what it is in a form. */
interface ComparedRow {
  readonly real: readonly (DoubleDouble | null)[];
  readonly vector: GradientVector;
}

/** The distances of a row's elements by a factor; an element without a real value has none. */
function distancesOf(
  { real, vector: { sums, sizes } }: ComparedRow,
  factor: DoubleDouble,
  scale: number,
): readonly number[] {
  return real.map((value, c) =>
    value === null
      ? 0
      : distanceOf(
          value,
          multiplyDoubleDouble(sums[c], factor),
          Math.max(leastYardstick, Math.abs(scale) * sizes[c]),
        ),
  );
}

/** The factor by which the element of a row that says most has its real value; null where none says anything. */
function factorOf({ real, vector: { sums, sizes } }: ComparedRow): DoubleDouble | null {
  let [best, share] = [-1, 2 ** -20];
  real.forEach((value, c) => {
    if (value === null || !Number.isFinite(value.high) || sizes[c] === 0) return;
    const own = Math.abs(sums[c].high) / sizes[c];
    if (own > share) [best, share] = [c, own];
  });
  const value = real[best] ?? null;
  return value === null ? null : divideDoubleDouble(value, sums[best]);
}

function median(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[Math.floor((numbers.length - 1) / 2)] ?? 0;
}

/** The factor that most rows fit, and how far they are from it. */
function fitFactor(
  rows: readonly ComparedRow[],
  gradient: GradientName,
  scale: number,
): { readonly factor: InferredScale; readonly distance: number } {
  const size = gradient === 'dv' ? 1 : scale;
  const found = gradient === 'dv' ? [] : rows.map(factorOf).filter((factor) => factor !== null);
  const candidates = found.length === 0 ? [doubleDouble(size)] : found;
  return candidates
    .map((value) => {
      const factor = nameScale(value, size);
      const worst = rows.map((row) => Math.max(...distancesOf(row, factor.value, size)));
      return { factor, distance: median(worst) };
    })
    .reduce((a, b) => (b.distance < a.distance ? b : a));
}

/** The form that the real values of some rows fit, and its factor. */
interface FoundForm {
  readonly form: GradientForm;
  readonly factor: InferredScale;
}

/** @param vectors by row, then by form */
function bestForm(
  forms: readonly GradientForm[],
  reals: readonly ComparedRow['real'][],
  vectors: readonly (readonly GradientVector[])[],
  fit: (rows: readonly ComparedRow[]) => ReturnType<typeof fitFactor>,
): FoundForm {
  const trials = forms.map((form, f) => ({
    form,
    ...fit(reals.map((real, i) => ({ real, vector: vectors[i][f] }))),
  }));
  return trials.reduce((a, b) => (a.distance > fittingDistance && b.distance < a.distance ? b : a));
}

/** The largest distance of some rows. */
function worstOf(
  places: readonly RowPlace[],
  rows: readonly ComparedRow[],
  factor: DoubleDouble,
  size: number,
): WorstDistance | null {
  let worst: WorstDistance | null = null;
  rows.forEach((row, i) =>
    distancesOf(row, factor, size).forEach((distance, column) => {
      if (row.real[column] === null) return;
      if (worst === null || distance > worst.distance)
        worst = { distance, place: places[i], column };
    }),
  );
  return worst;
}

const columnsOf = { dq: 'qkDim', dk: 'qkDim', dv: 'vDim' } as const;

/** Real values of rows. */
function realRows(
  problem: Problem,
  gradient: GradientName,
  places: readonly RowPlace[],
  realOf: GradientRealOf,
): readonly ComparedRow['real'][] {
  const columns = problemShape(problem)[columnsOf[gradient]];
  return places.map((place) =>
    Array.from({ length: columns }, (_, column) => realOf(gradient, place, column)),
  );
}

/**
 * Compares the real values of a backward kernel with the gradients of attention: exactly, and as functions of what the kernel is given,
 * in the form that its real values tell: how it makes P, where its δ comes from, and by which factor it multiplies.
 *
 * @param places the rows of each gradient that are compared; none of those that the kernel does not write
 * @param inputs with finite numbers, as those of the problem are
 * @throws RequestError when the problem's shapes do not fit together
 */
export function compareGradients(
  problem: Problem,
  inputs: GradientInputs,
  places: PlacesByGradient,
  { decisive, others }: GradientReals,
): readonly GradientComparison[] {
  const { scale } = problem;
  const rowAt = gradientRows(problem, inputs);
  const ideal = {
    weights: idealWeights,
    kept: keptFactors(problem)[0],
    delta: 'Σ P·dP',
  } as const;
  const probes = mapGradients((name) => spread(places[name], mostProbes));
  const forms: FormsByGradient = mapGradients((name) => formsOf(problem, inputs, name));
  const probed = sumGradients(problem, rowAt, probes, forms);
  const found = mapGradients((name) =>
    bestForm(forms[name], realRows(problem, name, probes[name], decisive), probed[name], (rows) =>
      fitFactor(rows, name, scale),
    ),
  );
  const summed = sumGradients(
    problem,
    rowAt,
    places,
    mapGradients((name) => [found[name].form, ideal]),
  );
  const compare = (gradient: GradientName): GradientComparison => {
    const { form, factor } = found[gradient];
    const at = places[gradient];
    const size = gradient === 'dv' ? 1 : scale;
    const real = realRows(problem, gradient, at, decisive);
    const rowsOf = (values: typeof real, f: number) =>
      values.map((row, i) => ({ real: row, vector: summed[gradient][i][f] }));
    const without = real.flat().filter((value) => value === null).length;
    const known = others && realRows(problem, gradient, at, others);
    return {
      gradient,
      weights: form.weights.name + (form.kept.name === '' ? '' : `, ${form.kept.name}`),
      delta: gradient === 'dv' ? null : form.delta,
      factor,
      worst: worstOf(at, rowsOf(real, 0), factor.value, size),
      worstIdeal: worstOf(at, rowsOf(real, 1), doubleDouble(size), size),
      worstOfOthers: known && worstOf(at, rowsOf(known, 0), factor.value, size),
      rows: at.length,
      compared: real.flat().length - without,
      withoutMeaning: without,
      telling: rowsOf(real, 1).reduce(
        (sum, { real: row, vector: { sizes } }) =>
          sum + row.filter((value, c) => value !== null && size * sizes[c] !== 0).length,
        0,
      ),
    };
  };
  return gradientNames.filter((name) => places[name].length > 0).map(compare);
}
