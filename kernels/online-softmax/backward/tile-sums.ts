import { addFloat32 } from '../../../src/arith/index.js';

const smallestNormal = 2 ** -126;
const flushing = { flushToZero: true } as const;

/**
 * a + b as cp.reduce.async.bulk adds fp32 numbers in memory: to nearest even; subnormal operands and results become
 * zeros of their sign. Source: PTX ISA, cp.reduce.async.bulk.
 */
export function addInMemory(a: number, b: number): number {
  const sum = Math.fround(a + b);
  const isPlain =
    Math.abs(sum) >= smallestNormal &&
    Math.abs(a) >= smallestNormal &&
    Math.abs(b) >= smallestNormal;
  return isPlain ? sum : addFloat32(a, b, flushing);
}

/** Adds fp32 numbers to sums in memory, element by element. */
export function addTile(sums: Float32Array, tile: Float32Array): void {
  for (let i = 0; i < sums.length; i++) sums[i] = addInMemory(sums[i], tile[i]);
}
