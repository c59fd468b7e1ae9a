import { scaledIntegerOf } from '../../src/arith/index.js';
import type { ScoreLaw } from '../../src/problem/index.js';
import {
  fixedPointExponents,
  ratioUp,
  weightError,
  withSink,
} from '../attention/arbitrary-level.js';
import type { Row } from '../attention/row.js';
import { exactDots, exactScores } from '../attention/scores.js';
import { bitLength, createExp2, ratioToNumber } from '../fixed-point.js';

/** Numbers of a row, one for each key. */
export interface Coefficients {
  /** Rounded to fp64. */
  readonly values: Float64Array;
  /** The largest error of each before that rounding. */
  readonly radius: Float64Array;
}

/** P and its derivatives of one row, solved with more precision than fp64, with the parts of a sink's gradient. */
export interface SolvedRow {
  /** Per visible key: P after dropout, dT, and dS, which is dT before a softcap's slope. */
  readonly weights: Coefficients;
  readonly derivatives: Coefficients;
  readonly scoreDerivatives: Coefficients;
  /** P·(|dP| + Σ P|dP|), the scale of dS's errors, and times the slope: about fp64 accuracy. */
  readonly scales: Float64Array;
  readonly cappedScales: Float64Array;
  /** D = Σ P dP with its radius, and Σ P|dP|. */
  readonly mean: number;
  readonly meanRadius: number;
  readonly meanSize: number;
  /** The sink's share of the row sum, relative error below 2^-50; 0 without a sink. */
  readonly sinkShare: number;
}

/** Numbers as integers with one exponent for all, off by at most a radius each. */
export interface RoundedVector extends Coefficients {
  readonly integers: readonly bigint[];
  /** An element is integer · 2^exponent / share. */
  readonly exponent: number;
  readonly share: bigint;
}

/** A row that is solved in fixed point. */
export interface ExactRow extends SolvedRow {
  readonly weights: RoundedVector;
  readonly derivatives: RoundedVector;
  readonly scoreDerivatives: RoundedVector;
}

/** Factor for products of errors, and the roundings of errors in fp64. */
const slack = 1 + 2 ** -20;

/** numerator / denominator, with a shift of either sign. */
function quotient(numerator: bigint, denominator: bigint, shift: number): bigint {
  return shift >= 0
    ? (numerator << BigInt(shift)) / denominator
    : numerator / (denominator << BigInt(-shift));
}

/**
 * One row's derivatives in fixed-point arithmetic of `bits` fraction bits, from exact dot products (Theorem 3 of
 * docs/theory/bounds-backward.md): with integer weights w and their sum S all results are rational, and are rounded
 * once.
 * @param dout [vDim]: finite
 */
export function exactRow(row: Row, dout: Float64Array, law: ScoreLaw, bits: number): ExactRow {
  const { visible, kept } = row;
  const { y, slopes } = fixedPointExponents(exactScores(row, law), row, law, bits);
  const reference = y.reduce((a, b) => (b > a ? b : a)) >> BigInt(bits);
  const exp2 = createExp2(bits);
  const w = y.map((exponent) => exp2(exponent - (reference << BigInt(bits))));
  const keysSum = w.reduce((a, b) => a + b);
  const divisor = withSink(
    { sum: keysSum, error: weightError * BigInt(w.length) },
    reference,
    row,
    bits,
  );
  const { sum, error } = divisor;
  // Beyond this nothing of a weight is left in fp64.
  const lift = divisor.lift > 4000n ? 4000 : Number(divisor.lift);
  const lifted = sum << BigInt(lift);
  const dots = exactDots(dout, row.values, visible);
  const x = dots.integers.map((dot, j) => (kept?.[j] === 0 ? 0n : dot));
  let numerator = 0n;
  w.forEach((weight, j) => (numerator += weight * x[j]));
  const share = scaledIntegerOf(row.share);

  const size = (a: bigint) => (a < 0n ? -a : a);
  const xBits = x.reduce((most, a) => Math.max(most, bitLength(a)), 1);
  const unit = dots.exponent + xBits - bits;
  const squared = lifted * lifted;
  const ds = w.map((weight, j) =>
    quotient(weight * (x[j] * lifted - numerator), squared, bits - xBits),
  );
  // Errors, in fp64 rounded up: of P, of D, of dS.
  const inverse = ratioUp(weightError, sum - error, -lift);
  const relative = ratioUp(error, sum - error, 0);
  const p = w.map((weight) => ratioToNumber(weight, lifted, 0));
  const ofWeights = Float64Array.from(p, (weight) => (inverse + weight * relative) * slack);
  const xSizes = x.map((a) => ratioUp(size(a), 1n, dots.exponent));
  const mean = ratioToNumber(numerator, lifted, dots.exponent);
  const shared = ratioToNumber(numerator, lifted * share.integer, dots.exponent - share.exponent);
  const [ofMean, meanSize] = ofWeights.reduce(
    ([errors, sizes], e, j) => [errors + e * xSizes[j], sizes + p[j] * xSizes[j]],
    [0, 0],
  );
  const ulpOfUnit = ratioUp(1n, 1n, unit);
  const perShare = ratioUp(1n, share.integer, -share.exponent);
  const radius = ofWeights.map(
    (e, j) => (e * (xSizes[j] + Math.abs(mean)) + (p[j] + e) * ofMean + ulpOfUnit) * slack,
  );
  const derivatives =
    slopes === null ? ds : ds.map((a, j) => (a * slopes.integers[j]) >> BigInt(bits));
  const ofSlope = slopes === null ? 0 : ratioUp(slopes.error, 1n, -bits);
  const cappedRadius =
    slopes === null
      ? radius
      : radius.map((r, j) => (r + ratioUp(size(ds[j]), 1n, unit) * ofSlope + ulpOfUnit) * slack);
  const scales = Float64Array.from(p, (weight, j) => weight * (xSizes[j] + meanSize) * perShare);
  const vector = (integers: readonly bigint[], of: Float64Array, at: number): RoundedVector => ({
    integers,
    exponent: at - share.exponent,
    share: share.integer,
    values: Float64Array.from(integers, (x) =>
      ratioToNumber(x, share.integer, at - share.exponent),
    ),
    // More than the errors' own roundings lose by underflow.
    radius: of.map((r) => (r === 0 ? 0 : r * perShare * slack + 2 ** -1070)),
  });
  return {
    weights: vector(
      w.map((weight, j) => (kept?.[j] === 0 ? 0n : (weight << BigInt(bits)) / lifted)),
      ofWeights.map((e, j) => (kept?.[j] === 0 ? 0 : e + 2 ** -bits)),
      -bits,
    ),
    derivatives: vector(derivatives, cappedRadius, unit),
    scoreDerivatives: vector(ds, radius, unit),
    scales,
    cappedScales:
      slopes === null
        ? scales
        : scales.map((a, j) => a * ratioToNumber(slopes.integers[j], 1n, -bits)),
    mean: shared,
    meanRadius: (ofMean * perShare + 2 ** -53 * Math.abs(shared)) * slack + Number.MIN_VALUE,
    meanSize: meanSize * perShare,
    sinkShare: ratioToNumber(sum - (keysSum >> BigInt(lift)), sum, 0),
  };
}
