// AssemblyScript: sums over keys of weights and of what rounding does to them, with V, in fp32 where that is enough. Values lie in
// panels of four columns, key after key, so that a loop over keys reads them in their order.

import { scaleOf } from '../../../../oracles/attention/assembly/single';
import { BoundTile } from './memory';
import { rowBytes, tile } from './scores';

/** Bytes of a panel of 64 keys and four columns in fp64 and in fp32, and of 64 numbers in fp32. */
const panelBytes: usize = 2048;
const narrowPanelBytes: usize = 1024;
const narrowRowBytes: usize = 256;

/** Four numbers of fp64 in fp32. */
// @inline
function narrowed(low: v128, high: v128): v128 {
  return i64x2.shuffle(f32x4.demote_f64x2_zero(low), f32x4.demote_f64x2_zero(high), 0, 2);
}

/** One key of a panel: four values, at `at` of the panels of fp64. */
// @inline
function loadQuarter(block: BoundTile, values: usize, at: usize, factor: v128): void {
  const narrow = at >> 1;
  const v0 = v128.load(values);
  const v1 = v128.load(values, 16);
  v128.store(block.valueSquares + at, f64x2.mul(v0, v0));
  v128.store(block.valueSquares + at, f64x2.mul(v1, v1), 16);
  const x0 = f64x2.mul(v0, factor);
  const x1 = f64x2.mul(v1, factor);
  const x = narrowed(x0, x1);
  v128.store(block.narrowValues + narrow, x);
  v128.store(block.narrowSizes + narrow, f32x4.abs(x));
  v128.store(block.narrowSquares + narrow, narrowed(f64x2.mul(x0, x0), f64x2.mul(x1, x1)));
}

/** Panels of v² in fp64, and in fp32 of v, |v| and v² of values times `scale`; two at a time, which share lines of the cache. */
function loadPanels(block: BoundTile, scale: f64): void {
  const factor = f64x2.splat(scale);
  const stride = (<usize>block.columns) << 3;
  for (let j: usize = 0; j < stride; j += 64) {
    let values = block.values + j;
    let at = (j >> 5) * panelBytes;
    for (let k = 0; k < tile; k++, values += stride, at += 32) {
      loadQuarter(block, values, at, factor);
      loadQuarter(block, values + 32, at + panelBytes, factor);
    }
  }
}

/**
 * Narrows the rows of a [64 × 64] matrix, each times a power of two that makes its largest number about 1, whose inverses are the
 * factors of the rows.
 * @returns whether one of the numbers is not 0
 */
function narrowRows(block: BoundTile, matrix: usize, rows: i32): bool {
  let isAny = false;
  for (let i: usize = 0; i < <usize>rows; i++) {
    const source = matrix + i * rowBytes;
    const target = block.narrowRows + i * narrowRowBytes;
    let first = f64x2.splat(0);
    let second = f64x2.splat(0);
    for (let at: usize = 0; at < rowBytes; at += 32) {
      first = f64x2.pmax(first, f64x2.abs(v128.load(source + at)));
      second = f64x2.pmax(second, f64x2.abs(v128.load(source + at, 16)));
    }
    const most = f64x2.pmax(first, second);
    const largest = max<f64>(f64x2.extract_lane(most, 0), f64x2.extract_lane(most, 1));
    if (largest !== 0) isAny = true;
    const scale = scaleOf(largest);
    store<f64>(block.ofRows + (i << 3), 1 / scale);
    const factor = f64x2.splat(scale);
    for (let at: usize = 0; at < rowBytes; at += 32) {
      const low = f64x2.mul(v128.load(source + at), factor);
      const high = f64x2.mul(v128.load(source + at, 16), factor);
      v128.store(target + (at >> 1), narrowed(low, high));
    }
  }
  return isAny;
}

/** Adds four fp32 sums, times a factor. */
// @inline
function addWide(out: usize, sums: v128, factor: v128): void {
  const low = f64x2.mul(f64x2.promote_low_f32x4(sums), factor);
  const high = f64x2.mul(f64x2.promote_low_f32x4(i64x2.shuffle(sums, sums, 1, 1)), factor);
  v128.store(out, f64x2.add(v128.load(out), low));
  v128.store(out, f64x2.add(v128.load(out, 16), high), 16);
}

