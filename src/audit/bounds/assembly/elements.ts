// AssemblyScript: the bounds of a row's elements. Its laws are the comments of ../finish/finish-elements.ts, and the rounding's
// are those of ../finish.ts; products and sums are in the same order, so that the numbers are too.

import { halfUlpAt, nearestIn } from './format';
import { BoundTile } from './memory';

/** Blocks of `stride` bytes, one behind the other: what is known of the elements, and what is written. */
enum Column {
  // Given.
  exact,
  radius,
  largestValue,
  // In the order of a form's coefficients; the magnitude is given.
  size,
  magnitude,
  scatter,
  moved,
  accumulated,
  rescaled,
  underflow,
  // Of this module alone.
  squares,
  factor,
  sum,
  // Written: a bound for each technique but the last, then these.
  techniques,
}

/** Techniques before the output's rounding, terms of a form, and its numbers: the coefficients and the constant. */
const forms: i32 = 9;
const terms: i32 = 7;
const formBytes: usize = 64;

/** Numbers of a row, and of the output's format: `elementRow` in ../finish/finish-elements.ts. */
@unmanaged
export class ElementRow {
  scale: f64;
  share: f64;
  lost: f64;
  largestValue: f64;
  reach: f64;
  largestSum: f64;
  inflation: f64;
  typicalWeights: f64;
  ofSize: f64;
  ofMagnitude: f64;
  fixed: f64;
  subnormalBias: f64;
  exponentialVariance: f64;
  squaredMagnitude: f64;
  precision: i32;
  minExponent: i32;
  maxExponent: i32;
  maxFinite: f64;
  saturates: bool;
  direction: i32;
}

/** Directions of the output's rounding. */
const nearest_: i32 = 0;
const truncated: i32 = 1;

/** Standard deviations within which noise is taken to stay when the rounding is called known. */
const sureDeviations: f64 = 12;

/** Half an ulp of a value known to within `error`. */
function halfUlp(row: ElementRow, value: f64, error: f64): f64 {
  const x = min<f64>(abs<f64>(value) + error, row.maxFinite);
  return halfUlpAt(x, row.precision, row.minExponent, row.maxExponent);
}

/** To the nearest number of the format, ties to even: NaN beyond the largest, or that. */
function rounded(row: ElementRow, value: f64): f64 {
  return nearestIn(value, row.precision, row.minExponent, row.maxFinite, row.saturates);
}

/** How far a value is from the nearest number of the format; ∞ beyond the largest. */
function distanceToFormat(row: ElementRow, value: f64): f64 {
  const distance = abs<f64>(rounded(row, value) - value);
  return distance !== distance ? Infinity : distance;
}

/** The same as in ../weigh-tiles.ts. */
const narrowLoss: f64 = 7.62939453125e-6;

/** What is known of the elements, from the running sums of the row. */
function gather(block: BoundTile, row: ElementRow, stride: usize, first: usize): void {
  const columns = block.elements;
  const squares = block.squares + first;
  const moved = block.moved + first;
  const accumulated = block.accumulated + first;
  const rescaled = block.rescaled + first;
  const scale = f64x2.splat(row.scale);
  const share = f64x2.splat(row.share);
  const lost = f64x2.splat(row.lost);
  const largest = f64x2.splat(row.largestValue * row.scale);
  const reach = f64x2.splat(row.reach);
  const largestSum = f64x2.splat(row.largestSum);
  const factor = f64x2.splat(row.inflation / row.scale);
  for (let at: usize = 0; at < stride; at += 16) {
    const place = columns + at;
    const size = f64x2.mul(f64x2.abs(v128.load(place + <usize>Column.exact * stride)), scale);
    const ofSquares = f64x2.mul(v128.load(squares + at), share);
    v128.store(place + <usize>Column.size * stride, size);
    const magnitude = place + <usize>Column.magnitude * stride;
    v128.store(magnitude, f64x2.mul(v128.load(magnitude), scale));
    v128.store(place + <usize>Column.squares * stride, ofSquares);
    // The subtraction cancels, up to an error of fp64.
    const square = f64x2.mul(size, size);
    const variance = f64x2.max(f64x2.splat(0), f64x2.sub(ofSquares, square));
    const slack = f64x2.mul(square, f64x2.splat(9.094947017729282e-13));
    v128.store(place + <usize>Column.scatter * stride, f64x2.sqrt(f64x2.add(variance, slack)));
    v128.store(place + <usize>Column.moved * stride, f64x2.mul(v128.load(moved + at), share));
    v128.store(
      place + <usize>Column.accumulated * stride,
      f64x2.mul(v128.load(accumulated + at), share),
    );
    v128.store(place + <usize>Column.rescaled * stride, f64x2.mul(v128.load(rescaled + at), share));
    v128.store(place + <usize>Column.underflow * stride, f64x2.mul(lost, f64x2.add(largest, size)));
    const ofValues = f64x2.mul(v128.load(place + <usize>Column.largestValue * stride), reach);
    const overflows = f64x2.ge(ofValues, largestSum);
    v128.store(
      place + <usize>Column.factor * stride,
      v128.bitselect(f64x2.splat(Infinity), factor, overflows),
    );
    v128.store(place + <usize>Column.sum * stride, f64x2.splat(0));
  }
}

