/** A stream of random numbers, the same for the same seed. */
export interface RandomValues {
  /** In [0, 1), a multiple of 2^-32. */
  uniform(): number;
  /** A whole number from `min` to `max`, both included. */
  integer(min: number, max: number): number;
  /** From the standard normal distribution. */
  normal(): number;
  /** 1 or −1. */
  sign(): number;
}

/**
 * Random numbers from a 32-bit seed: a Weyl sequence with the finalizer of MurmurHash3, Gaussian by
 * Box and Muller. For test data, not for statistics of many dimensions.
 */
export function randomValues(seed: number): RandomValues {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x9e3779b9) >>> 0;
    let x = state;
    x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
    x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
    return ((x ^ (x >>> 16)) >>> 0) / 2 ** 32;
  };
  return {
    uniform,
    integer: (min, max) => min + Math.floor(uniform() * (max - min + 1)),
    normal: () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform()),
    sign: () => (uniform() < 0.5 ? 1 : -1),
  };
}
