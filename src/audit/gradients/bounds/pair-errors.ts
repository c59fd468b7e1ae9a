import {
  halfUlp,
  roundedNear,
  type OperandRounding,
  type PairArithmetic,
} from './pair-arithmetic.js';

/** A row of queries as its pairs know it; made by `rowErrors`, all but the first four 0 before. */
export interface RowErrors {
  /** ‖q‖ and ‖dO‖, rounded up. */
  readonly queryNorm: number;
  readonly doutNorm: number;
  /** The logarithm of the row sum, and D. */
  readonly denominator: number;
  readonly mean: number;
  /** What the stored LSE and O move P (relatively) and D by, where they are known to be used. */
  readonly weightShift: number;
  readonly meanShift: number;
  /** What all P of the row may be off by together, relatively, and D, beside that; what of it does not average out. */
  readonly weight: number;
  readonly typicalWeight: number;
  readonly worstMean: number;
  readonly typicalMean: number;
  /** The variance of D's error. */
  readonly meanVariance: number;
}

/** One visible pair: what is known of it, and what is found out. Used again from pair to pair. */
export interface Pair {
  /** q·k, dO·v, ‖k‖ and ‖v‖ (rounded up), what is added to the score and its size, what dropout multiplies by. */
  dot: number;
  product: number;
  keyNorm: number;
  valueNorm: number;
  addend: number;
  addendSize: number;
  factor: number;
  /** P with the row's shift, its error but for the row's, and the typical size of it; the softcap's slope and its error. */
  weight: number;
  weightError: number;
  typicalWeight: number;
  slope: number;
  slopeError: number;
  /** dP, its error and the typical size of that. */
  derivative: number;
  derivativeError: number;
  typicalDerivative: number;
}

/** A pair of which nothing is known. */
export function emptyPair(): Pair {
  return {
    dot: 0,
    product: 0,
    keyNorm: 0,
    valueNorm: 0,
    addend: 0,
    addendSize: 0,
    factor: 1,
    weight: 0,
    weightError: 0,
    typicalWeight: 0,
    slope: 1,
    slopeError: 0,
    derivative: 0,
    derivativeError: 0,
    typicalDerivative: 0,
  };
}

/**
 * The variance of a rounding's relative error over u², where nothing but its format is known: a third of the mean of 1/x² over x
 * of a binade whose logarithms are uniform, which is 3 / (8 ln 2).
 */
export const meanRounding = 1 / (8 * Math.LN2);

/** Exponents beyond this are as good as infinite. */
const largestExponent = 700;

