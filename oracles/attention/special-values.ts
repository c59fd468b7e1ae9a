import { keysOf, type KeyRange, type ScoreLaw } from '../../src/problem/index.js';
import type { HeadOperands } from './head-operands.js';
import type { Operand } from './operand.js';
import { emptyRow, type RowResult } from './row.js';
import type { Sink } from './sink.js';

/** Sum of products as IEEE 754 would have it with unbounded precision and range. */
export function classifyDot(query: Operand, row: number, keys: Operand, key: number): number {
  let infinity = 0;
  for (let t = 0; t < keys.dim; t++) {
    const product = query.raw(row, t) * keys.raw(key, t);
    // A finite pair cannot make an infinity in exact arithmetic, whatever fp64 says.
    const finite = Number.isFinite(query.raw(row, t)) && Number.isFinite(keys.raw(key, t));
    if (finite) continue;
    if (Number.isNaN(product)) return NaN;
    if (infinity === -product) return NaN;
    infinity = product;
  }
  return infinity;
}

/** 0 for a finite score, ±∞ or NaN for the others. */
export function scoreClass(
  query: Operand,
  row: number,
  keys: Operand,
  key: number,
  law: ScoreLaw,
): number {
  if (query.special[row] === 0 && keys.special[key] === 0) return 0;
  const dot = classifyDot(query, row, keys, key);
  return dot === 0 ? 0 : dot * law.scale;
}

/** The classes of O's columns from special values in those of V: 0 for finite, else ±∞ or NaN. */
function columnClasses(
  values: Operand,
  weighted: readonly number[],
  weightless: readonly number[],
): Float64Array {
  const classes = new Float64Array(values.dim);
  for (const key of weighted)
    for (let c = 0; c < values.dim; c++) {
      const value = values.raw(key, c);
      // ∞ − ∞ is NaN.
      if (!Number.isFinite(value)) classes[c] += value;
    }
  for (const key of weightless)
    for (let c = 0; c < values.dim; c++) if (!Number.isFinite(values.raw(key, c))) classes[c] = NaN;
  return classes;
}

/** A row all of whose elements are the same special value. */
function constantRow(vDim: number, value: number, lse: number): RowResult {
  return {
    out: new Float64Array(vDim).fill(value),
    outRadius: new Float64Array(vDim),
    magnitude: new Float64Array(vDim).fill(Math.abs(value)),
    lse,
    lseRadius: 0,
    maximum: lse,
    denominator: lse,
  };
}

/** Functions for computing a row whose special values are known. */
interface RowSolvers {
  readonly sink: Sink | null;
  /** Whether dropout keeps the weight of a key. */
  readonly isKept: (key: number) => boolean;
  /** The row when every score is finite and only V is special, with special values counted as 0. */
  readonly plain: () => RowResult;
  /** A row of the given finite keys; `infinite` marks scores at ±cap. */
  readonly solve: (visible: Int32Array, infinite: Int8Array) => RowResult;
}

/**
 * The law for infinities and NaNs, IEEE 754 carried through the formula in exact arithmetic. For one
 * row, over the keys its mask leaves visible (masked keys have no influence, not even NaN ones):
 * - a NaN score (a NaN in q or k, ∞·0, ∞ − ∞ within the dot product, ∞ times a scale of 0) makes the
 *   whole row and its LSE NaN;
 * - a score of +∞ makes the row NaN (∞ − ∞ under the exponential) and its LSE +∞;
 * - a score of −∞ has weight 0; a row with nothing else is an empty row: O = 0, LSE = −∞;
 * - a softcap turns scores of ±∞ into ±cap before these rules apply, and addends are finite;
 * - a sink is finite, and changes none of this: a row of scores of −∞ has the LSE of its sink, if any;
 * - a weight that dropout does not keep is a weight of 0;
 * - a NaN in V, or both infinities, under positive weights make the column NaN, one infinity makes it
 *   that infinity; an infinity or a NaN in V under a weight of 0 makes it NaN (0·∞).
 *
 * Returns null when none of the row's visible inputs is special.
 */
export function resolveSpecialRow(
  { query, keys, values }: HeadOperands,
  row: number,
  ranges: readonly KeyRange[],
  law: ScoreLaw,
  { sink, isKept, plain, solve }: RowSolvers,
): RowResult | null {
  const weighted: number[] = [];
  const infinite: number[] = [];
  const weightless: number[] = [];
  const specialValues: number[] = [];
  let specialScores = query.special[row] !== 0;
  let positiveInfinity = false;
  for (const key of keysOf(ranges)) {
    if (keys.special[key] !== 0) specialScores = true;
    if (values.special[key] !== 0) specialValues.push(key);
    const kind = scoreClass(query, row, keys, key, law);
    if (Number.isNaN(kind)) return constantRow(values.dim, NaN, NaN);
    if (kind === 0 || law.softcap !== null) {
      weighted.push(key);
      infinite.push(Math.sign(kind));
    } else if (kind > 0) positiveInfinity = true;
    else weightless.push(key);
  }
  if (!specialScores && specialValues.length === 0) return null;
  if (positiveInfinity) return constantRow(values.dim, NaN, Infinity);
  const base =
    weighted.length === 0
      ? emptyRow(values.dim, sink)
      : specialScores
        ? solve(Int32Array.from(weighted), Int8Array.from(infinite))
        : plain();
  const areSpecial = (keys: readonly number[]) => keys.filter((key) => values.special[key] !== 0);
  const ofWeighted = areSpecial(weighted);
  const classes = columnClasses(values, ofWeighted.filter(isKept), [
    ...ofWeighted.filter((key) => !isKept(key)),
    ...areSpecial(weightless),
  ]);
  classes.forEach((kind, c) => {
    if (kind === 0) return;
    base.out[c] = kind;
    base.outRadius[c] = 0;
    base.magnitude[c] = Math.abs(kind);
  });
  return base;
}
