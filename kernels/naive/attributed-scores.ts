import { decodeTensor, isBeyondFloat32 } from '../../src/formats/index.js';
import type { Tensor } from '../../src/problem/index.js';
import type { EmulatedNames } from '../techniques.js';
import { dotFloat32, largestScore, softcapFloat32 } from './operations.js';
import type { RowFeatures } from '../row-features.js';

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
 * A result at the nearest operands plus the contribution of the difference to the actual ones; the
 * result alone where that is no finite number.
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

/** A row that sees keys, with all operands of its head. */
export interface RowOperands extends RowFeatures {
  /** The query's row in `q`. */
  readonly row: number;
  readonly q: Operand;
  readonly k: Operand;
  readonly v: Operand;
  readonly qkDim: number;
  readonly vDim: number;
}

/** The largest of a row's scores, the sink among them, and the differences of the scores from that. */
export interface RowExponents {
  readonly maximum: number;
  /** [keys seen] */
  readonly exponents: Float64Array;
  /** Exponent of the sink; −∞ for none. */
  readonly ofSink: number;
}

/** Scale, softcap and rounding of scores. */
export interface NaiveScoreLaw {
  readonly scale: number;
  readonly softcap: number | null;
  /** Rounds to the format between the passes, in place. */
  readonly round: (values: Float64Array) => void;
}

function dots(a: Float64Array, b: Float64Array, { row, keys, qkDim }: RowOperands) {
  return Float64Array.from(keys, (key) => {
    let sum = 0;
    for (let t = 0; t < qkDim; t++) sum += a[row * qkDim + t] * b[key * qkDim + t];
    return sum;
  });
}

/** A row's products q·k, [keys seen], by the techniques `input-round` and `qk-accumulate`. */
export function rowDots(operands: RowOperands, emulated: EmulatedNames): Float64Array {
  const { q, k, row, keys, qkDim } = operands;
  const isRounded = emulated.has('input-round');
  const actual = isRounded
    ? dots(q.nearest, k.nearest, operands)
    : dots(q.values, k.values, operands);
  if (!emulated.has('qk-accumulate')) return actual;
  const isNearest = isRounded || (q.values === q.nearest && k.values === k.nearest);
  const nearest = isNearest ? actual : dots(q.nearest, k.nearest, operands);
  return Float64Array.from(keys, (key, i) =>
    carried(
      dotFloat32(q.nearest, row * qkDim, k.nearest, key * qkDim, qkDim),
      actual[i] - nearest[i],
    ),
  );
}

/** The scores of products: scaled, softcapped, with bias and ALiBi, and rounded between the passes. */
function scoresOf(
  products: Float64Array,
  { addend }: RowFeatures,
  law: NaiveScoreLaw,
  emulated: EmulatedNames,
): Float64Array {
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
  const capped = softcap === null ? scaled : pass(cappedScores(scaled, softcap, emulated));
  if (addend === null) return capped;
  return pass(
    capped.map((s, j) =>
      emulated.has('bias')
        ? carried(fround(fround(s) + fround(addend[j])), s - fround(s))
        : s + addend[j],
    ),
  );
}

/** cap · tanh(s / cap) of scaled scores. */
function cappedScores(
  scaled: Float64Array,
  softcap: number,
  emulated: EmulatedNames,
): Float64Array {
  const exact = (s: number): number => softcap * Math.tanh(s / softcap);
  const cap = fround(softcap);
  return scaled.map((s) =>
    emulated.has('softcap')
      ? carried(softcapFloat32(fround(s), cap), s === fround(s) ? 0 : exact(s) - exact(fround(s)))
      : exact(s),
  );
}

/**
 * The exponents of a row from its products, by the techniques `score-round`, `scale-subtract`, `softcap` and
 * `bias`. The maximum is that of these scores: it cancels, and is no technique by itself.
 */
export function rowExponents(
  products: Float64Array,
  features: RowFeatures,
  law: NaiveScoreLaw,
  emulated: EmulatedNames,
): RowExponents {
  const scores = scoresOf(products, features, law, emulated);
  const sink = emulated.has('scale-subtract') ? fround(features.sink) : features.sink;
  const maximum = largestScore(scores, sink);
  const nearestMaximum = fround(maximum);
  const exponentOf = (s: number): number =>
    emulated.has('scale-subtract')
      ? carried(fround(fround(s) - nearestMaximum), s - fround(s) - (maximum - nearestMaximum))
      : s - maximum;
  return {
    maximum,
    exponents: scores.map(exponentOf),
    ofSink: sink === -Infinity ? -Infinity : exponentOf(sink),
  };
}
