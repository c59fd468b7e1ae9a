// AssemblyScript: the softmax, rescale and finish of FlashAttention-4's forward on one tile of queries.
// What they compute and why is written in ../../plain/plain-tile.ts, whose bits these equal. The matrix
// products are those of src/simd/assembly/tensor-core.ts, on the same memory.

import { exp2Polynomial4 } from '../../../../src/simd/assembly/exp2-polynomial';
import { exp2Ftz } from '../../../../src/simd/assembly/special-functions';

export {
  packRows,
  packColumns,
  packTransposedColumns,
} from '../../../../src/simd/assembly/tensor-core-operands';
export { multiplyAccumulate } from '../../../../src/simd/assembly/tensor-core';
export { fusedMultiplyAdd, scaleSubtract } from './fused-multiply-add';
export { quadNormalise, quadSoftmaxStep, rescaleRows } from './quad-softmax';

import { fusedMultiplyAdd, scaleSubtract } from './fused-multiply-add';
import {
  bitsWithOneNaN,
  convert8,
  countRescale,
  hideScores,
  isEmptySum,
  largestScore,
  logarithm2,
  reciprocal,
  scaleRow,
} from './row-steps';

const warpRows = 32;

// Parameters, one record of the tile:
//   0 scale f32 · 4 rescale threshold f32 · 8 max offset f32 · 12 degree i32
//  16 coefficients · 20 exp2 segments · 24 log2 segments · 28 reciprocal segments
//  32 squares · 36 exp2 shift i32 · 40 log2 shift i32 · 44 reciprocal shift i32
//  48 output format (convert4) · 52 polynomial lanes: a byte for each four columns, a bit for each
//  56 whether the LSE is fused i32 · 60 counters: rescaled rows, skipped rows, rescaled warps, skipped
//  64 weight format (convert4) · 68 bytes of a weight i32, 1 or 2 · 72 descale of V f32

// @inline
function exp2(x: f32, parameters: usize): f32 {
  return reinterpret<f32>(
    exp2Ftz(
      reinterpret<u32>(x),
      load<u32>(parameters, 20),
      load<u32>(parameters, 32),
      load<i32>(parameters, 36),
    ),
  );
}

/** Four hardware results; a lane beyond the range is NaN. */
// @inline
function exp2Hardware4(x: v128, segments: u32, squares: u32, shift: i64): v128 {
  let p = i32x4.splat(exp2Ftz(i32x4.extract_lane(x, 0), segments, squares, shift));
  p = i32x4.replace_lane(p, 1, exp2Ftz(i32x4.extract_lane(x, 1), segments, squares, shift));
  p = i32x4.replace_lane(p, 2, exp2Ftz(i32x4.extract_lane(x, 2), segments, squares, shift));
  return i32x4.replace_lane(p, 3, exp2Ftz(i32x4.extract_lane(x, 3), segments, squares, shift));
}

/** Four weights, in the lanes of `polynomialBits` by the polynomial. */
// @inline
function exp2Split4(
  x: v128,
  polynomialBits: i32,
  segments: u32,
  squares: u32,
  shift: i64,
  coefficients: u32,
  degree: i32,
): v128 {
  if (polynomialBits === 0) return exp2Hardware4(x, segments, squares, shift);
  const polynomial = exp2Polynomial4(x, coefficients, degree);
  if (polynomialBits === 15) return polynomial;
  const chosen = i32x4.ne(v128.and(i32x4.splat(polynomialBits), i32x4(1, 2, 4, 8)), i32x4.splat(0));
  return v128.bitselect(polynomial, exp2Hardware4(x, segments, squares, shift), chosen);
}

/**
 * One block's softmax step. `scores` [rows][columns] fp32 become the weights; `weights`
 * [rows][columns] get their bit patterns in the input format, of 1 or 2 bytes. `visible` holds begin and
 * end of each row's columns as i32. `maxima`, `sums` and `alphas` are fp32, `rescales` i32, one per
 * row; rescales are counted where `isCounted`. Columns are a multiple of 8.
 */
