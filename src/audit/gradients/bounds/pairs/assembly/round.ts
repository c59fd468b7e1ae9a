// AssemblyScript: roundings of operands. Its laws are the comments of ../roundings.ts.

import { number, Operand, Rounding, square, write } from './memory';

/** 2^e for x in [2^e, 2^(e+1)), 2^-900 < x < 2^900: x to one bit, by Veltkamp's splitting. */
// @inline
function binade(x: f64): f64 {
  const split = x * 4503599627370497;
  const nearest = split - (split - x);
  return nearest > x ? nearest / 2 : nearest;
}

/** Half an ulp of a format at 0 ≤ x < 2^900: of its subnormals where x is among them. */
// @inline
function halfUlp(operand: Operand, x: f64): f64 {
  return x * operand.unit <= operand.least
    ? operand.least
    : max<f64>(binade(x) * operand.unit, operand.least);
}

/** 1.5·2^53: a number of fp64 that far from 0 has a last bit of 2. */
const far: f64 = 13510798882111488;

/** The rounding of x to a format without a largest number. */
// @inline
function roundedNear(operand: Operand, x: f64): f64 {
  const beside = far * halfUlp(operand, abs<f64>(x));
  return x + beside - beside;
}

/** The rounding of x times a factor: among the smallest numbers of a format it depends on little but the values; else 0. */
// @inline
function ofSubnormal(operand: Operand, x: f64, factor: f64): f64 {
  const scaled = x * factor;
  return abs<f64>(scaled) * operand.unit <= operand.least
    ? roundedNear(operand, scaled) / factor - x
    : 0;
}

/** Number k of an array. */
// @inline
function entry(array: usize, k: i32): f64 {
  return load<f64>(array + ((<usize>k) << 3));
}

/** The most other factors. */
const mostOthers: i32 = 3;

/** The roundings at bytes [begin, end) of the blocks. */
export function roundOperands(operand: Operand, roundings: usize, begin: usize, end: usize): void {
  const isOpen = operand.unitCount > 0 || operand.times > 1;
  const times = operand.times;
  for (let at = begin; at < end; at += 8) {
    for (let k = 0; k < mostOthers; k++) write(roundings, Rounding.byOthers + k, at, 0);
    let worst: f64 = 0;
    let known: f64 = 0;
    let variance: f64 = 0;
    if (operand.isRounded) {
      const x = number(roundings, Rounding.numbers, at);
      const error = number(roundings, Rounding.errors, at);
      const most = (abs<f64>(x) + error) * 1.00000095367431640625;
      const half = halfUlp(operand, most);
      if (!(most * operand.largestUnit < operand.maxFinite)) worst = Infinity;
      else if (most * operand.largestUnit < operand.least) {
        // It becomes zero, whatever factor it has by then.
        worst = most;
        known = -x;
        for (let k = 0; k < operand.otherCount; k++)
          write(roundings, Rounding.byOthers + k, at, -x);
      } else if (isOpen) {
        let largest = half;
        for (let k = 0; k < operand.unitCount; k++) {
          const unit = entry(operand.units, k);
          largest = max<f64>(largest, halfUlp(operand, most * unit) / unit);
        }
        // A number that is rounded again may be in the next binade by then.
        worst = times === 1 ? largest : 2 * times * largest * 1.015625;
        variance = (times * largest * largest) / 3;
        // By the factor that leaves least of them, and by each of the others.
        known = ofSubnormal(operand, x, operand.smallestUnit);
        for (let k = 0; k < operand.otherCount; k++)
          write(
            roundings,
            Rounding.byOthers + k,
            at,
            ofSubnormal(operand, x, entry(operand.others, k)),
          );
      } else {
        const rounding = roundedNear(operand, x) - x;
        const distance = abs<f64>(rounding);
        worst = min<f64>(half, distance + error);
        if (distance + error < half) known = rounding;
        // A rounding that is open though the error is less than half an ulp is next to a tie: off by its distance,
        // up or down.
        else variance = error < half ? square(distance) : square(half) / 3;
      }
    }
    write(roundings, Rounding.worst, at, worst);
    write(roundings, Rounding.known, at, known);
    write(roundings, Rounding.variance, at, variance);
  }
}
