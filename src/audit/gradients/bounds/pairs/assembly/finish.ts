// AssemblyScript: the bounds of the elements of a row of a gradient. Its laws are the comments of ../../finish-gradient.ts, and
// Theorems 8 and 9 of docs/theory/bounds-backward.md.

import { distanceToFormat, Format, halfUlpOf } from './formats';
import { square } from './memory';

/** Numbers of the elements of a row, a column of each: what is given, `ElementErrors`, and what is written. */
enum Element {
  exact,
  radius,
  shift,
  pairs,
  pairVariance,
  known,
  unstored,
  magnitude,
  partials,
  lseInput,
  lseVariance,
  delta,
  deltaVariance,
  groupSum,
  groupVariance,
  systematic,
  floor,
  byOthers,
  // Written.
  total = 24,
  systematicBound,
  knownBound,
  deviation,
  reach,
  shiftBound,
  operands,
  byOthersBound,
}

/** Sums that the elements' errors follow from, a column of each: the parts of pairs, and what storing shares of heads loses. */
enum Sum {
  worst,
  magnitude,
  systematic,
  variance,
  known,
  signed = 8,
  value,
  squares,
  ofWeights,
  ofScores,
  ofProducts,
  ofMeans,
  largest,
  storedWorst,
  storedVariance,
  storedKnown,
}

/** Places of techniques that are not of pairs. */
enum Technique {
  lseInput,
  delta,
  accumulate = 6,
  groupSum,
  scale,
  outputRound,
}

/** Techniques in a row of shares: at worst, then variances. */
const techniques: i32 = 10;

/** Standard deviations within which noise is taken to stay when a rounding is called known. */
const sureDeviations: f64 = 12;

/** A factor that covers what fp64 leaves uncertain. */
const up: f64 = 1.000244140625;

/** fp32 sums beyond this may leave their range on the way. */
const largestSum: f64 = 1.329227995784916e36;

/** What all elements of a gradient have in common. */
@unmanaged
export class FinishRules {
  format: Format;
  /** A number from here on becomes infinite. */
  infinite: f64;
  isFp64: bool;
  elementwise: f64;
  elementwiseVariance: f64;
  sumWorst: f64;
  sumToZero: f64;
  sumWalk: f64;
  grown: f64;
  knownOf: i32;
  /** Columns of elements and of sums, `stride` bytes each, and the shares of the row. */
  elements: usize;
  sums: usize;
  stride: usize;
  shares: usize;
  /** Factors beside the smallest that operands may have had, and the number of them all, stored or not. */
  ownOthers: i32;
  others: i32;
}

/** The row of a gradient. */
@unmanaged
export class FinishedRow {
  scale: f64;
  alike: f64;
  /** Whether the parts of fp32 sums are known, and whether shares of heads may be stored. */
  isOfSums: bool;
  isStored: bool;
  /** Whether nothing is known of a row of keys. */
  isUnknown: bool;
  floor: f64;
  weightShift: f64;
  meanShift: f64;
  weight: f64;
  weightVariance: f64;
  worstMean: f64;
  meanVariance: f64;
  typicalMean: f64;
  typicalWeight: f64;
}

// @inline
function column(base: usize, stride: usize, name: i32, at: usize): f64 {
  return load<f64>(base + <usize>name * stride + at);
}

// @inline
function put(base: usize, stride: usize, name: i32, at: usize, x: f64): void {
  store<f64>(base + <usize>name * stride + at, x);
}

/** Adds to a technique's share of the row. */
// @inline
function addShare(shares: usize, place: i32, worst: f64, variance: f64): void {
  const at = shares + ((<usize>place) << 3);
  store<f64>(at, load<f64>(at) + worst);
  const spread = at + ((<usize>techniques) << 3);
  store<f64>(spread, load<f64>(spread) + variance);
}

/** The mean square of the partial sums of an element; Infinity where they are not known. */
// @inline
function partialsOf(row: FinishedRow, sums: usize, stride: usize, at: usize): f64 {
  if (!row.isOfSums) return Infinity;
  const largest = column(sums, stride, Sum.largest, at);
  return largest * largest + column(sums, stride, Sum.squares, at) / 6;
}

/** The error of an element where scores, dP and D are off by shares of themselves; 0 where that is not summed. */
// @inline
function commonOf(row: FinishedRow, sums: usize, stride: usize, at: usize): f64 {
  if (!row.isOfSums) return 0;
  return (
    abs<f64>(column(sums, stride, Sum.ofWeights, at)) +
    abs<f64>(column(sums, stride, Sum.ofScores, at)) +
    abs<f64>(column(sums, stride, Sum.ofProducts, at)) +
    abs<f64>(column(sums, stride, Sum.ofMeans, at))
  );
}