export function softmaxStep(
  scores: usize,
  weights: usize,
  visible: usize,
  maxima: usize,
  sums: usize,
  alphas: usize,
  rescales: usize,
  rows: i32,
  columns: i32,
  isFirst: i32,
  isCounted: i32,
  parameters: usize,
): void {
  const scale = load<f32>(parameters);
  const threshold = load<f32>(parameters, 4);
  const maxOffset = load<f32>(parameters, 8);
  const degree = load<i32>(parameters, 12);
  const coefficients = load<u32>(parameters, 16);
  const segments = load<u32>(parameters, 20);
  const squares = load<u32>(parameters, 32);
  const shift = <i64>load<i32>(parameters, 36);
  const weightFormat = load<u32>(parameters, 64);
  const weightShift = load<i32>(parameters, 68) === 1 ? 0 : 1;
  const polynomialLanes = load<u32>(parameters, 52);
  const counters = load<u32>(parameters, 60);

  for (let row: usize = 0; row < <usize>rows; row++) {
    const at = scores + row * ((<usize>columns) << 2);
    hideScores(at, columns, visible + (row << 3));
    const before = isFirst ? <f32>-Infinity : load<f32>(maxima + (row << 2));
    let now = largestScore(at, columns, before);
    let safe: f32 = now === -Infinity ? 0 : now;
    let alpha: f32 = 0;
    if (!isFirst) {
      const lag: f32 = (before - safe) * scale;
      alpha = exp2(lag, parameters);
      if (threshold > 0 && lag >= -threshold) {
        if (alpha < 1 && isCounted) store<i32>(counters, load<i32>(counters, 4) + 1, 4);
        now = before;
        safe = before;
        alpha = 1;
      } else if (alpha < 1 && isCounted) {
        countRescale(counters, rescales + (row << 2));
      }
    }
    store<f32>(maxima + (row << 2), now);
    store<f32>(alphas + (row << 2), alpha);

    const scaled: f32 = safe * scale;
    scaleSubtract(at, columns, scale, maxOffset - scaled);
    // Adding −0 changes nothing; the first pair is added to (l·α, 0).
    let low = f32x4.splat(-0.0);
    low = f32x4.replace_lane(low, 0, isFirst ? 0 : load<f32>(sums + (row << 2)) * alpha);
    low = f32x4.replace_lane(low, 1, 0);
    let high = f32x4.splat(-0.0);
    const weightsAt = weights + ((row * <usize>columns) << weightShift);
    for (let j: usize = 0; j < <usize>columns; j += 8) {
      const address = at + (j << 2);
      const x0 = v128.load(address);
      const x1 = v128.load(address, 16);
      const bits0 = <i32>load<u8>(polynomialLanes + (j >> 2));
      const bits1 = <i32>load<u8>(polynomialLanes + (j >> 2), 1);
      const p0 = exp2Split4(x0, bits0, segments, squares, shift, coefficients, degree);
      const p1 = exp2Split4(x1, bits1, segments, squares, shift, coefficients, degree);
      low = f32x4.add(low, p0);
      high = f32x4.add(high, p1);
      const patterns = convert8(p0, p1, weightFormat);
      if (weightShift) v128.store(weightsAt + (j << 1), patterns);
      else v128.store64_lane(weightsAt + j, i8x16.narrow_i16x8_u(patterns, patterns), 0);
    }
    const pairs = f32x4.add(
      f32x4.add(low, i32x4.shuffle(low, low, 2, 3, 2, 3)),
      f32x4.add(high, i32x4.shuffle(high, high, 2, 3, 2, 3)),
    );
    store<f32>(sums + (row << 2), f32x4.extract_lane(pairs, 0) + f32x4.extract_lane(pairs, 1));
  }
}

/** Multiplies the rows [columns] of every warp that has a row with α < 1; columns a multiple of 4. */
export function rescaleOutput(
  out: usize,
  alphas: usize,
  rows: i32,
  columns: i32,
  isCounted: i32,
  parameters: usize,
): void {
  const counters = load<u32>(parameters, 60);
  const stride = (<usize>columns) << 2;
  for (let first = 0; first < rows; first += warpRows) {
    const last = min(first + warpRows, rows);
    let any = false;
    for (let row = first; row < last; row++)
      any = any || load<f32>(alphas + ((<usize>row) << 2)) < 1;
    const counter = counters + (any ? 8 : 12);
    if (isCounted) store<i32>(counter, load<i32>(counter) + 1);
    if (!any) continue;
    for (let row = first; row < last; row++) {
      const alpha = v128.load32_splat(alphas + ((<usize>row) << 2));
      scaleRow(out + <usize>row * stride, stride, alpha);
    }
  }
}

/** The LSE of a row as bits. */
// @inline
function logSumExp(max: f32, sum: f32, parameters: usize): u32 {
  if (isEmptySum(sum)) return 0xff800000;
  const scale = load<f32>(parameters);
  const rest: f32 = logarithm2(sum, parameters) - load<f32>(parameters, 8);
  const scaled: f32 = max * scale;
  const base: f32 = load<i32>(parameters, 56) ? fusedMultiplyAdd(max, scale, rest) : scaled + rest;
  return bitsWithOneNaN(base * <f32>0.6931471805599453);
}

/**
 * Multiplies the sums `out` [rows][columns] in place by 1 / l and the descale of V, and gives the LSE [rows]
 * fp32. Columns are a multiple of 4.
 */
export function normalise(
  out: usize,
  lse: usize,
  maxima: usize,
  sums: usize,
  rows: i32,
  columns: i32,
  parameters: usize,
): void {
  const stride = (<usize>columns) << 2;
  for (let row: usize = 0; row < <usize>rows; row++) {
    const sum = load<f32>(sums + (row << 2));
    const factor =
      reciprocal(isEmptySum(sum) ? <f32>1 : sum, parameters) * load<f32>(parameters, 72);
    scaleRow(out + row * stride, stride, f32x4.splat(factor));
    const max = load<f32>(maxima + (row << 2));
    store<u32>(lse + (row << 2), logSumExp(max, sum, parameters));
  }
}

/** The bit patterns of the output, 16 bits each, of `count` fp32 numbers, a multiple of 8. */
export function roundOutput(out: usize, result: usize, count: i32, parameters: usize): void {
  const format = load<u32>(parameters, 48);
  for (let i: usize = 0; i < <usize>count; i += 8)
    v128.store(
      result + (i << 1),
      convert8(v128.load(out + (i << 2)), v128.load(out + (i << 2), 16), format),
    );
}
