import { addFloat32 } from '../../src/arith/index.js';

/** Sums fp32 numbers by a butterfly: each with the one at half the distance, then at a quarter, and so on. */
function butterflySum(values: readonly number[]): number {
  const half = values.length / 2;
  if (half < 1) return values[0];
  return butterflySum(values.slice(0, half).map((value, i) => addFloat32(value, values[i + half])));
}

/**
 * Sums fp32 numbers that are dealt in turn to threads, a power of two of them: each adds its own one after the other, then a butterfly adds the
 * threads' sums.
 */
export function threadedSum(values: readonly number[], threads: number): number {
  return butterflySum(
    Array.from({ length: threads }, (_, thread) =>
      values.filter((_, i) => i % threads === thread).reduce((a, b) => addFloat32(a, b), 0),
    ),
  );
}