/** The errors of the elements of a row of dQ, from their sums. */
export function errQueries(rules: FinishRules, row: FinishedRow, count: i32): void {
  const to = rules.elements;
  const sums = rules.sums;
  const stride = rules.stride;
  const signedScale = row.scale;
  const scale = abs<f64>(signedScale);
  for (let at: usize = 0; at < (<usize>count) << 3; at += 8) {
    const value = column(to, stride, Element.exact, at);
    const signed = column(sums, stride, Sum.signed, at);
    const shift = row.weightShift * value - signedScale * row.meanShift * signed;
    const size = abs<f64>(value + shift);
    // The keys cancel in the effect of an error of D, and of one of the LSE.
    const ofMean = scale * abs<f64>(signed);
    put(to, stride, Element.shift, at, shift);
    put(to, stride, Element.pairs, at, scale * column(sums, stride, Sum.worst, at));
    const variance = square(scale) * column(sums, stride, Sum.variance, at);
    put(to, stride, Element.pairVariance, at, variance);
    put(to, stride, Element.known, at, signedScale * column(sums, stride, Sum.known, at));
    put(to, stride, Element.unstored, at, 0);
    for (let k = 0; k < rules.ownOthers; k++) {
      const other = signedScale * column(sums, stride, Sum.known + 1 + k, at);
      put(to, stride, Element.byOthers + k, at, other);
    }
    put(to, stride, Element.magnitude, at, scale * column(sums, stride, Sum.magnitude, at));
    put(to, stride, Element.partials, at, square(scale) * partialsOf(row, sums, stride, at));
    put(to, stride, Element.lseInput, at, row.weight * size);
    put(to, stride, Element.lseVariance, at, row.weightVariance * square(size));
    put(to, stride, Element.delta, at, row.worstMean * (1 + row.weight) * ofMean);
    put(to, stride, Element.deltaVariance, at, row.meanVariance * square(ofMean));
    put(to, stride, Element.groupSum, at, 0);
    put(to, stride, Element.groupVariance, at, 0);
    const systematic = column(sums, stride, Sum.systematic, at) + commonOf(row, sums, stride, at);
    put(
      to,
      stride,
      Element.systematic,
      at,
      scale * systematic + row.typicalMean * ofMean + row.typicalWeight * size,
    );
    put(to, stride, Element.floor, at, row.floor);
  }
}

/** Writes what is known of an element's errors: of shares that are stored, and beside it of shares that are not, where either may be. */
// @inline
function writeKnown(rules: FinishRules, row: FinishedRow, at: usize): void {
  const to = rules.elements;
  const sums = rules.sums;
  const stride = rules.stride;
  const others = rules.ownOthers;
  put(to, stride, Element.unstored, at, row.scale * column(sums, stride, Sum.known, at));
  for (let k = 0; k <= others; k++) {
    const unstored = row.scale * column(sums, stride, Sum.known + k, at);
    const ofShares = row.isStored ? column(sums, stride, Sum.storedKnown + k, at) : unstored;
    if (k === 0) put(to, stride, Element.known, at, ofShares);
    else put(to, stride, Element.byOthers + k - 1, at, ofShares);
    if (row.isStored) put(to, stride, Element.byOthers + others + k, at, unstored);
  }
}

/** The errors of the elements of a row of dK or dV, from their sums. */
export function errKeys(rules: FinishRules, row: FinishedRow, count: i32): void {
  const to = rules.elements;
  const sums = rules.sums;
  const stride = rules.stride;
  const scale = row.scale;
  const factor = abs<f64>(scale);
  for (let at: usize = 0; at < (<usize>count) << 3; at += 8) {
    const worst = column(sums, stride, Sum.worst, at);
    put(to, stride, Element.shift, at, scale * column(sums, stride, Sum.signed, at));
    put(to, stride, Element.pairs, at, row.isUnknown ? Infinity : factor * worst);
    const variance = square(factor) * column(sums, stride, Sum.variance, at);
    put(to, stride, Element.pairVariance, at, variance);
    writeKnown(rules, row, at);
    put(to, stride, Element.magnitude, at, factor * column(sums, stride, Sum.magnitude, at));
    put(to, stride, Element.partials, at, square(factor) * partialsOf(row, sums, stride, at));
    for (let name = <i32>Element.lseInput; name <= Element.deltaVariance; name++)
      put(to, stride, name, at, 0);
    const isStored = row.isStored;
    const lost = isStored ? column(sums, stride, Sum.storedWorst, at) : 0;
    put(to, stride, Element.groupSum, at, lost);
    const lostVariance = isStored ? column(sums, stride, Sum.storedVariance, at) : 0;
    put(to, stride, Element.groupVariance, at, lostVariance);
    const systematic = column(sums, stride, Sum.systematic, at) + commonOf(row, sums, stride, at);
    put(to, stride, Element.systematic, at, factor * systematic);
    // A key that no query sees has exact zeros.
    put(to, stride, Element.floor, at, worst > 0 ? row.floor : 0);
  }
}

/** Gives an element up: nothing is known of it. */
function giveUp(rules: FinishRules, at: usize, shift: f64): void {
  const to = rules.elements;
  const stride = rules.stride;
  put(to, stride, Element.total, at, Infinity);
  put(to, stride, Element.systematicBound, at, Infinity);
  put(to, stride, Element.knownBound, at, 0);
  put(to, stride, Element.deviation, at, Infinity);
  put(to, stride, Element.reach, at, 0);
  put(to, stride, Element.shiftBound, at, abs<f64>(shift) < Infinity ? shift : 0);
  put(to, stride, Element.operands, at, 0);
  for (let k = 0; k < rules.others; k++) put(to, stride, Element.byOthersBound + k, at, 0);
  addShare(rules.shares, Technique.outputRound, Infinity, Infinity);
}

