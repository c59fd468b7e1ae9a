// AssemblyScript: the softmax, rescale and finish of FlashAttention-4's forward on one tile of queries.
// What they compute and why is written in ../../plain/plain-tile.ts, whose bits these equal. The matrix
// products are those of src/simd/assembly/tensor-core.ts, on the same memory.

import { exp2Polynomial4 } from '../../../../src/simd/assembly/exp2-polynomial';
import { exp2Ftz, exp2Ftz4 } from '../../../../src/simd/assembly/special-functions';

export {
  packRows,
  packColumns,
  packTransposedColumns,
} from '../../../../src/simd/assembly/tensor-core-operands';
export { multiplyAccumulate } from '../../../../src/simd/assembly/tensor-core';
export { fusedMultiplyAdd, scaleSubtract } from './fused-multiply-add';
export { quadNormalise, quadSoftmaxStep, rescaleRows } from './quad-softmax';

import { fusedMultiplyAdd, scaleSubtract } from './fused-multiply-add';
import { ForwardRecipe, ForwardTile } from './memory';
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

/** 2^x of one number. */
// @inline
function exp2(x: f32, recipe: ForwardRecipe): f32 {
  return reinterpret<f32>(
    exp2Ftz(reinterpret<u32>(x), recipe.exp2Segments, recipe.squares, recipe.exp2Shift),
  );
}

/** Four weights, in the lanes of `polynomialBits` by the polynomial; a lane beyond the range is NaN. */
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
  if (polynomialBits === 0) return exp2Ftz4(x, segments, squares, shift);
  const polynomial = exp2Polynomial4(x, coefficients, degree);
  if (polynomialBits === 15) return polynomial;
  const chosen = i32x4.ne(v128.and(i32x4.splat(polynomialBits), i32x4(1, 2, 4, 8)), i32x4.splat(0));
  return v128.bitselect(polynomial, exp2Ftz4(x, segments, squares, shift), chosen);
}

/**
 * One block's softmax step: the scores become the weights, and `weights` gets their bit patterns in the input format;
 * rescales are counted where `isCounted`.
 */
export function softmaxStep(tile: ForwardTile, rows: i32, isFirst: bool, isCounted: bool): void {
  const scores = tile.scores;
  const weights = tile.weights;
  const visible = tile.visible;
  const maxima = tile.maxima;
  const sums = tile.sums;
  const alphas = tile.alphas;
  const rescales = tile.rescales;
  const columns = tile.keys;
  const recipe = tile.recipe;
  const scale = recipe.scale;
  const threshold = recipe.threshold;
  const maxOffset = recipe.maxOffset;
  const degree = recipe.degree;
  const coefficients = recipe.coefficients;
  const segments = recipe.exp2Segments;
  const squares = recipe.squares;
  const shift = <i64>recipe.exp2Shift;
  const weightFormat = recipe.weightFormat;
  const weightShift = recipe.weightBytes === 1 ? 0 : 1;
  const polynomialLanes = recipe.polynomialLanes;
  const counters = recipe.counters;

  for (let row: usize = 0; row < <usize>rows; row++) {
    const at = scores + row * ((<usize>columns) << 2);
    hideScores(at, columns, visible + (row << 3));
    const before = isFirst ? <f32>-Infinity : load<f32>(maxima + (row << 2));
    let now = largestScore(at, columns, before);
    let safe: f32 = now === -Infinity ? 0 : now;
    let alpha: f32 = 0;
    if (!isFirst) {
      const lag: f32 = (before - safe) * scale;
      alpha = exp2(lag, recipe);
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
export function rescaleOutput(tile: ForwardTile, rows: i32, columns: i32, isCounted: bool): void {
  const out = tile.out;
  const alphas = tile.alphas;
  const counters = tile.recipe.counters;
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
function logSumExp(max: f32, sum: f32, recipe: ForwardRecipe): u32 {
  if (isEmptySum(sum)) return 0xff800000;
  const scale = recipe.scale;
  const rest: f32 = logarithm2(sum, recipe) - recipe.maxOffset;
  const scaled: f32 = max * scale;
  const base: f32 = recipe.fusesLse ? fusedMultiplyAdd(max, scale, rest) : scaled + rest;
  return bitsWithOneNaN(base * <f32>0.6931471805599453);
}

/**
 * Multiplies the sums `out` [rows][columns] in place by 1 / l and the descale of V, and gives the LSE [rows]
 * fp32. Columns are a multiple of 4.
 */
export function normalise(tile: ForwardTile, rows: i32, columns: i32): void {
  const out = tile.out;
  const lse = tile.lse;
  const maxima = tile.maxima;
  const sums = tile.sums;
  const recipe = tile.recipe;
  const stride = (<usize>columns) << 2;
  for (let row: usize = 0; row < <usize>rows; row++) {
    const sum = load<f32>(sums + (row << 2));
    const factor = reciprocal(isEmptySum(sum) ? <f32>1 : sum, recipe) * recipe.outFactor;
    scaleRow(out + row * stride, stride, f32x4.splat(factor));
    const max = load<f32>(maxima + (row << 2));
    store<u32>(lse + (row << 2), logSumExp(max, sum, recipe));
  }
}

/** The bit patterns of the output, 16 bits each, of `count` fp32 numbers, a multiple of 8. */
export function roundOutput(tile: ForwardTile, count: i32): void {
  const out = tile.out;
  const result = tile.result;
  const format = tile.recipe.outFormat;
  for (let i: usize = 0; i < <usize>count; i += 8)
    v128.store(
      result + (i << 1),
      convert8(v128.load(out + (i << 2)), v128.load(out + (i << 2), 16), format),
    );
}
