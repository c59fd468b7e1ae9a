import { scaledIntegerOf } from '../../src/arith/index.js';
import {
  bitLength,
  createExp2,
  ln2,
  log2e,
  naturalLogarithm,
  ratioToNumber,
  shiftBigInt,
} from '../fixed-point.js';
import { exactAddends, exactScores, scaledVector, type ScaledVector } from './scores.js';
import type { ScoreLaw } from '../../src/problem/index.js';
import { operandRow } from './operand.js';
import type { Row, RowResult } from './row.js';

/** An upper bound on numerator / denominator · 2^exponent as fp64. */
export function ratioUp(numerator: bigint, denominator: bigint, exponent: number): number {
  if (numerator === 0n) return 0;
  return ratioToNumber(numerator, denominator, exponent) * (1 + 2 ** -50) + Number.MIN_VALUE;
}

/** Units of 2^-bits by which an exponent y = score · log2 e can be off. */
const exponentError = 4n;

/** Units by which a weight can be off: exp2's own 4 (for a result below 2) and y's, times 2 ln 2. */
export const weightError = (exponentError * 3n) / 2n + 4n;

/** x · log2 e · 2^bits of each number, within 1 + 2^-7 units. */
function timesLog2e({ integers, exponent }: ScaledVector, bits: number): bigint[] {
  const widest = integers.reduce((most, x) => Math.max(most, bitLength(x)), 0);
  const constantBits = bits + Math.max(0, widest + exponent) + 8;
  const constant = log2e(constantBits);
  return integers.map((x) => shiftBigInt(x * constant, exponent - constantBits + bits));
}

/** Exponents in fixed point, and for a softcap the slopes of the scores. */
interface FixedPointExponents {
  /** y · 2^bits, within `exponentError` units. */
  readonly y: readonly bigint[];
  /** 1 − tanh² of each score, within `error` units; null without a softcap. */
  readonly slopes: { readonly integers: readonly bigint[]; readonly error: bigint } | null;
}

/** The exponents of scaled scores. */
export function fixedPointExponents(
  scores: ScaledVector,
  row: Row,
  law: ScoreLaw,
  bits: number,
): FixedPointExponents {
  if (law.softcap === null) return { y: timesLog2e(scores, bits), slopes: null };
  const { y: capped, slopes } = cappedExponents(scores, row.infinite, law.softcap, bits);
  const addends = exactAddends(row);
  if (addends === null) return { y: capped, slopes };
  const added = timesLog2e(addends, bits);
  return { y: capped.map((y, j) => y + added[j]), slopes };
}

/**
 * y = cap · log2 e · tanh(x / cap), the tanh from 2^-z with z = 2 log2(e) |x| / cap; within 2 units. The slopes are
 * 4 · 2^-z / (1 + 2^-z)² within 2 units: 2^-z is within 3 of the finer ones, 256 to a unit, and the slope moves by
 * at most 4 times as much.
 */
function cappedExponents(
  { integers: scaled, exponent: scaledExponent }: ScaledVector,
  infinite: Int8Array,
  softcap: number,
  bits: number,
) {
  const cap = scaledIntegerOf(softcap);
  const work = bits + 8 + Math.max(0, bitLength(cap.integer) + cap.exponent);
  const one = 1n << BigInt(work);
  const exp2 = createExp2(work);
  const shift = scaledExponent - cap.exponent + 1;
  // It moves z by z · 2^-64 units, which is next to nothing up to z = work; beyond that 2^-z is 0.
  const constant = log2e(work + 64);
  const capLog2e = cap.integer * constant;
  const slopes: bigint[] = [];
  const y = scaled.map((x, j) => {
    const negative = infinite[j] === 0 ? x < 0n : infinite[j] < 0;
    let power = 0n;
    if (infinite[j] === 0) {
      const numerator = shiftBigInt((x < 0n ? -x : x) * constant, shift);
      power = exp2(-((numerator / cap.integer) >> 64n));
    }
    const sum = one + power;
    slopes.push(
      ((((power << BigInt(work + 2)) / sum) << BigInt(work)) / sum) >> BigInt(work - bits),
    );
    const tanh = ((one - power) << BigInt(work)) / sum;
    const exponent = shiftBigInt(capLog2e * tanh, cap.exponent - 2 * work - 64 + bits);
    return negative ? -exponent : exponent;
  });
  return { y, slopes: { integers: slopes, error: 2n } };
}

/** The most elements of values held at a time. */
const heldElements = 2 ** 20;

/** The columns of V over the keys of a row, some at a time; 0 for a key that dropout does not keep. */
function* columnsOf({ values, visible, kept }: Row): Generator<Float64Array> {
  const { dim } = values;
  const atOnce = Math.max(1, Math.floor(heldElements / visible.length));
  for (let first = 0; first < dim; first += atOnce) {
    const count = Math.min(atOnce, dim - first);
    const columns = Array.from({ length: count }, () => new Float64Array(visible.length));
    visible.forEach((key, j) => {
      if (kept?.[j] === 0) return;
      const value = operandRow(values, key);
      for (let c = 0; c < count; c++) columns[c][j] = value[first + c];
    });
    yield* columns;
  }
}