/** Adds the products of the narrow rows with panels of narrow values to `sums` [64 × columns], times the factors of the rows and `factor`. */
function addProduct(block: BoundTile, panels: usize, sums: usize, rows: i32, factor: f64): void {
  const stride = (<usize>block.columns) << 3;
  for (let j = 0; j < block.columns; j += 8)
    for (let i: usize = 0; i < <usize>rows; i += 4) {
      let a = block.narrowRows + i * narrowRowBytes;
      let p = panels + <usize>(j >> 2) * narrowPanelBytes;
      let c00 = f32x4.splat(0);
      let c01 = f32x4.splat(0);
      let c10 = f32x4.splat(0);
      let c11 = f32x4.splat(0);
      let c20 = f32x4.splat(0);
      let c21 = f32x4.splat(0);
      let c30 = f32x4.splat(0);
      let c31 = f32x4.splat(0);
      for (let k = 0; k < tile; k++, a += 4, p += 16) {
        const b0 = v128.load(p);
        const b1 = v128.load(p, narrowPanelBytes);
        const x0 = v128.load32_splat(a);
        c00 = f32x4.add(c00, f32x4.mul(x0, b0));
        c01 = f32x4.add(c01, f32x4.mul(x0, b1));
        const x1 = v128.load32_splat(a, narrowRowBytes);
        c10 = f32x4.add(c10, f32x4.mul(x1, b0));
        c11 = f32x4.add(c11, f32x4.mul(x1, b1));
        const x2 = v128.load32_splat(a, 2 * narrowRowBytes);
        c20 = f32x4.add(c20, f32x4.mul(x2, b0));
        c21 = f32x4.add(c21, f32x4.mul(x2, b1));
        const x3 = v128.load32_splat(a, 3 * narrowRowBytes);
        c30 = f32x4.add(c30, f32x4.mul(x3, b0));
        c31 = f32x4.add(c31, f32x4.mul(x3, b1));
      }
      let out = sums + i * stride + ((<usize>j) << 3);
      const factors = block.ofRows + (i << 3);
      let ofRow = f64x2.splat(load<f64>(factors) * factor);
      addWide(out, c00, ofRow);
      addWide(out + 32, c01, ofRow);
      ofRow = f64x2.splat(load<f64>(factors, 8) * factor);
      out += stride;
      addWide(out, c10, ofRow);
      addWide(out + 32, c11, ofRow);
      ofRow = f64x2.splat(load<f64>(factors, 16) * factor);
      out += stride;
      addWide(out, c20, ofRow);
      addWide(out + 32, c21, ofRow);
      ofRow = f64x2.splat(load<f64>(factors, 24) * factor);
      out += stride;
      addWide(out, c30, ofRow);
      addWide(out + 32, c31, ofRow);
    }
}

/** Σ w·v² of the tile in fp64. */
function sumSquares(block: BoundTile, rows: i32): void {
  const stride = (<usize>block.columns) << 3;
  for (let i: usize = 0; i < <usize>rows; i += 4)
    for (let j = 0; j < block.columns; j += 4) {
      let w = block.scores + i * rowBytes;
      let p = block.valueSquares + <usize>(j >> 2) * panelBytes;
      let c00 = f64x2.splat(0);
      let c01 = f64x2.splat(0);
      let c10 = f64x2.splat(0);
      let c11 = f64x2.splat(0);
      let c20 = f64x2.splat(0);
      let c21 = f64x2.splat(0);
      let c30 = f64x2.splat(0);
      let c31 = f64x2.splat(0);
      for (let k = 0; k < tile; k++, w += 8, p += 32) {
        const b0 = v128.load(p);
        const b1 = v128.load(p, 16);
        const x0 = v128.load64_splat(w);
        c00 = f64x2.add(c00, f64x2.mul(x0, b0));
        c01 = f64x2.add(c01, f64x2.mul(x0, b1));
        const x1 = v128.load64_splat(w, rowBytes);
        c10 = f64x2.add(c10, f64x2.mul(x1, b0));
        c11 = f64x2.add(c11, f64x2.mul(x1, b1));
        const x2 = v128.load64_splat(w, 2 * rowBytes);
        c20 = f64x2.add(c20, f64x2.mul(x2, b0));
        c21 = f64x2.add(c21, f64x2.mul(x2, b1));
        const x3 = v128.load64_splat(w, 3 * rowBytes);
        c30 = f64x2.add(c30, f64x2.mul(x3, b0));
        c31 = f64x2.add(c31, f64x2.mul(x3, b1));
      }
      let out = block.tileSquares + i * stride + ((<usize>j) << 3);
      v128.store(out, c00);
      v128.store(out, c01, 16);
      out += stride;
      v128.store(out, c10);
      v128.store(out, c11, 16);
      out += stride;
      v128.store(out, c20);
      v128.store(out, c21, 16);
      out += stride;
      v128.store(out, c30);
      v128.store(out, c31, 16);
    }
}

/**
 * `moments` of values whose magnitudes lie between `largest` and 2^-30 of it: w·v² in fp64, as its difference from the square of the
 * output may cancel, the other sums in fp32. They are off by less than 2^-17 of the sums of their terms' magnitudes. Columns are a
 * multiple of 8, rows of 4.
 */
export function narrowMoments(block: BoundTile, rows: i32, largest: f64): void {
  const scale = scaleOf(largest);
  const factor = 1 / scale;
  loadPanels(block, scale);
  sumSquares(block, rows);
  memory.fill(block.tileSum, 0, (<usize>(rows * block.columns)) << 3);
  narrowRows(block, block.scores, rows);
  addProduct(block, block.narrowValues, block.tileSum, rows, factor);
  narrowRows(block, block.rounding, rows);
  addProduct(block, block.narrowSizes, block.moved, rows, factor);
  if (narrowRows(block, block.known, rows))
    addProduct(block, block.narrowValues, block.predicted, rows, factor);
  narrowRows(block, block.variance, rows);
  addProduct(block, block.narrowSquares, block.spread, rows, factor * factor);
}
