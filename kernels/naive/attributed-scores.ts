import { decodeTensor, isBeyondFloat32 } from '../../src/formats/index.js';
import type { Tensor } from '../../src/problem/index.js';
import type { EmulatedNames } from '../techniques.js';
import { dotFloat32, largestScore, softcapFloat32 } from './operations.js';

const { fround } = Math;

/** Rows of a tensor, [rows × dim]. */
export interface Operand {
  readonly values: Float64Array;
  /** The fp32 numbers nearest to the values; the same array where these are fp32 numbers. */
  readonly nearest: Float64Array;
}

/** Decodes rows [first, first + rows) of `dim` elements. */
export function readOperand(tensor: Tensor, first: number, rows: number, dim: number): Operand {
  const values = decodeTensor(tensor, first * dim, (first + rows) * dim);
  const nearest = isBeyondFloat32(tensor) ? values.map(fround) : values;
  return { values, nearest };
}

/**
 * A result at the nearest operands with what the difference of the actual ones contributes; the result
 * alone where that is no finite number.
 */
export function carried(result: number, difference: number): number {
  return difference === 0 || !Number.isFinite(difference) ? result : result + difference;
}

/** Differences of exponents beyond this are rounding errors of numbers whose e^x is 0 or ∞. */
const largestDifference = 2 ** -8;

/** A result at the nearest exponent, carried over to the actual one: times e^difference. */
export function carriedExponential(result: number, difference: number): number {
  return difference === 0 || !(Math.abs(difference) < largestDifference)
    ? result
    : result * Math.exp(difference);
}

/** The keys begin ≤ j < end that a query sees, with all operands of its head. */
export interface RowOperands {
  /** The query's row in `q`. */
  readonly row: number;
  readonly q: Operand;
  readonly k: Operand;
  readonly v: Operand;
  readonly begin: number;
  readonly end: number;
  readonly qkDim: number;
  readonly vDim: number;
}

/** A row's scores, the largest of them, and their differences from that. */
interface RowExponents {
  readonly maximum: number;
  /** [keys seen] */
  readonly exponents: Float64Array;
}

/** What scores are multiplied by, capped with and rounded by. */
export interface NaiveScoreLaw {
  readonly scale: number;
  readonly softcap: number | null;
  /** Rounds to the format between the passes, in place. */
  readonly round: (values: Float64Array) => void;
}

function dots(a: Float64Array, b: Float64Array, { row, begin, end, qkDim }: RowOperands) {
  const sums = new Float64Array(end - begin);
  for (let j = begin; j < end; j++) {
    let sum = 0;
    for (let t = 0; t < qkDim; t++) sum += a[row * qkDim + t] * b[j * qkDim + t];
    sums[j - begin] = sum;
  }
  return sums;
}

/** A row's products q·k, [keys seen], by the techniques `input-round` and `qk-accumulate`. */
export function rowDots(operands: RowOperands, emulated: EmulatedNames): Float64Array {
  const { q, k, row, begin, end, qkDim } = operands;
  const isRounded = emulated.has('input-round');
  const actual = isRounded
    ? dots(q.nearest, k.nearest, operands)
    : dots(q.values, k.values, operands);
  if (!emulated.has('qk-accumulate')) return actual;
  const isNearest = isRounded || (q.values === q.nearest && k.values === k.nearest);
  const nearest = isNearest ? actual : dots(q.nearest, k.nearest, operands);
  return Float64Array.from({ length: end - begin }, (_, i) =>
    carried(
      dotFloat32(q.nearest, row * qkDim, k.nearest, (begin + i) * qkDim, qkDim),
      actual[i] - nearest[i],
    ),
  );
}

/** The scores of products: scaled, softcapped, and rounded between the passes. */
function scoresOf(
  products: Float64Array,
  law: NaiveScoreLaw,
  emulated: EmulatedNames,
): Float64Array {
  const { tanh } = Math;
  const { scale, softcap, round } = law;
  const pass = (values: Float64Array): Float64Array => {
    if (emulated.has('score-round')) round(values);
    return values;
  };
  const scaleFloat32 = fround(scale);
  const raw = pass(products.slice());
  const scaled = pass(
    raw.map((s) =>
      emulated.has('scale-subtract')
        ? carried(fround(fround(s) * scaleFloat32), (s - fround(s)) * scale)
        : s * scale,
    ),
  );
  if (softcap === null) return scaled;
  const exact = (s: number): number => softcap * tanh(s / softcap);
  const cap = fround(softcap);
  return pass(
    scaled.map((s) =>
      emulated.has('softcap')
        ? carried(softcapFloat32(fround(s), cap), s === fround(s) ? 0 : exact(s) - exact(fround(s)))
        : exact(s),
    ),
  );
}

/**
 * The exponents of a row from its products, by the techniques `score-round`, `scale-subtract` and
 * `softcap`. The maximum is that of these scores: it cancels, and is no technique by itself.
 */
export function rowExponents(
  products: Float64Array,
  law: NaiveScoreLaw,
  emulated: EmulatedNames,
): RowExponents {
  const scores = scoresOf(products, law, emulated);
  const maximum = largestScore(scores);
  const nearestMaximum = fround(maximum);
  const exponents = scores.map((s) =>
    emulated.has('scale-subtract')
      ? carried(fround(fround(s) - nearestMaximum), s - fround(s) - (maximum - nearestMaximum))
      : s - maximum,
  );
  return { maximum, exponents };
}