/** Divisor of sums over keys, relative to 2^reference: `sum` · 2^(lift − bits), off by `error` units. */
export interface Divisor {
  readonly sum: bigint;
  readonly error: bigint;
  readonly lift: bigint;
}

/** Lifts beyond this leave nothing of O in fp64, and more of a shift than can be done. */
const largestLift = 10_000n;

/** The sum of a row's weights with its sink, lifted where that is larger than the reference of the keys. */
export function withSink(
  keys: Pick<Divisor, 'sum' | 'error'>,
  reference: bigint,
  { sink }: Row,
  bits: number,
): Divisor {
  if (sink === null) return { ...keys, lift: 0n };
  const { integer, exponent } = scaledIntegerOf(sink.logit);
  const [y] = timesLog2e({ integers: [integer], exponent }, bits);
  const above = (y >> BigInt(bits)) - reference;
  const lift = above > 0n ? above : 0n;
  const ofKeys = lift > largestLift ? 0n : keys.sum >> lift;
  const ofSink = createExp2(bits)(y - ((reference + lift) << BigInt(bits)));
  // The keys' shift cuts off less than a unit.
  return { sum: ofKeys + ofSink, error: keys.error + weightError + 1n, lift };
}

/**
 * One row in fixed-point arithmetic with `bits` fraction bits, from exact dot products. Radii are
 * proven: every floor in the computation is counted in units of 2^-bits (see the constants above),
 * and the final quotient is rounded to fp64 once.
 */
export function arbitraryLevel(row: Row, law: ScoreLaw, bits: number): RowResult {
  const { sink } = row;
  const vDim = row.values.dim;
  const { y } = fixedPointExponents(exactScores(row, law), row, law, bits);
  const largest = y.reduce((a, b) => (b > a ? b : a));
  const reference = largest >> BigInt(bits);
  const exp2 = createExp2(bits);
  const weights = y.map((exponent) => exp2(exponent - (reference << BigInt(bits))));
  const total = weights.reduce((a, b) => a + b);
  const totalError = weightError * BigInt(weights.length);
  const divisor = withSink({ sum: total, error: totalError }, reference, row, bits);
  const lift = Number(divisor.lift > largestLift ? largestLift : divisor.lift);
  const share = scaledIntegerOf(row.share);
  const { sum: divisorSum, error: divisorError } = divisor;
  const shared = divisorSum * share.integer;

  const out = new Float64Array(vDim);
  const outRadius = new Float64Array(vDim);
  const magnitude = new Float64Array(vDim);
  let c = 0;
  for (const values of columnsOf(row)) {
    const column = scaledVector(values);
    let sum = 0n;
    let absoluteSum = 0n;
    let valueSum = 0n;
    column.integers.forEach((v, j) => {
      const absolute = v < 0n ? -v : v;
      sum += weights[j] * v;
      absoluteSum += weights[j] * absolute;
      valueSum += absolute;
    });
    const exact = sum < 0n ? -sum : sum;
    const exponent = column.exponent - share.exponent - lift;
    out[c] = ratioToNumber(sum, shared, exponent);
    magnitude[c] = ratioToNumber(absoluteSum, shared, exponent);
    // |N/l − N̂/l̂| ≤ (dN + |N̂/l̂| dl) / (l̂ − dl), then the rounding of the quotient to fp64.
    outRadius[c] =
      valueSum === 0n
        ? 0
        : ratioUp(
            weightError * valueSum * divisorSum + exact * divisorError,
            shared * (divisorSum - divisorError),
            exponent,
          ) +
          2 ** -53 * Math.abs(out[c]) +
          Number.MIN_VALUE;
    c++;
  }
  const ofLogarithm = (sum: bigint, octaves: bigint) => {
    const work = bits + 64 + bitLength(octaves);
    const units = ((octaves * ln2(work)) >> BigInt(work - bits)) + naturalLogarithm(sum, bits);
    return ratioToNumber(units, 1n << BigInt(bits), 0);
  };
  const denominator = ofLogarithm(divisorSum, reference + divisor.lift);
  const lse = sink?.inLse === false ? ofLogarithm(total, reference) : denominator;
  const lseUnits = 4n + 2n * divisorError;
  return {
    out,
    outRadius,
    magnitude,
    lse,
    // An LSE beyond fp64 is an infinity, which has no radius.
    lseRadius: Number.isFinite(lse)
      ? ratioUp(lseUnits, 1n << BigInt(bits), 0) + 2 ** -53 * Math.abs(lse)
      : 0,
    // Halved, since a score that fp64 holds can be beyond its range in octaves.
    maximum: ratioToNumber(largest, 1n << BigInt(bits), -1) * (2 * Math.LN2),
    denominator,
  };
}
