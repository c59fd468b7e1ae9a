import {
  addDoubleDouble,
  addFloat64ToDoubleDouble,
  divideDoubleDouble,
  divideDoubleDoubleByFloat64,
  doubleDoubleFromSum,
  multiplyDoubleDoubleByFloat64,
  productError,
  sumError,
  type DoubleDouble,
} from '../../src/arith/index.js';
import type { ScoreLaw } from '../../src/problem/index.js';
import { doubleDoubleExp2, doubleDoubleExp2Error } from '../exp2.js';
import { naturalLogarithmOfNumber } from '../fixed-point.js';
import {
  compensatedExponents,
  droppedExponent,
  exactExponents,
  type Exponents,
} from './double-double-exponents.js';
import { ln2Words } from './logarithm-words.js';
import { operandRow } from './operand.js';
import type { Row, RowResult } from './row.js';
import type { ScoreConstants } from './scores.js';
import { scaledDown, sinkFrom, withSink } from './sink.js';
import { largestExponent } from './tile-level.js';

const u = 2 ** -53;

/** The largest error of an exponent for which exp(x) − 1 is x to within 2^-10. */
const largestExponentError = 2 ** -12;

/** Methods of the double-double level for dot products, from the faster one to the exact one. */
export const dotProducts = ['compensated', 'exact'] as const;
/** One of {@link dotProducts}. */
type DotProducts = (typeof dotProducts)[number];

/** Compensated sums over the keys of a row, weights relative to 2^reference. */
interface RowSums {
  readonly total: number;
  readonly totalErrors: number;
  /** Per column: Σ p v rounded and its rounding errors, Σ p|v| and the largest |v|, of weights that are kept. */
  readonly sum: Float64Array;
  readonly errors: Float64Array;
  readonly magnitude: Float64Array;
  readonly largestValue: Float64Array;
}

function sumRow(row: Row, { y }: Exponents, reference: number): RowSums {
  const { values, visible, kept } = row;
  const { dim } = values;
  const sum = new Float64Array(dim);
  const errors = new Float64Array(dim);
  const magnitude = new Float64Array(dim);
  const largestValue = new Float64Array(dim);
  let total = 0;
  let totalErrors = 0;
  visible.forEach((key, j) => {
    const { fraction, exponent } = doubleDoubleExp2(y[j]);
    const shift = exponent - reference;
    const power = shift < droppedExponent ? 0 : 2 ** shift;
    const high = fraction.high * power;
    const low = fraction.low * power;
    const nextTotal = total + high;
    totalErrors += sumError(total, high, nextTotal) + low;
    total = nextTotal;
    if (kept?.[j] === 0) return;
    const value = operandRow(values, key);
    for (let c = 0; c < dim; c++) {
      const v = value[c];
      largestValue[c] = Math.max(largestValue[c], Math.abs(v));
      const product = high * v;
      const before = sum[c];
      const next = before + product;
      errors[c] += productError(high, v, product) + sumError(before, product, next) + low * v;
      magnitude[c] += Math.abs(product);
      sum[c] = next;
    }
  });
  return { total, totalErrors, sum, errors, magnitude, largestValue };
}

/** ln(sum · 2^reference · e^origin) with its radius, for a sum with relative error `relative`. */
function logarithmOfSum(
  sum: DoubleDouble,
  reference: number,
  origin: DoubleDouble,
  relative: number,
) {
  const logarithm = naturalLogarithmOfNumber(sum.high);
  const value = addDoubleDouble(
    origin,
    addFloat64ToDoubleDouble(
      multiplyDoubleDoubleByFloat64(ln2Words(), reference),
      logarithm.value + sum.low / sum.high,
    ),
  ).high;
  // One rounding of the result itself; those of its parts are of the double-double's own size.
  const radius =
    relative +
    logarithm.radius +
    1.5 * u * Math.abs(value) +
    4 * u * Math.abs(logarithm.value) +
    u ** 2;
  return { value, radius };
}

/** The result of a row that is beyond the range of the analysis. */
function unsolved(vDim: number): RowResult {
  return {
    out: new Float64Array(vDim),
    outRadius: new Float64Array(vDim).fill(Infinity),
    magnitude: new Float64Array(vDim),
    lse: 0,
    lseRadius: Infinity,
    maximum: 0,
    denominator: 0,
  };
}

/**
 * One row in double-double arithmetic with a proven radius: compensated or exact dot products, weights
 * to 2^-100, compensated sums. A row outside the range of the analysis comes back with an infinite or
 * NaN radius.
 */
export function doubleDoubleLevel(
  row: Row,
  law: ScoreLaw,
  constants: ScoreConstants,
  dots: DotProducts = 'compensated',
): RowResult {
  const { visible, sink, share } = row;
  const vDim = row.values.dim;
  const solve = dots === 'exact' ? exactExponents : compensatedExponents;
  const exponents = solve(row, law, constants);
  const { y, error, origin } = exponents;
  const maximum = y.reduce((a, b) => Math.max(a, b.high), -Infinity);
  const inRange = ({ high }: DoubleDouble) => Math.abs(high) <= largestExponent;
  // Exponents that count from a score other than 0 have a sink that is as far away.
  const ownSink = sink === null ? null : sinkFrom(sink, origin);
  if (!(y.every(inRange) && Number.isFinite(origin.high) && ownSink?.weight !== null))
    return unsolved(vDim);
  const reference = Math.round(maximum);
  const { total, totalErrors, sum, errors, magnitude, largestValue } = sumRow(
    row,
    exponents,
    reference,
  );
  const n = visible.length + (sink === null ? 0 : 1);
  const ofKeys = doubleDoubleFromSum(total, totalErrors);
  const divisor = withSink(ofKeys, reference, ownSink);
  const weightError =
    error <= largestExponentError
      ? (Math.LN2 * error + doubleDoubleExp2Error) * (1 + 2 ** -10)
      : Infinity;
  const sumRoundoff = 3.1 * (n + 2) ** 2 * u ** 2;
  // Of the quotient; with the sink's sum and the share's quotient.
  const roundings = (sink === null && share === 1 ? 32 : 40) * u ** 2;
  const trusted = Math.max(weightError, ownSink?.weight?.error ?? 0);
  const relative = 2 * (trusted + sumRoundoff) + roundings;
  const out = new Float64Array(vDim);
  const outRadius = new Float64Array(vDim);
  const size = (sink === null ? total : divisor.sum.high) * share;
  for (let c = 0; c < vDim; c++) {
    const quotient = divideDoubleDouble(doubleDoubleFromSum(sum[c], errors[c]), divisor.sum);
    const shared = share === 1 ? quotient : divideDoubleDoubleByFloat64(quotient, share);
    out[c] = scaledDown(shared.high, divisor.lift);
    magnitude[c] = scaledDown(magnitude[c] / size, divisor.lift);
    const floor = (n * (2 ** -999 * largestValue[c] + 2 ** -1065) * 2) / size;
    outRadius[c] =
      largestValue[c] === 0
        ? 0
        : relative * (1 + 2 ** -10) * magnitude[c] +
          u * Math.abs(out[c]) +
          scaledDown(floor, divisor.lift) +
          (divisor.lift === 0 ? 0 : 2 ** -1073);
  }
  const denominator = logarithmOfSum(divisor.sum, reference + divisor.lift, origin, relative);
  const lse =
    sink?.inLse === false ? logarithmOfSum(ofKeys, reference, origin, relative) : denominator;
  return {
    out,
    outRadius,
    magnitude,
    lse: lse.value,
    lseRadius: lse.radius,
    maximum: origin.high + maximum * Math.LN2,
    denominator: denominator.value,
  };
}
