// AssemblyScript: numbers of several blocks side by side, and sums in memory.

/** Bytes from a block of [64 × 64] numbers to the next. */
export const blockBytes: usize = 32768;

/** The numbers at two addresses. */
// @inline
export function pair(a: usize, b: usize): v128 {
  return f64x2.replace_lane(v128.load64_splat(a), 1, load<f64>(b));
}

/** Adds a pair of numbers to two sums. */
// @inline
export function addTo(at: usize, x: v128): void {
  v128.store(at, f64x2.add(v128.load(at), x));
}

/** Adds a number to a sum. */
// @inline
export function addNumber(at: usize, x: f64): void {
  store<f64>(at, load<f64>(at) + x);
}
