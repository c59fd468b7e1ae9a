import { scaledIntegerOf } from '../src/arith/index.js';
import { formats, round, type NumberFormat } from '../src/formats/index.js';
import { RequestError } from '../src/request-error.js';

/** The relative error of 1/√x as two correctly rounded fp64 operations stays below this. */
export const reciprocalSquareRootError = 2 ** -52;

function checkFloat32(x: number, format: NumberFormat): void {
  if (Math.fround(x) !== x && !Number.isNaN(x))
    throw new RequestError(`${x} is no fp32 number; give one`);
  if (format.precision > formats.fp32.precision)
    throw new RequestError(
      `cannot round correctly to ${format.name}; give a format of at most ${formats.fp32.precision} bits of precision, such as fp32`,
    );
}

/**
 * 1/x of an fp32 number, rounded once to a format of at most fp32's precision, to nearest even, with
 * subnormals kept; ±0 gives ±∞ (NaN in a format without infinity) and ±∞ gives ±0.
 *
 * Rounding to fp64 first changes nothing. A midpoint m has at most 25 bits, x has 24: if x·m is not 1
 * then it differs by 2^-49 at least, and 1/x from m by as much, while fp64 errs by 2^-53.
 * @throws RequestError for an x that is no fp32 number or a more precise format.
 */
export function reciprocalRounded(x: number, format: NumberFormat): number {
  checkFloat32(x, format);
  return round(format, 1 / x);
}

/** A generous bound on the relative error of 1/√x in fp64. */
const margin = 2 ** -50;

/**
 * 1/√x of an fp32 number, rounded as by `reciprocalRounded`; ±0 gives ±∞, +∞ gives +0, NaN for other x <
 * 0.
 *
 * Where fp64 cannot tell, it is decided exactly: 1/√x lies above a midpoint m if and only if x·m² < 1. On
 * a midpoint it lies only at half of the smallest subnormal, where the even neighbour is the lower.
 * @throws RequestError for an x that is no fp32 number or a more precise format.
 */
export function reciprocalSquareRootRounded(x: number, format: NumberFormat): number {
  checkFloat32(x, format);
  const approximation = 1 / Math.sqrt(x);
  const low = round(format, approximation * (1 - margin));
  const high = round(format, approximation * (1 + margin));
  // A format whose range ends below fp32's ends at no midpoint that is as near as that.
  if (low === high || !Number.isFinite(high)) return round(format, approximation);
  // Halving the sum is exact: the midpoint has one bit more than the format.
  const midpoint = (low + high) / 2;
  return isProductBelowOne([x, midpoint, midpoint]) ? high : low;
}

/** Whether the product of positive numbers is below 1, exactly. */
function isProductBelowOne(factors: readonly number[]): boolean {
  const parts = factors.map(scaledIntegerOf);
  const integer = parts.reduce((product, part) => product * part.integer, 1n);
  const exponent = parts.reduce((sum, part) => sum + part.exponent, 0);
  return exponent < 0 && integer < 1n << BigInt(-exponent);
}