/** `p-recompute` and `dp-accumulate`: P, dP and their errors, of a pair whose numbers are known. */
export function weighPair(
  arithmetic: PairArithmetic,
  { queryNorm, doutNorm, denominator, weightShift }: RowErrors,
  pair: Pair,
): void {
  const { scale, softcap, elementwise, scoreRounding, exponential, underflow } = arithmetic;
  const raw = scale * pair.dot;
  const size = Math.abs(scale) * queryNorm * pair.keyNorm;
  const operations = 4 * elementwise + scoreRounding;
  let score = raw;
  let common = operations * Math.abs(raw);
  pair.slope = 1;
  pair.slopeError = 0;
  if (softcap !== null) {
    const z = Math.tanh(raw / softcap);
    score = softcap * z;
    const ofTanh = arithmetic.tanh + operations;
    const ofSlope = (arithmetic.scores * size + common) / softcap + ofTanh * Math.abs(z);
    common += ofTanh * Math.abs(score);
    pair.slope = 1 - z * z;
    pair.slopeError = Math.min(2 * Math.abs(z) * ofSlope + ofSlope ** 2 + 4 * elementwise, 2);
  }
  common +=
    operations * (Math.abs(score) + 2 * pair.addendSize) + 4 * elementwise * Math.abs(denominator);
  const error = arithmetic.scores * size + common;
  const exponent = score + pair.addend - denominator;
  const weight = Math.exp(Math.min(exponent, largestExponent)) * (1 + weightShift);
  const grown =
    error < 1
      ? weight * Math.expm1(error)
      : Math.exp(Math.min(exponent + error, largestExponent)) * (1 + weightShift);
  const typical = Math.min(arithmetic.typicalScores * size + common, error);
  pair.weight = weight;
  pair.weightError = grown * (1 + exponential) + weight * exponential + 2 * underflow;
  pair.typicalWeight = (error < 1 ? weight * Math.expm1(typical) : grown) + 2 * underflow;
  const largestScore =
    Math.max(Math.abs(pair.dot), Math.abs(raw), Math.abs(score) + pair.addendSize) + error;
  if (!(largestScore < arithmetic.largestScore)) pair.weightError = Infinity;
  const extent = doutNorm * pair.valueNorm * pair.factor;
  const derivative = pair.product * pair.factor;
  const ofProduct = (arithmetic.dropout + arithmetic.productRounding) * Math.abs(derivative);
  pair.derivative = derivative;
  // An underflow counts for every product and addition; vDim is far below 2^16.
  const floor = underflow * 2 ** 16;
  pair.derivativeError = (arithmetic.products * extent + ofProduct) * (1 + 2 ** -8) + floor;
  const largestProduct = Math.max(Math.abs(pair.product), Math.abs(derivative));
  if (!(largestProduct + pair.derivativeError < arithmetic.largestProduct))
    pair.derivativeError = Infinity;
  pair.typicalDerivative =
    arithmetic.typicalProducts * extent + arithmetic.dropout * Math.abs(derivative) + floor;
}

/** What rounding a number to the format of an operand does. */
export interface Rounded {
  /** At most; the rounding itself where it is certain, else 0; its variance where it is not. */
  worst: number;
  known: number;
  variance: number;
}

/**
 * The rounding of a number that is within `error` of x: Theorem 5 of docs/bounds.md. Where a factor may multiply it before,
 * its significand is not known, and the worst of its units counts.
 */
function roundOperand(
  { format, units, largestUnit, times }: OperandRounding,
  x: number,
  error: number,
  rounded: Rounded,
): void {
  rounded.worst = 0;
  rounded.known = 0;
  rounded.variance = 0;
  if (format === null) return;
  const most = (Math.abs(x) + error) * (1 + 2 ** -20);
  if (!(most * largestUnit < format.maxFinite)) {
    rounded.worst = Infinity;
    return;
  }
  const half = halfUlp(format, most);
  if (units.length > 0 || times > 1) {
    let largest = half;
    for (const unit of units) largest = Math.max(largest, halfUlp(format, most * unit) / unit);
    // What is rounded again may be in the next binade by then.
    rounded.worst = times === 1 ? largest : 2 * times * largest * (1 + 2 ** -6);
    rounded.variance = (times * largest ** 2) / 3;
    return;
  }
  const known = roundedNear(format, x) - x;
  const distance = Math.abs(known);
  rounded.worst = Math.min(half, distance + error);
  if (distance + error < half) rounded.known = known;
  // What is left open though less than half an ulp moves it is beside a tie: off by its distance, up or down.
  else rounded.variance = error < half ? distance ** 2 : half ** 2 / 3;
}

/** What a pair adds to dQ, dK and dV, each times the other factor. */
export interface PairShares {
  /** dT with the row's shifts, and what these shifts are of it; P·slope; P as dV has it and its shift. */
  derivative: number;
  shift: number;
  sloped: number;
  weight: number;
  weightShift: number;
  /** Errors of dT within a row, of dT for dK, of P for dV. */
  query: Share;
  key: Share;
  value: Share;
  /** Of the number that was rounded last. */
  readonly rounded: Rounded;
}

/** An error at worst, what of it does not average out, the variance of the rest, and the rounding that is known. */
export interface Share {
  worst: number;
  systematic: number;
  variance: number;
  known: number;
}

