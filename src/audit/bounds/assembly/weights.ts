// AssemblyScript: scores become weights, and how far their rounding moves them. Definition in
// TypeScript: `weighKey` in test/audit/bounds/loop-definitions.ts.

import {
  exp2Fraction,
  scaleByPowerOfTwo,
  sumOf,
} from '../../../../oracles/attention/assembly/exp2';
import { BoundTile } from './memory';
import { placeOf, rowBytes, tile } from './scores';

/** Bytes of the sums that `weigh` gives for each row. */
const sumBytes: usize = 80;

/** 2^⌊log2 a⌋ for normal a > 0. */
// @inline
function leadingPower(a: v128): v128 {
  return v128.and(a, i64x2.splat(0x7ff0000000000000));
}

/** The numbers by which a kernel's weights are judged. */
@unmanaged
export class WeightRules {
  /** Turns scores into exponents of 2. */
  factor: f64;
  offset: f64;
  /** Of the format that weights are rounded to. */
  smallestNormal: f64;
  ulpOfOne: f64;
  maxFinite: f64;
  saturates: bool;
  binsPerOctave: f64;
}

/**
 * Turns a tile of scores into normalised weights w, in place, and says how far rounding moves them.
 * A weight is p·gain with p = 2^x, x = s·factor + shift[i]: p is what the kernel rounds. A score of NaN
 * is that of a key that the row does not see: it has no weight, and nothing else.
 *
 * rounding: how far the rounding of p to a format can move w. Where p is known to within a factor
 * 1 ± (uncertainty[i] + exponential[j]) that is its distance from the nearest number of the format plus
 * the uncertainty, at most half an ulp; where `relative[i]` is positive, p may lie anywhere and it is
 * relative[i]·p + least[i].
 *
 * known: the rounding of w itself, signed, where the uncertainty leaves open neither its sign nor the
 * number that it ends at; else 0.
 *
 * variance: the square of the standard deviation of what is not known: of the rounding, unless it is
 * known, the distance itself where the uncertainty is small beside half an ulp, else that of a uniform
 * error; plus 2w² times the square of exponential[j]; times how many weights of the row share its bin.
 *
 * sums: per row ten numbers: Σ w, Σ w over columns of the polynomial, Σ w·z and Σ w·z² with z the larger
 * of |x| and |x − offset|, Σ of 2w²·exponential[j]² times the count, Σ of what weights below the smallest
 * normal number are off by on average unless it is known, Σ w·e and Σ w·e²
 * with e = 2^t − 1 for the score's error t ≤ 1, Σ w² and Σ w² times the count.
 */
