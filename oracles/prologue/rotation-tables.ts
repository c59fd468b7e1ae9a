import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  unitRoundoff,
  type Tensor,
} from '../../src/formats/index.js';
import type {
  MadeTables,
  RotaryFrequencies,
  RotaryTables,
  TableErrors,
} from '../../src/problem/index.js';
import { createExp2, log2e, naturalLogarithm } from '../fixed-point.js';

/** Fraction bits of frequencies and angles. */
const bits = 128;
/** Fraction bits of a base. */
const baseBits = 20;
/** Room for positions, which have 32 bits. */
const guard = 40;

/** The most by which {@link exactAngles} miss a cosine or sine: fp64's functions err by less than 2 ulps between −π and π. */
export const angleRadius = 2 ** -50;

/** atan(1/n) · 2^work, within as many units as it has terms. */
function inverseTangent(n: bigint, work: number): bigint {
  let power = (1n << BigInt(work)) / n;
  let sum = power;
  for (let k = 3n, sign = -1n; power !== 0n; k += 2n, sign = -sign) {
    power /= n * n;
    sum += (sign * power) / k;
  }
  return sum;
}

/** 2π · 2^(bits + guard): Machin's formula. */
function fullTurn(): bigint {
  const work = bits + guard + 16;
  return (32n * inverseTangent(5n, work) - 8n * inverseTangent(239n, work)) >> 16n;
}

/** The frequency of each pair, · 2^(bits + guard). */
function frequenciesOf({ base, dims, pairs, factor }: RotaryFrequencies): bigint[] {
  const work = bits + guard;
  const scaled = BigInt(Math.round(base * 2 ** baseBits)) << BigInt(work - baseBits);
  const logarithm = (naturalLogarithm(scaled, work) * log2e(work)) >> BigInt(work);
  const exp2 = createExp2(work);
  const divisor = BigInt(Math.round(factor * 2 ** baseBits));
  return Array.from({ length: pairs }, (_, t) => {
    const power = exp2((-logarithm * BigInt(2 * t)) / BigInt(dims));
    return (power << BigInt(baseBits)) / divisor;
  });
}

/** Cosine and sine of position · frequency, [positions, pairs], each within {@link angleRadius}. */
export function exactAngles(
  positions: ArrayLike<number>,
  of: RotaryFrequencies,
): { readonly cos: Float64Array; readonly sin: Float64Array; readonly angles: Float64Array } {
  const { pairs } = of;
  const frequencies = frequenciesOf(of);
  const turn = fullTurn();
  const unit = 2 ** -(bits + guard - 64);
  const size = positions.length * pairs;
  const [cos, sin, angles] = [0, 0, 0].map(() => new Float64Array(size));
  for (let row = 0; row < positions.length; row++)
    for (let t = 0; t < pairs; t++) {
      const angle = BigInt(positions[row]) * frequencies[t];
      const rest = angle % turn;
      const near = 2n * rest > turn ? rest - turn : rest;
      const radians = Number(near >> 64n) * unit;
      const at = row * pairs + t;
      cos[at] = Math.cos(radians);
      sin[at] = Math.sin(radians);
      angles[at] = Number(angle >> 64n) * unit;
    }
  return { cos, sin, angles };
}

/** Unit roundoff of fp32, in which kernels make frequencies and angles. */
const unit = unitRoundoff(formats.fp32);

/** What kernels' sines and cosines err by: sin.approx.f32 by 2^-20.5 in the PTX ISA, others by less. */
const functionError = 2 ** -20.5;

/** Numbers that a kernel's tables may have: the middle of them, and the most by which they differ from it. */
function storedTable(
  exact: Float64Array,
  errors: Float64Array,
  { format }: MadeTables,
): { readonly middle: Float64Array; readonly errors: Float64Array } {
  if (format === 'fp32') return { middle: exact, errors };
  const round = (x: Float64Array) => {
    const data = encodeFromFloat64(formats[format], x);
    return decodeTensor({ format, shape: [x.length], data });
  };
  const low = round(exact.map((x, i) => x - errors[i]));
  const high = round(exact.map((x, i) => x + errors[i]));
  return {
    middle: low.map((x, i) => (x + high[i]) / 2),
    errors: low.map((x, i) => (high[i] - x) / 2),
  };
}

/**
 * The tables that a kernel may compute by itself, a row for each of some positions, and the most by which a right kernel's differ. It has
 * a frequency by pow, 4 ulps, or by exp2 of a product, whose exponent errs by three roundings; the product with the position is rounded
 * once. The error of an angle is that of cosine and sine at most. A table in a shorter format has a rounding of one of these numbers.
 */
export function computedTables(
  positions: ArrayLike<number>,
  made: MadeTables,
): { readonly tables: RotaryTables; readonly errors: TableErrors } {
  const { frequencies: of } = made;
  const { cos, sin, angles } = exactAngles(positions, of);
  const shape = [positions.length, of.pairs];
  const logarithm = Math.log(of.base);
  const errors = angles.map((angle, at) => {
    const t = at % of.pairs;
    const ofFactor = of.factor === 1 ? 0 : 1;
    const units = 1 + ofFactor + (t === 0 ? 0 : 13 + (3 * logarithm * 2 * t) / of.dims);
    return Math.min(2, Math.abs(angle) * units * unit + functionError + angleRadius);
  });
  const [ofCos, ofSin] = [storedTable(cos, errors, made), storedTable(sin, errors, made)];
  const tensor = (data: Float64Array): Tensor => ({ format: 'fp64', shape, data });
  return {
    tables: { cos: tensor(ofCos.middle), sin: tensor(ofSin.middle) },
    errors: { cos: ofCos.errors, sin: ofSin.errors },
  };
}