/** The techniques' bounds, and their sums. What a form does not have does not count, not even times 0. */
function boundTechniques(columns: usize, stride: usize, formsAt: usize, has: usize): void {
  for (let k = 0; k < forms; k++) {
    const form = formsAt + <usize>k * formBytes;
    const present = load<i32>(has + ((<usize>k) << 2));
    const bounds = columns + <usize>(Column.techniques + k) * stride;
    const constant = v128.load64_splat(form, 56);
    for (let at: usize = 0; at < stride; at += 16) v128.store(bounds + at, constant);
    for (let t = 0; t < terms; t++) {
      if (((present >> t) & 1) === 0) continue;
      const coefficient = v128.load64_splat(form + ((<usize>t) << 3));
      const values = columns + <usize>(Column.size + t) * stride;
      for (let at: usize = 0; at < stride; at += 16) {
        const added = f64x2.mul(coefficient, v128.load(values + at));
        v128.store(bounds + at, f64x2.add(v128.load(bounds + at), added));
      }
    }
    const sums = columns + <usize>Column.sum * stride;
    for (let at: usize = 0; at < stride; at += 16) {
      const factor = v128.load(columns + <usize>Column.factor * stride + at);
      const nothing = f64x2.eq(factor, f64x2.splat(Infinity));
      const product = f64x2.mul(v128.load(bounds + at), factor);
      const bound = v128.bitselect(f64x2.splat(Infinity), product, nothing);
      v128.store(bounds + at, bound);
      v128.store(sums + at, f64x2.add(v128.load(sums + at), bound));
    }
  }
}

/** A bound times a factor; nothing is known where the factor is infinite. */
// @inline
function scaled(bound: f64, factor: f64): f64 {
  return factor === Infinity ? Infinity : bound * factor;
}

/**
 * The bounds of a row's elements, with the rounding of the output.
 * @param local the row's place among the 64
 * @param count its elements
 */
export function finishElements(block: BoundTile, row: ElementRow, local: i32, count: i32): void {
  // A multiple of 16.
  const stride = (<usize>block.columns) << 3;
  const first = <usize>local * stride;
  const columns = block.elements;
  const predictions = block.predicted + first;
  const spread = block.spread + first;
  gather(block, row, stride, first);
  boundTechniques(columns, stride, block.forms, block.has);
  const share = row.share;
  const scale = row.scale;
  const inflation = row.inflation;
  const typicalWeights = row.typicalWeights;
  const ofSize = row.ofSize;
  const ofMagnitude = row.ofMagnitude;
  const fixed = row.fixed;
  const subnormalBias = row.subnormalBias;
  const exponentialVariance = row.exponentialVariance;
  const squaredMagnitude = row.squaredMagnitude;
  const direction = row.direction;
  const written = columns + <usize>(Column.techniques + forms) * stride;
  for (let c = 0; c < count; c++) {
    const at = (<usize>c) << 3;
    const place = columns + at;
    const out = written + at;
    const exact = load<f64>(place + <usize>Column.exact * stride);
    const radius = load<f64>(place + <usize>Column.radius * stride);
    const size = load<f64>(place + <usize>Column.size * stride);
    const magnitude = load<f64>(place + <usize>Column.magnitude * stride);
    const sum = load<f64>(place + <usize>Column.sum * stride);
    const factor = load<f64>(place + <usize>Column.factor * stride);
    // Weights beyond fp64 have no bound, nor known roundings, whose products with zeros are no numbers.
    const predicted = inflation === Infinity ? 0 : (load<f64>(predictions + at) * share) / scale;
    // The nearest number cannot be farther than the exact output's.
    const distance = direction === nearest_ ? distanceToFormat(row, exact) : Infinity;
    const ofFormat = halfUlp(row, exact, sum) * (direction === nearest_ ? 1 : 2);
    const rounding = sum === Infinity ? Infinity : min<f64>(ofFormat, distance + sum);
    store<f64>(out, rounding);
    store<f64>(out + stride, sum + rounding + radius);
    let systematic =
      typicalWeights * load<f64>(place + <usize>Column.scatter * stride) +
      // Σ b|v| for biases b of at most w each, by Cauchy and Schwarz.
      sqrt<f64>(subnormalBias * load<f64>(place + <usize>Column.squares * stride)) +
      load<f64>(place + <usize>Column.accumulated * stride) +
      load<f64>(place + <usize>Column.rescaled * stride) +
      ofSize * size +
      ofMagnitude * magnitude +
      2 * load<f64>(place + <usize>Column.underflow * stride) +
      fixed;
    // Σ known·v may be off by so much of Σ |known·v|, which is at most what roundings move.
    if (predicted !== 0) systematic += narrowLoss * load<f64>(place + <usize>Column.moved * stride);
    systematic = scaled(systematic, factor) + radius;
    const random =
      load<f64>(spread + at) * (share * share) +
      exponentialVariance * size * size +
      squaredMagnitude * (magnitude * magnitude);
    const ofWeights = scaled(random, factor * factor);
    const shift = abs<f64>(predicted);
    let known = scaled(shift, inflation);
    // The spread of the rounding: `roundingSpread`.
    const moving = exact + predicted;
    const half = halfUlp(row, moving, 0);
    const noise = sqrt<f64>(ofWeights);
    const bias = systematic + (known - shift);
    let variance: f64 = 0;
    if (direction === nearest_) {
      const gap = distanceToFormat(row, moving);
      if (gap + sureDeviations * noise + bias < half)
        known = abs<f64>(rounded(row, moving) - exact);
      else {
        const off = noise + bias;
        const closest = min<f64>(gap + off, half);
        const width = off < half / 8 ? closest : min<f64>(half / sqrt<f64>(3), closest);
        variance = width * width;
      }
    } else if (direction === truncated) systematic += 2 * half;
    else variance = half * half;
    store<f64>(out + 2 * stride, systematic);
    store<f64>(out + 3 * stride, known);
    store<f64>(out + 4 * stride, sqrt<f64>(ofWeights + variance + known * known));
  }
}
