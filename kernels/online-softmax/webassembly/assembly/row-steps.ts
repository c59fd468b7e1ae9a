// AssemblyScript: what the stages of forward.ts and quad-softmax.ts have in common, a row each.

import { convert4 } from '../../../../src/simd/assembly/convert';
import { logarithm2Ftz, reciprocalFtz } from '../../../../src/simd/assembly/special-functions';
import { ForwardRecipe } from './memory';

/** Sets the scores [columns] that a row does not see to −∞; at `visible` are begin and end of the others, i32. */
// @inline
export function hideScores(scores: usize, columns: i32, visible: usize): void {
  const begin = load<i32>(visible);
  const end = load<i32>(visible, 4);
  if (begin <= 0 && end >= columns) return;
  const lanes = i32x4(0, 1, 2, 3);
  const minusInfinity = f32x4.splat(-Infinity);
  for (let j = 0; j < columns; j += 4) {
    const column = i32x4.add(lanes, i32x4.splat(j));
    const seen = v128.and(
      i32x4.ge_s(column, i32x4.splat(begin)),
      i32x4.lt_s(column, i32x4.splat(end)),
    );
    const address = scores + ((<usize>j) << 2);
    v128.store(address, v128.bitselect(v128.load(address), minusInfinity, seen));
  }
}

/** The largest of `before` and a row's scores [columns]. A NaN compares false and is dropped, as by PTX's max. */
// @inline
export function largestScore(scores: usize, columns: i32, before: f32): f32 {
  let largest = f32x4.splat(-Infinity);
  for (let j: usize = 0; j < (<usize>columns) << 2; j += 16)
    largest = f32x4.pmax(largest, v128.load(scores + j));
  let now = before;
  let lane = f32x4.extract_lane(largest, 0);
  if (lane > now) now = lane;
  lane = f32x4.extract_lane(largest, 1);
  if (lane > now) now = lane;
  lane = f32x4.extract_lane(largest, 2);
  if (lane > now) now = lane;
  lane = f32x4.extract_lane(largest, 3);
  if (lane > now) now = lane;
  return now;
}

/** Counts a row whose sums are rescaled: in the tile's counters, and in the row's own `rescales`. */
// @inline
export function countRescale(counters: usize, rescales: usize): void {
  store<i32>(counters, load<i32>(counters) + 1);
  store<i32>(rescales, load<i32>(rescales) + 1);
}

/** Multiplies a row of `bytes` bytes of fp32 numbers, a multiple of 16, in place. */
// @inline
export function scaleRow(row: usize, bytes: usize, factor: v128): void {
  for (let i: usize = 0; i < bytes; i += 16)
    v128.store(row + i, f32x4.mul(v128.load(row + i), factor));
}

/** Eight fp32 numbers as bit patterns of 16 bits or less. */
// @inline
export function convert8(low: v128, high: v128, format: u32): v128 {
  return i16x8.narrow_i32x4_u(convert4(low, format), convert4(high, format));
}

/** Whether a row has no weights to divide by. */
// @inline
export function isEmptySum(sum: f32): bool {
  return sum === 0 || sum !== sum;
}

/** rcp.approx.ftz.f32 by the tables of the recipe. */
// @inline
export function reciprocal(x: f32, recipe: ForwardRecipe): f32 {
  return reinterpret<f32>(
    reciprocalFtz(
      reinterpret<u32>(x),
      recipe.reciprocalSegments,
      recipe.squares,
      recipe.reciprocalShift,
    ),
  );
}

/** lg2.approx.ftz.f32 by the tables of the recipe. */
// @inline
export function logarithm2(x: f32, recipe: ForwardRecipe): f32 {
  return reinterpret<f32>(
    logarithm2Ftz(reinterpret<u32>(x), recipe.log2Segments, recipe.squares, recipe.log2Shift),
  );
}

/** The bits of an fp32 number, those of the GPU's NaN for any. */
// @inline
export function bitsWithOneNaN(x: f32): u32 {
  return x !== x ? 0x7fffffff : reinterpret<u32>(x);
}