export function weigh(block: BoundTile, rows: i32, rules: WeightRules): void {
  const scores = block.scores;
  const scoreError = block.scoreError;
  const shift = block.shift;
  const gain = block.gain;
  const uncertainty = block.uncertainty;
  const exponential = block.exponential;
  const isPolynomial = block.isPolynomial;
  const relative = block.relative;
  const least = block.least;
  const rounding = block.rounding;
  const known = block.known;
  const variance = block.variance;
  const tables = block.tables;
  const sums = block.sums;
  const bits = block.tableBits;
  const c = f64x2.splat(rules.factor);
  const toOffset = f64x2.splat(rules.offset);
  const smallest = f64x2.splat(rules.smallestNormal);
  const ulp = f64x2.splat(rules.ulpOfOne);
  const maxFinite = rules.maxFinite;
  const saturates = rules.saturates;
  const binsPerOctave = rules.binsPerOctave;
  // `pmin` and `pmax`, which are one instruction, keep a NaN that is their first operand.
  const third = f64x2.splat(1.0 / 3.0);
  const half = f64x2.splat(0.5);
  const magic = f64x2.splat(6755399441055744.0);
  for (let i = 0; i < rows; i++) {
    const at = (<usize>i) << 3;
    const row = scores + <usize>i * rowBytes;
    const move = v128.load64_splat(shift + at);
    const scale = v128.load64_splat(gain + at);
    const kappa = v128.load64_splat(uncertainty + at);
    const anywhere = load<f64>(relative + at);
    const floor = v128.load64_splat(least + at);
    const table = tables + ((<usize>i) << (bits + 1));
    let mass = f64x2.splat(0);
    let polynomial = f64x2.splat(0);
    let first = f64x2.splat(0);
    let second = f64x2.splat(0);
    let common = f64x2.splat(0);
    let biased = f64x2.splat(0);
    let wrong = f64x2.splat(0);
    let wrongSquared = f64x2.splat(0);
    let squared = f64x2.splat(0);
    let squaredAlike = f64x2.splat(0);
    for (let j = 0; j < tile; j += 2) {
      const place = row + ((<usize>j) << 3);
      const t = f64x2.mul(
        v128.load(scoreError + (place - scores)),
        f64x2.splat(0.6931471805599454),
      );
      const score = v128.load(place);
      const visible = f64x2.eq(score, score);
      const y = f64x2.mul(v128.and(score, visible), c);
      const x = f64x2.add(y, move);
      const n = f64x2.nearest(x);
      const clamped = f64x2.pmax(f64x2.pmin(n, f64x2.splat(1000)), f64x2.splat(-1000));
      let p = scaleByPowerOfTwo(exp2Fraction(f64x2.sub(x, n)), clamped);
      p = v128.and(p, v128.and(visible, f64x2.ge(n, f64x2.splat(-1000))));
      const w = f64x2.mul(p, scale);
      const error = v128.load(exponential + ((<usize>j) << 3));
      let moved: v128;
      let deviation: v128;
      let bias: v128;
      let certain = f64x2.splat(0);
      if (anywhere > 0) {
        // What is below half the smallest subnormal is lost.
        bias = f64x2.pmin(p, floor);
        moved = f64x2.add(f64x2.mul(p, f64x2.splat(anywhere)), floor);
        moved = v128.and(moved, visible);
        deviation = f64x2.mul(f64x2.mul(moved, moved), third);
      } else {
        const slack = f64x2.mul(p, f64x2.add(kappa, error));
        // A weight that rounds to zero is lost; between the first subnormals rounding favours the upper
        // one by a tenth of their distance, since there are more small weights than large ones.
        const quantum = f64x2.mul(f64x2.pmax(leadingPower(p), smallest), ulp);
        const shifter = f64x2.mul(quantum, magic);
        const rounded = f64x2.sub(f64x2.add(p, shifter), shifter);
        const isLost = f64x2.eq(rounded, f64x2.splat(0));
        bias = v128.bitselect(p, f64x2.mul(quantum, f64x2.splat(0.1)), isLost);
        bias = v128.and(bias, v128.and(f64x2.lt(p, smallest), f64x2.gt(p, f64x2.splat(0))));
        const near = f64x2.add(f64x2.abs(f64x2.sub(p, rounded)), slack);
        const above = f64x2.add(p, slack);
        const limit = f64x2.mul(f64x2.mul(f64x2.pmax(leadingPower(above), smallest), ulp), half);
        moved = f64x2.pmin(near, limit);
        const isSmall = f64x2.lt(slack, f64x2.mul(limit, f64x2.splat(0.125)));
        const uniform = f64x2.mul(f64x2.mul(limit, limit), third);
        const square = f64x2.mul(moved, moved);
        deviation = v128.bitselect(square, f64x2.pmin(square, uniform), isSmall);
        // Nearer to its number than to a tie by more than the uncertainty.
        let isCertain = f64x2.lt(near, limit);
        let ends = rounded;
        const over = f64x2.sub(above, f64x2.splat(maxFinite));
        const isOver = f64x2.gt(over, f64x2.splat(0));
        if (v128.any_true(isOver)) {
          const worst = saturates ? f64x2.pmax(over, moved) : f64x2.splat(Infinity);
          moved = v128.bitselect(worst, moved, isOver);
          deviation = v128.bitselect(f64x2.mul(worst, worst), deviation, isOver);
          // What saturates ends at the largest number, however large it was.
          ends = f64x2.pmin(ends, f64x2.splat(maxFinite));
          isCertain = saturates ? v128.or(isCertain, isOver) : v128.andnot(isCertain, isOver);
        }
        isCertain = v128.and(isCertain, visible);
        certain = v128.and(f64x2.sub(ends, p), isCertain);
        deviation = v128.andnot(deviation, isCertain);
        bias = v128.andnot(bias, isCertain);
        moved = v128.and(moved, visible);
        deviation = v128.and(deviation, visible);
      }
      const relativeError = f64x2.mul(f64x2.mul(w, w), f64x2.mul(error, error));
      const doubled = f64x2.add(relativeError, relativeError);
      let count = f64x2.splat(1);
      if (bits !== 0 && v128.any_true(p)) {
        const count0 = load<u16>(
          table + (placeOf(f64x2.extract_lane(y, 0), binsPerOctave, bits) << 1),
        );
        const count1 = load<u16>(
          table + (placeOf(f64x2.extract_lane(y, 1), binsPerOctave, bits) << 1),
        );
        count = f64x2.replace_lane(count, 0, <f64>max<i32>(<i32>count0, 1));
        count = f64x2.replace_lane(count, 1, <f64>max<i32>(<i32>count1, 1));
      }
      v128.store(place, w);
      v128.store(rounding + (place - scores), f64x2.mul(moved, scale));
      v128.store(known + (place - scores), f64x2.mul(certain, scale));
      const ww = f64x2.mul(w, w);
      squared = f64x2.add(squared, ww);
      squaredAlike = f64x2.add(squaredAlike, f64x2.mul(count, ww));
      const ofRounding = f64x2.mul(deviation, f64x2.mul(scale, scale));
      v128.store(variance + (place - scores), f64x2.mul(count, f64x2.add(ofRounding, doubled)));
      const z = f64x2.pmax(f64x2.abs(x), f64x2.abs(f64x2.sub(x, toOffset)));
      // A weight that underflows to 0 may have any exponent: 0·∞ must not arise.
      const wz = v128.and(f64x2.mul(w, z), f64x2.gt(w, f64x2.splat(0)));
      // e^t − 1 ≤ t + t² for t ≤ 1.
      const e = f64x2.add(t, f64x2.mul(t, t));
      const we = f64x2.mul(w, e);
      wrong = f64x2.add(wrong, we);
      wrongSquared = f64x2.add(wrongSquared, f64x2.mul(we, e));
      mass = f64x2.add(mass, w);
      polynomial = f64x2.add(polynomial, f64x2.mul(w, v128.load(isPolynomial + ((<usize>j) << 3))));
      first = f64x2.add(first, wz);
      second = f64x2.add(second, v128.and(f64x2.mul(wz, z), f64x2.gt(w, f64x2.splat(0))));
      common = f64x2.add(common, f64x2.mul(count, doubled));
      biased = f64x2.add(biased, f64x2.mul(bias, scale));
    }
    const out = sums + <usize>i * sumBytes;
    store<f64>(out, sumOf(mass));
    store<f64>(out, sumOf(polynomial), 8);
    store<f64>(out, sumOf(first), 16);
    store<f64>(out, sumOf(second), 24);
    store<f64>(out, sumOf(common), 32);
    store<f64>(out, sumOf(biased), 40);
    store<f64>(out, sumOf(wrong), 48);
    store<f64>(out, sumOf(wrongSquared), 56);
    store<f64>(out, sumOf(squared), 64);
    store<f64>(out, sumOf(squaredAlike), 72);
  }
}
