/**
 * A result at the nearest operands with what the difference of the actual ones contributes; the result
 * alone where that is no finite number.
 */
export function carried(result: number, difference: number): number {
  return difference === 0 || !Number.isFinite(difference) ? result : result + difference;
}

/** Differences of exponents beyond this are rounding errors of numbers whose e^x is 0 or ∞. */
const largestDifference = 2 ** -8;

/** A result at the nearest exponent, carried over to the actual one: times e^difference. */
export function carriedExponential(result: number, difference: number): number {
  return difference === 0 || !(Math.abs(difference) < largestDifference)
    ? result
    : result * Math.exp(difference);
}
