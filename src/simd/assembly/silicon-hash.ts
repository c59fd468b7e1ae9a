// AssemblyScript: the fingerprint of inputs and results, four lanes at a time. Defined by `hashBlock` of
// test/conform/hash-block.ts.

// @inline
function fmix32(x: v128): v128 {
  let h = v128.xor(x, i32x4.shr_u(x, 16));
  h = i32x4.mul(h, i32x4.splat(0x85ebca6b));
  h = v128.xor(h, i32x4.shr_u(h, 13));
  h = i32x4.mul(h, i32x4.splat(0xc2b2ae35));
  return v128.xor(h, i32x4.shr_u(h, 16));
}

/**
 * Adds `count` (a multiple of 4) inputs and results to the lanes of the running fingerprint: four sums
 * at `state`, four exclusive ors after them.
 */
export function hash(inputs: usize, results: usize, count: i32, state: usize): void {
  let sum = v128.load(state);
  let mixed = v128.load(state, 16);
  const nan = i32x4.splat(0x7fffffff);
  const infinity = i32x4.splat(0x7f800000);
  for (let i: usize = 0; i < (<usize>count) << 2; i += 16) {
    const x = v128.load(inputs + i);
    const result = v128.load(results + i);
    const isNan = i32x4.gt_s(v128.and(result, nan), infinity);
    const bits = v128.bitselect(nan, result, isNan);
    const z = fmix32(v128.xor(fmix32(v128.xor(x, i32x4.splat(0x9e3779b9))), bits));
    sum = i32x4.add(sum, z);
    mixed = v128.xor(mixed, fmix32(i32x4.add(z, i32x4.splat(0x7f4a7c15))));
  }
  v128.store(state, sum);
  v128.store(state, mixed, 16);
}

/** The bit patterns first, first + 1, …; `count` is a multiple of 4. */
export function fillConsecutive(inputs: usize, count: i32, first: u32): void {
  let x = i32x4.add(i32x4.splat(first), i32x4(0, 1, 2, 3));
  for (let i: usize = 0; i < (<usize>count) << 2; i += 16) {
    v128.store(inputs + i, x);
    x = i32x4.add(x, i32x4.splat(4));
  }
}
