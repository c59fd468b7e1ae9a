import type { Accuracy } from '../attention/row.js';
import type { Rules } from '../attention/rules.js';
import { operandRow } from '../attention/operand.js';
import { visibleRow } from '../attention/visible-row.js';
import type { Level } from '../attention/attention.js';
import { doubleDoubleProduct, doubleDoubleRow } from './double-double-row.js';
import { exactRow, type ExactRow, type Coefficients, type SolvedRow } from './exact-row.js';
import { exactProduct, exactSums, negligible } from './exact-sums.js';
import type { GradientOperands } from './operands.js';
import type { FiniteKeys } from './special-row.js';
import { isAccurateElement, type Gradient } from './sums.js';

/** Fraction bits: the first, and the most, beyond which nothing of fp64's range is left to be found. */
const firstBits = 192;
const mostBits = 6144;

/** Relative errors required of P and dT when they are added to fp64 sums. */
const wantedError = 2 ** -45;
const smallestError = 2 ** -1050;

/** A row of one head that is solved exactly. */
export interface RowToSolve {
  readonly operands: GradientOperands;
  readonly row: number;
  readonly keys: FiniteKeys;
}

/** P and dT of a row in fixed point. */
function solveRow({ operands, row, keys }: RowToSolve, rules: Rules, bits: number): ExactRow {
  const ofRow = visibleRow(operands, row, rules, keys.visible, keys.infinite);
  return exactRow(ofRow, operandRow(operands.dout, row).slice(), rules.law, bits);
}

/** Whether the coefficients of a row are good enough to be added to fp64 sums. */
function isPrecise({ weights, derivatives, cappedScales }: SolvedRow): boolean {
  const extent = cappedScales.reduce((most, x) => Math.max(most, x), 0);
  const areWanted = ({ values, radius }: Coefficients, sizes: Float64Array, largest: number) =>
    radius.every(
      (r, j) =>
        r <= wantedError * Math.max(Math.abs(values[j]), sizes[j]) ||
        r <= negligible * largest ||
        r <= smallestError,
    );
  return areWanted(derivatives, cappedScales, extent) && areWanted(weights, weights.values, 1);
}

/** A row of dQ, and its sources. */
export interface QueryRow {
  readonly solved: SolvedRow;
  readonly gradient: Gradient;
  readonly level: Level;
}

/** A row of dQ in double-double; null where that is not enough. */
function doubleDoubleQueryRow(
  { operands, row, keys }: RowToSolve,
  rules: Rules,
  accuracy: Accuracy,
): QueryRow | null {
  const { dout } = operands;
  const solved = doubleDoubleRow(
    visibleRow(operands, row, rules, keys.visible, keys.infinite),
    { values: operandRow(dout, row).slice(), norm: dout.norm[row] },
    rules.law,
    rules.constants,
  );
  if (solved === null || !isPrecise(solved)) return null;
  const gradient = doubleDoubleProduct(solved, operands.keys, keys.visible, rules.law.scale);
  return isAccurateRow(gradient, accuracy) ? { solved, gradient, level: 'double-double' } : null;
}

function isAccurateRow({ values, radius, magnitude }: Gradient, accuracy: Accuracy): boolean {
  return values.every((value, c) => isAccurateElement(value, radius[c], magnitude[c], accuracy));
}

/** A row of dQ from double-double, or from exact arithmetic of as many bits as its accuracy takes. */
export function preciseQueryRow(row: RowToSolve, rules: Rules, accuracy: Accuracy): QueryRow {
  const early = doubleDoubleQueryRow(row, rules, accuracy);
  if (early !== null) return early;
  const { keys } = row.operands;
  const { visible } = row.keys;
  const scale = rules.law.scale;
  for (let bits = firstBits; ; bits *= 2) {
    const solved = solveRow(row, rules, bits);
    const element = exactProduct(solved.derivatives, keys, visible, scale);
    const columns = Array.from({ length: keys.dim }, (_, c) => element(c));
    const magnitude = new Float64Array(keys.dim);
    visible.forEach((key, j) => {
      const size = solved.cappedScales[j] * Math.abs(scale);
      operandRow(keys, key).forEach((x, c) => (magnitude[c] += size * Math.abs(x)));
    });
    const gradient = {
      values: Float64Array.from(columns, ({ value }) => value),
      radius: Float64Array.from(columns, ({ radius }) => radius),
      magnitude,
    };
    if ((isAccurateRow(gradient, accuracy) && isPrecise(solved)) || bits >= mostBits)
      return { solved, gradient, level: 'arbitrary' };
  }
}

/** Keys whose gradients must be found exactly, and the rows that add to them. */
export interface KeysToSolve {
  /** Their places in dK and dV, by key. */
  readonly places: ReadonlyMap<number, number>;
  /** Every row of the group that adds to any key. */
  readonly rows: () => Iterable<RowToSolve>;
}

/** Overwrites rows of dK and dV by exact sums, to `accuracy`. Magnitudes stay as they are. */
export function solveKeys(
  { places, rows }: KeysToSolve,
  { dk, dv }: { readonly dk: Gradient; readonly dv: Gradient },
  { qkDim, vDim }: { readonly qkDim: number; readonly vDim: number },
  rules: Rules,
  accuracy: Accuracy,
): void {
  const wanted = new Map([...places.keys()].map((key, index) => [key, index]));
  for (let bits = firstBits; ; bits *= 2) {
    const ofKeys = exactSums(wanted.size, qkDim);
    const ofValues = exactSums(wanted.size, vDim);
    for (const row of rows()) {
      if (!row.keys.visible.some((key) => wanted.has(key))) continue;
      const solved = solveRow(row, rules, bits);
      const query = operandRow(row.operands.query, row.row).slice();
      const dout = operandRow(row.operands.dout, row.row).slice();
      row.keys.visible.forEach((key, j) => {
        const index = wanted.get(key);
        if (index === undefined) return;
        ofKeys.add(index, solved.derivatives, j, query);
        ofValues.add(index, solved.weights, j, dout);
      });
    }
    let isAccurate = true;
    const store = (gradient: Gradient, at: number, found: { value: number; radius: number }) => {
      gradient.values[at] = found.value;
      gradient.radius[at] = found.radius;
      isAccurate &&= isAccurateElement(found.value, found.radius, gradient.magnitude[at], accuracy);
    };
    for (const [key, index] of wanted) {
      const place = places.get(key) ?? 0;
      for (let c = 0; c < qkDim; c++)
        store(dk, place * qkDim + c, ofKeys.rounded(index, c, rules.law.scale));
      for (let c = 0; c < vDim; c++) store(dv, place * vDim + c, ofValues.rounded(index, c, 1));
    }
    if (isAccurate || bits >= mostBits) return;
  }
}
