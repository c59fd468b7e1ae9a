import {
  formats,
  smallestNormal,
  smallestSubnormal,
  unitRoundoff,
  type FormatName,
} from '../../../formats/index.js';
import type { RecurrentArithmetic, RecurrentValue } from '../../../../kernels/index.js';

/**
 * No unit is taken to be smaller, so that the fp64 roundings of the bounds themselves, and of the exact values that they are made of, are
 * a small part of what they allow a kernel.
 */
const smallestUnit = 2 ** -40;

/** What a conversion to a format may do. */
export interface Conversion {
  /** The largest relative error. */
  readonly unit: number;
  /** The largest error of a number that underflows. */
  readonly least: number;
  /** Numbers below this do not overflow. */
  readonly largest: number;
  /** The largest error of a number of at most this magnitude: half an ulp of it; ∞ where it overflows. */
  readonly error: (magnitude: number) => number;
}

/**
 * A conversion to a format: to nearest, of tf32 also by truncation, as tensor cores read it. Results below the smallest normal number may be flushed
 * to zero in fp32 and tf32.
 */
function conversionTo(name: FormatName): Conversion {
  const format = formats[name];
  const truncates = name === 'tf32' ? 2 : 1;
  const unit = Math.max(truncates * unitRoundoff(format), smallestUnit);
  const isFlushed = name === 'fp32' || name === 'tf32';
  const least = isFlushed ? smallestNormal(format) : smallestSubnormal(format) / 2;
  const value = new Float64Array(1);
  const words = new Uint32Array(value.buffer);
  return {
    unit,
    least,
    largest: format.maxFinite,
    error: (magnitude) => {
      if (!(magnitude < format.maxFinite)) return Infinity;
      if (magnitude === 0) return 0;
      // The power of two below.
      value[0] = magnitude;
      words[0] = 0;
      words[1] &= 0x7ff00000;
      return Math.max(unit * value[0], least);
    },
  };
}

/** No rounding at all: numbers that a format holds anyway. */
const exact: Conversion = { unit: 0, least: 0, largest: Infinity, error: () => 0 };

/** Whether every number of a format is one of another. */
export function holds(wide: FormatName, narrow: FormatName): boolean {
  const [a, b] = [formats[wide], formats[narrow]];
  return (
    a.precision >= b.precision && a.maxExponent >= b.maxExponent && a.minExponent <= b.minExponent
  );
}

/** A conversion of numbers of a format to another: none where it holds them. */
export const conversion = (to: FormatName, from?: FormatName): Conversion =>
  from !== undefined && holds(to, from) ? exact : conversionTo(to);

/**
 * What a conversion moves x by, |x| ≤ magnitude, at most, if a kernel multiplies x by the scale before it or behind: the numbers lie elsewhere between
 * powers of two then, unless the scale is one.
 */
export function errorOfEither({ error }: Conversion, magnitude: number, scale: number): number {
  const by = Math.abs(scale);
  const scaled = by > 0 ? error(magnitude * by) / by : 0;
  return Math.max(error(magnitude), scaled);
}

/** The relative error of a product of numbers with these relative errors. */
export function compose(...errors: readonly number[]): number {
  let sum = 0;
  for (const error of errors) sum += error + sum * error;
  return sum;
}

/** What all values of a kernel may be rounded by. */
export interface Roundings {
  /** The unit of one operation on numbers, to nearest. */
  readonly operation: number;
  /** The relative error of a sum of so many products, in any order: that of its terms' magnitudes. */
  readonly sum: (count: number) => number;
  /** The most that a number of any of the values loses by underflow. */
  readonly least: number;
  /** What becomes of a sum as one of the values; a state as an operand is made from the state. */
  readonly of: Readonly<Record<RecurrentValue, Conversion>>;
}

/**
 * The roundings of an arithmetic. An addition of the chunked form may be that of a tensor core, which truncates: its unit is twice that of
 * rounding to nearest.
 */
export function roundingsOf({ form, formats: names }: RecurrentArithmetic): Roundings {
  const { unit: operation } = conversionTo(names.sum);
  const addition = form === 'chunked' ? 2 * operation : operation;
  const entries = Object.entries(names) as [RecurrentValue, FormatName][];
  const from = (value: RecurrentValue) => (value === 'state-operand' ? names.state : names.sum);
  const of = Object.fromEntries(
    entries.map(([value, name]) => [value, conversion(name, from(value))]),
  ) as Record<RecurrentValue, Conversion>;
  return {
    operation,
    least: Math.max(...Object.values(of).map((one) => one.least)),
    sum: (count) => {
      const n = (count + 1) * addition;
      return n < 1 ? n / (1 - n) : Infinity;
    },
    of,
  };
}