/** Shares of nothing. */
export function emptyShares(): PairShares {
  const share = (): Share => ({ worst: 0, systematic: 0, variance: 0, known: 0 });
  return {
    derivative: 0,
    shift: 0,
    sloped: 0,
    weight: 0,
    weightShift: 0,
    query: share(),
    key: share(),
    value: share(),
    rounded: { worst: 0, known: 0, variance: 0 },
  };
}

/** `ds-round`, `p-round` and what sums lose: the shares of a pair that `weighPair` has weighed. */
export function sharePair(
  arithmetic: PairArithmetic,
  row: RowErrors,
  pair: Pair,
  shares: PairShares,
): void {
  const { elementwise, exponential, underflow, overKeys, overQueries } = arithmetic;
  const { weightRounding, productRounding } = arithmetic;
  const { weight, slope, slopeError, derivative, factor } = pair;
  const { query, key, value, rounded } = shares;
  const ofWeight = pair.weightError * (1 + row.weight) + row.weight * weight;
  roundOperand(arithmetic.p, weight, ofWeight, rounded);
  const kept = factor * (1 + arithmetic.dropout);
  const ofFactor = arithmetic.dropout * weight * factor;
  const total = (weight + ofWeight + rounded.worst) * kept;
  shares.weight = weight * factor;
  shares.weightShift = (weight * factor * row.weightShift) / (1 + row.weightShift);
  value.worst = (ofWeight + rounded.worst) * kept + ofFactor + overQueries * total;
  value.systematic = (pair.typicalWeight + row.typicalWeight * weight) * factor + ofFactor;
  value.variance = (rounded.variance + (exponential * weight) ** 2) * factor ** 2;
  value.known = rounded.known * factor;
  // Where dS is made of P that is written: of the same number.
  roundOperand(arithmetic.weights, weight, ofWeight, rounded);
  const weightError = pair.weightError + rounded.worst;
  const exact = derivative - row.mean;
  const shifted = exact - row.meanShift;
  const size = Math.abs(shifted);
  const ofMean = elementwise * (size + Math.abs(row.mean));
  // A sum of dP may begin with −D, and every addition to it rounds.
  const ofDerivative =
    pair.derivativeError + ofMean + arithmetic.products * Math.abs(row.mean + row.meanShift);
  const reach = size + ofDerivative + row.worstMean;
  const most = weight + weightError;
  const dT = weight * slope * shifted;
  // Theorem 3: errors of one pair alone, before dS is rounded.
  const alone =
    (slope + slopeError) *
      (weightError * reach + weight * ofDerivative + 3 * elementwise * most * reach) +
    slopeError * most * reach +
    3 * underflow * (1 + reach);
  const sloped = weight * slope;
  const ofRow = row.weight * Math.abs(dT) + row.worstMean * sloped * (1 + row.weight);
  const inner = alone * (1 + row.weight);
  roundOperand(arithmetic.ds, dT, inner + ofRow, rounded);
  const terms = Math.abs(dT) + inner + ofRow + rounded.worst;
  const typical =
    slope * (pair.typicalWeight * size + weight * (pair.typicalDerivative + ofMean)) +
    slopeError * weight * size +
    3 * elementwise * Math.abs(dT) +
    3 * underflow;
  const ofExponential = exponential ** 2 + meanRounding * weightRounding ** 2;
  const random =
    rounded.variance +
    ofExponential * dT ** 2 +
    meanRounding * (productRounding * derivative * sloped) ** 2;
  shares.derivative = dT;
  shares.sloped = sloped;
  shares.shift = dT - (weight / (1 + row.weightShift)) * slope * exact;
  query.worst = inner + rounded.worst + overKeys * terms;
  query.systematic = typical;
  query.variance = random;
  query.known = rounded.known;
  key.worst = inner + ofRow + rounded.worst + overQueries * terms;
  key.systematic = typical + row.typicalWeight * Math.abs(dT) + row.typicalMean * sloped;
  key.variance = random + row.meanVariance * sloped * sloped;
  key.known = rounded.known;
}
