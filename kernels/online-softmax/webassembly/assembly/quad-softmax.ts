// AssemblyScript: the softmax, rescale and finish of a forward with a quad of threads a row. What they
// compute and why is written in ../../plain/plain-tile.ts, whose bits these equal.

import { exp2Approx, exp2ApproxFtz } from '../../../../src/simd/assembly/special-functions';
import { fusedLanes, fusedMultiplyAdd, scaleSubtract } from './fused-multiply-add';
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

const quadThreads = 4;
const warpRows = 32;

/** 2^x of `count` fp32 numbers in place. */
// @inline
function exponentials(numbers: usize, count: i32, recipe: ForwardRecipe): void {
  const segments = recipe.exp2Segments;
  const squares = recipe.squares;
  const shift = recipe.exp2Shift;
  if (recipe.flushes) exp2ApproxFtz(numbers, numbers, count, segments, squares, shift);
  else exp2Approx(numbers, numbers, count, segments, squares, shift);
}

/**
 * One block's softmax step, as `softmaxStep` of forward.ts; `sums` has four fp32 numbers a row, one for
 * each thread, and weights are of 16 bits.
 */
export function quadSoftmaxStep(
  tile: ForwardTile,
  rows: i32,
  isFirst: bool,
  isCounted: bool,
): void {
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
  const offset = recipe.maxOffset;
  const isFused = recipe.fusesExponent;
  const checksInfinity = recipe.checksInfinity;
  const weightFormat = recipe.weightFormat;
  const counters = recipe.counters;

  for (let row: usize = 0; row < <usize>rows; row++) {
    const at = scores + row * ((<usize>columns) << 2);
    hideScores(at, columns, visible + (row << 3));
    const before = isFirst ? <f32>-Infinity : load<f32>(maxima + (row << 2));
    const now = largestScore(at, columns, before);
    const safe: f32 = now === -Infinity ? 0 : now;
    let alpha: f32 = 0;
    if (!isFirst) {
      const lag: f32 = (before - (checksInfinity ? safe : now)) * scale;
      store<f32>(alphas + (row << 2), lag);
      exponentials(alphas + (row << 2), 1, recipe);
      alpha = load<f32>(alphas + (row << 2));
      if (alpha < 1 && isCounted) {
        countRescale(counters, rescales + (row << 2));
      }
    }
    store<f32>(maxima + (row << 2), now);
    store<f32>(alphas + (row << 2), alpha);

    const scaled: f32 = safe * scale;
    const bias: f32 = offset - scaled;
    if (isFused) scaleSubtract(at, columns, scale, bias);
    else {
      const scale4 = f32x4.splat(scale);
      const bias4 = f32x4.splat(bias);
      for (let j: usize = 0; j < (<usize>columns) << 2; j += 16)
        v128.store(at + j, f32x4.add(f32x4.mul(v128.load(at + j), scale4), bias4));
    }
    exponentials(at, columns, recipe);

    const sumsAt = sums + (row << 4);
    let sum = v128.load(sumsAt);
    const weightsAt = weights + ((row * <usize>columns) << 1);
    for (let j: usize = 0; j < <usize>columns; j += 8) {
      const address = at + (j << 2);
      const p0 = v128.load(address);
      const p1 = v128.load(address, 16);
      // Thread t has columns 2t and 2t + 1 of every eight.
      const even = i32x4.shuffle(p0, p1, 0, 2, 4, 6);
      const odd = i32x4.shuffle(p0, p1, 1, 3, 5, 7);
      if (j > 0) sum = f32x4.add(sum, even);
      else if (isFirst) sum = even;
      // The product by α and the first addition round once.
      else sum = fusedLanes(sum, alpha, even);
      sum = f32x4.add(sum, odd);
      v128.store(weightsAt + (j << 1), convert8(p0, p1, weightFormat));
    }
    v128.store(sumsAt, sum);
  }
}

/** Multiplies every row [columns] by its α; columns a multiple of 4. */
export function rescaleRows(tile: ForwardTile, rows: i32, columns: i32, isCounted: bool): void {
  const out = tile.out;
  const alphas = tile.alphas;
  const counters = tile.recipe.counters;
  if (isCounted) store<i32>(counters, load<i32>(counters, 8) + (rows + warpRows - 1) / warpRows, 8);
  const stride = (<usize>columns) << 2;
  for (let row: usize = 0; row < <usize>rows; row++) {
    scaleRow(out + row * stride, stride, v128.load32_splat(alphas + (row << 2)));
  }
}

/** (0 + 2) + (1 + 3) of the sums of a row's threads. */
// @inline
function quadTotal(sums: usize): f32 {
  const far: f32 = load<f32>(sums) + load<f32>(sums, 8);
  const near: f32 = load<f32>(sums, 4) + load<f32>(sums, 12);
  return far + near;
}

/** As `normalise` of forward.ts, with four sums a row. */
export function quadNormalise(tile: ForwardTile, rows: i32, columns: i32): void {
  const out = tile.out;
  const lse = tile.lse;
  const maxima = tile.maxima;
  const sums = tile.sums;
  const recipe = tile.recipe;
  const scale = recipe.softmaxScale;
  const stride = (<usize>columns) << 2;
  for (let row: usize = 0; row < <usize>rows; row++) {
    const sum = quadTotal(sums + row * quadThreads * 4);
    const isEmpty = isEmptySum(sum);
    const divisor: f32 = isEmpty ? 1 : sum;
    const inverse: f32 = recipe.divides ? 1 / divisor : reciprocal(divisor, recipe);
    scaleRow(out + row * stride, stride, f32x4.splat(inverse * recipe.outFactor));
    if (isEmpty) {
      store<f32>(lse + (row << 2), recipe.emptyLse);
      continue;
    }
    const natural: f32 = logarithm2(sum, recipe) * <f32>0.6931471805599453;
    const total = fusedMultiplyAdd(load<f32>(maxima + (row << 2)), scale, natural);
    store<u32>(lse + (row << 2), bitsWithOneNaN(total));
  }
}
