// AssemblyScript: scores of a tile with how far each may be off, and what is read off them before any
// weight. Definitions in TypeScript: test/audit/bounds/loop-definitions.ts.

import { BoundTile } from './memory';

/** Tiles are 64 queries by 64 keys. */
export const tile: i32 = 64;
export const rowBytes: usize = 512;

/** Exponents this far below the largest met so far are not counted. */
const leastCounted: f64 = 24;

/** The place of an exponent y in a table of 2^bits counts. */
// @inline
export function placeOf(y: f64, binsPerOctave: f64, bits: i32): usize {
  const bin = <i64>nearest<f64>(y * binsPerOctave);
  return <usize>((<u64>bin * 0x9e3779b97f4a7c15) >> (<u64>(64 - bits)));
}

/** Adds the magnitudes of two vectors. */
// @inline
function addMagnitudes(at: usize, first: v128, second: v128): void {
  v128.store(at, f64x2.add(v128.load(at), f64x2.abs(first)));
  v128.store(at, f64x2.add(v128.load(at, 16), f64x2.abs(second)), 16);
}

/**
 * C[rows × 64] = A[rows × inner] · B[inner × 64] as a chain of sums of `step` products, and E = Σ |partial sum of the chain|; rows are a
 * multiple of 4. B lies in panels of four columns, so that the loop reads it in its order.
 */
export function chainProduct(
  a: usize,
  b: usize,
  c: usize,
  e: usize,
  rows: i32,
  inner: i32,
  step: i32,
): void {
  const aStride: usize = (<usize>inner) << 3;
  memory.fill(e, 0, <usize>rows * rowBytes);
  for (let i: usize = 0; i < <usize>rows; i += 4) {
    let p = b;
    for (let j: usize = 0; j < rowBytes; j += 32) {
      let a0 = a + i * aStride;
      let a1 = a0 + aStride;
      let a2 = a1 + aStride;
      let a3 = a2 + aStride;
      const at = i * rowBytes + j;
      const out = c + at;
      let c00 = f64x2.splat(0);
      let c01 = f64x2.splat(0);
      let c10 = f64x2.splat(0);
      let c11 = f64x2.splat(0);
      let c20 = f64x2.splat(0);
      let c21 = f64x2.splat(0);
      let c30 = f64x2.splat(0);
      let c31 = f64x2.splat(0);
      for (let first = 0; first < inner; first += step) {
        const end = min<i32>(first + step, inner);
        for (let k = first; k < end; k++) {
          const b0 = v128.load(p);
          const b1 = v128.load(p, 16);
          const x0 = v128.load64_splat(a0);
          c00 = f64x2.add(c00, f64x2.mul(x0, b0));
          c01 = f64x2.add(c01, f64x2.mul(x0, b1));
          const x1 = v128.load64_splat(a1);
          c10 = f64x2.add(c10, f64x2.mul(x1, b0));
          c11 = f64x2.add(c11, f64x2.mul(x1, b1));
          const x2 = v128.load64_splat(a2);
          c20 = f64x2.add(c20, f64x2.mul(x2, b0));
          c21 = f64x2.add(c21, f64x2.mul(x2, b1));
          const x3 = v128.load64_splat(a3);
          c30 = f64x2.add(c30, f64x2.mul(x3, b0));
          c31 = f64x2.add(c31, f64x2.mul(x3, b1));
          a0 += 8;
          a1 += 8;
          a2 += 8;
          a3 += 8;
          p += 32;
        }
        addMagnitudes(e + at, c00, c01);
        addMagnitudes(e + at + rowBytes, c10, c11);
        addMagnitudes(e + at + 2 * rowBytes, c20, c21);
        addMagnitudes(e + at + 3 * rowBytes, c30, c31);
      }
      v128.store(out, c00);
      v128.store(out, c01, 16);
      v128.store(out, c10, rowBytes);
      v128.store(out, c11, rowBytes + 16);
      v128.store(out, c20, 2 * rowBytes);
      v128.store(out, c21, 2 * rowBytes + 16);
      v128.store(out, c30, 3 * rowBytes);
      v128.store(out, c31, 3 * rowBytes + 16);
    }
  }
}

/** e = perPartial·e + perProduct·products, element by element: how far scores may be off. */
export function scoreErrors(
  e: usize,
  products: usize,
  count: i32,
  perPartial: f64,
  perProduct: f64,
): void {
  const partial = f64x2.splat(perPartial);
  const product = f64x2.splat(perProduct);
  for (let i = 0; i < count; i += 2) {
    const at: usize = (<usize>i) << 3;
    v128.store(
      e + at,
      f64x2.add(
        f64x2.mul(v128.load(e + at), partial),
        f64x2.mul(v128.load(products + at), product),
      ),
    );
  }
}

/** Puts 64 keys, [64 × dim], into panels of four: [16 × dim × 4], as `chainProduct` takes them. */
export function loadPanels(keys: usize, panels: usize, dim: i32): void {
  const stride = (<usize>dim) << 3;
  let to = panels;
  for (let first: usize = keys; first < keys + 64 * stride; first += 4 * stride)
    for (let at = first; at < first + stride; at += 8) {
      v128.store(to, v128.load64_lane(at + stride, v128.load64_zero(at), 1));
      const third = at + 2 * stride;
      v128.store(to, v128.load64_lane(third + stride, v128.load64_zero(third), 1), 16);
      to += 32;
    }
}

/**
 * For each row the largest exponent s·factor over columns low ≤ j < high, −Infinity where there are
 * none. Counts the exponents of each of `binsPerOctave` bins in the row's table of 2^tableBits counts (u16),
 * too high where two bins share a place; `largest` holds the row's largest exponent so far, `errors` the largest of the tile's
 * errors of scores so far.
 */
export function scanScores(block: BoundTile, rows: i32, factor: f64, binsPerOctave: f64): void {
  const scores = block.scores;
  const scoreError = block.scoreError;
  const errors = block.errors;
  const low = block.low;
  const high = block.high;
  const maxima = block.maxima;
  const largest = block.largest;
  const tables = block.tables;
  const bits = block.tableBits;
  for (let i = 0; i < rows; i++) {
    const begin = load<i32>(low + ((<usize>i) << 2));
    const end = load<i32>(high + ((<usize>i) << 2));
    const row = scores + <usize>i * rowBytes;
    let most: f64 = -Infinity;
    for (let j = begin; j < end; j++)
      most = max<f64>(most, load<f64>(row + ((<usize>j) << 3)) * factor);
    store<f64>(maxima + ((<usize>i) << 3), most);
    let error = load<f64>(errors + ((<usize>i) << 3));
    for (let j = begin; j < end; j++)
      error = max<f64>(error, load<f64>(scoreError + (row - scores) + ((<usize>j) << 3)));
    store<f64>(errors + ((<usize>i) << 3), error);
    if (bits === 0) continue;
    const above = max<f64>(load<f64>(largest + ((<usize>i) << 3)), most);
    store<f64>(largest + ((<usize>i) << 3), above);
    const table = tables + ((<usize>i) << (bits + 1));
    for (let j = begin; j < end; j++) {
      const y = load<f64>(row + ((<usize>j) << 3)) * factor;
      if (!(y >= above - leastCounted)) continue;
      const at = table + (placeOf(y, binsPerOctave, bits) << 1);
      const count = load<u16>(at);
      if (count < 65535) store<u16>(at, count + 1);
    }
  }
}