/** The element's rounding to the gradient's format, of which `worst` and `variance` are before it: `roundingSpread`. */
function finishRounding(
  rules: FinishRules,
  at: usize,
  value: f64,
  worst: f64,
  variance: f64,
  systematic: f64,
): void {
  const to = rules.elements;
  const stride = rules.stride;
  const format = rules.format;
  const distance = distanceToFormat(format, value);
  const rounding = min<f64>(halfUlpOf(format, value, worst), distance + worst);
  put(to, stride, Element.total, at, worst + rounding);
  const half = halfUlpOf(format, value, 0);
  const noise = sqrt<f64>(variance);
  const reach = sureDeviations * noise + systematic;
  let known: f64 = 0;
  let ofRounding: f64 = 0;
  let isNear = false;
  if (distance + sureDeviations * noise + systematic < half) known = distance;
  else {
    const off = noise + systematic;
    const nearest = min<f64>(distance + off, half);
    const spread = off < half / 8 ? nearest : min<f64>(half / sqrt<f64>(3), nearest);
    ofRounding = square(spread);
    isNear = reach < half;
  }
  put(to, stride, Element.systematicBound, at, systematic);
  put(to, stride, Element.knownBound, at, known);
  put(to, stride, Element.reach, at, isNear ? reach : 0);
  ofRounding += square(known);
  put(to, stride, Element.deviation, at, sqrt<f64>(variance + ofRounding));
  addShare(rules.shares, Technique.outputRound, rounding, ofRounding);
}

/** The bounds of the elements of a row from their errors: `accumulate`, `scale` and `output-round`. */
export function finishElements(rules: FinishRules, alike: f64, count: i32): void {
  const from = rules.elements;
  const stride = rules.stride;
  const shares = rules.shares;
  const grown = rules.grown;
  const elementwise = rules.elementwise;
  const walk = rules.sumWalk;
  for (let at: usize = 0; at < (<usize>count) << 3; at += 8) {
    const shift = column(from, stride, Element.shift, at);
    const radius = column(from, stride, Element.radius, at);
    const magnitude = column(from, stride, Element.magnitude, at);
    const known = column(from, stride, Element.known, at);
    const unstored = column(from, stride, Element.unstored, at);
    const floor = column(from, stride, Element.floor, at);
    const lseVariance = column(from, stride, Element.lseVariance, at);
    const deltaVariance = column(from, stride, Element.deltaVariance, at);
    const groupVariance = column(from, stride, Element.groupVariance, at);
    const value = column(from, stride, Element.exact, at) + shift;
    const size = abs<f64>(value);
    const ofLse = grown * column(from, stride, Element.lseInput, at);
    const ofDelta = grown * column(from, stride, Element.delta, at);
    const ofSum = grown * rules.sumWorst * magnitude;
    const ofGroup = grown * column(from, stride, Element.groupSum, at);
    const ofScale = up * (3 * elementwise * size + floor);
    const partials = min<f64>(
      column(from, stride, Element.partials, at),
      square((magnitude + size) / 2),
    );
    const sumVariance = alike * walk * walk * partials;
    const knownSquare = max<f64>(known * known, unstored * unstored);
    const scaleVariance = rules.elementwiseVariance * size * size;
    const worst =
      grown * column(from, stride, Element.pairs, at) +
      ofLse +
      ofDelta +
      ofSum +
      ofGroup +
      ofScale +
      radius;
    const variance =
      column(from, stride, Element.pairVariance, at) +
      knownSquare +
      lseVariance +
      deltaVariance +
      sumVariance +
      groupVariance +
      scaleVariance;
    addShare(shares, rules.knownOf, 0, knownSquare);
    addShare(shares, Technique.lseInput, ofLse, lseVariance);
    addShare(shares, Technique.delta, ofDelta, deltaVariance);
    addShare(shares, Technique.accumulate, ofSum, sumVariance);
    addShare(shares, Technique.groupSum, ofGroup, groupVariance);
    addShare(shares, Technique.scale, ofScale, scaleVariance);
    const most = size + worst;
    if (!(most < rules.infinite && (rules.isFp64 || most < largestSum))) {
      giveUp(rules, at, shift);
      continue;
    }
    put(from, stride, Element.shiftBound, at, shift);
    put(from, stride, Element.operands, at, known);
    for (let k = 0; k < rules.others; k++)
      put(
        from,
        stride,
        Element.byOthersBound + k,
        at,
        column(from, stride, Element.byOthers + k, at),
      );
    const typical =
      column(from, stride, Element.systematic, at) +
      (rules.sumToZero + elementwise / 2) * size +
      floor +
      radius;
    finishRounding(rules, at, value, worst, variance, min<f64>(typical, worst));
  }
}
