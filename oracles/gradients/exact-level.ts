import type { Accuracy } from '../attention/row.js';
import type { Rules } from '../attention/rules.js';
import { operandRow } from '../attention/operand.js';
import { visibleRow } from '../attention/visible-row.js';
import { exactRow, type ExactRow } from './exact-row.js';
import { exactProduct, exactSums, negligible } from './exact-sums.js';
import type { GradientOperands } from './operands.js';
import type { FiniteKeys } from './special-row.js';
import { isAccurateElement, type Gradient } from './sums.js';

/** Fraction bits: the first, and the most, beyond which nothing of fp64's range is left to be found. */
const firstBits = 192;
const mostBits = 6144;

/** Relative errors of P and dT that are asked for where they are added to fp64 sums. */
const wantedError = 2 ** -45;

/** A row of one head that is solved exactly. */
export interface RowToSolve {
  readonly operands: GradientOperands;
  readonly row: number;
  readonly keys: FiniteKeys;
}

/** P and dT of a row in fixed point. */
export function solveRow(
  { operands, row, keys }: RowToSolve,
  rules: Rules,
  bits: number,
): ExactRow {
  const ofRow = visibleRow(operands, row, rules, keys.visible, keys.infinite);
  return exactRow(ofRow, operandRow(operands.dout, row).slice(), rules.law, bits);
}

/** Whether the coefficients of a row are good enough to be added to fp64 sums. */
function isPrecise({ weights, derivatives, cappedScales }: ExactRow): boolean {
  const extent = cappedScales.reduce((most, x) => Math.max(most, x), 0);
  return (
    derivatives.radius.every(
      (r, j) => r <= wantedError * cappedScales[j] || r <= negligible * extent || r <= 2 ** -1060,
    ) && weights.radius.every((r) => r <= 2 ** -100)
  );
}

/** A row of dQ. */
export interface QueryRow {
  readonly solved: ExactRow;
  readonly gradient: Gradient;
}

/** A row of dQ from exact arithmetic of as many bits as its accuracy takes, with what it was made of. */
export function exactQueryRow(row: RowToSolve, rules: Rules, accuracy: Accuracy): QueryRow {
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
    const isAccurate = columns.every(({ value, radius }, c) =>
      isAccurateElement(value, radius, magnitude[c], accuracy),
    );
    if ((isAccurate && isPrecise(solved)) || bits >= mostBits) return { solved, gradient };
  }
}

/** Some keys whose gradients are to be found exactly, and the rows that add to them. */
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
