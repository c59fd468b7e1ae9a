// AssemblyScript: sums over keys of weights and of what rounding does to them, with V. Definitions in
// TypeScript: test/audit/bounds/loop-definitions.ts.

import { BoundTile } from './memory';
import { rowBytes, tile } from './scores';

/** Whether one of a row's 64 numbers is not 0. */
function hasAny(row: usize): bool {
  let any = f64x2.splat(0);
  for (let k = 0; k < tile; k += 2)
    any = v128.or(any, f64x2.ne(v128.load(row + ((<usize>k) << 3)), f64x2.splat(0)));
  return v128.any_true(any);
}

/** Adds two vectors. */
// @inline
function addTo(at: usize, first: v128, second: v128): void {
  v128.store(at, f64x2.add(v128.load(at), first));
  v128.store(at, f64x2.add(v128.load(at, 16), second), 16);
}

/** `moments` of a row, for known roundings of weights that are v128, or void: the loop without them has nothing of them. */
// @inline
function rowMoments<Known>(block: BoundTile, row: i32): void {
  const hasKnown = isVector<Known>();
  const columns = block.columns;
  const stride: usize = (<usize>columns) << 3;
  const weights = block.scores + <usize>row * rowBytes;
  const toRounding = block.rounding - block.scores;
  const toKnown = block.known - block.scores;
  const toVariance = block.variance - block.scores;
  const values = block.values;
  const first = <usize>row * stride;
  const sum = block.tileSum + first;
  const squares = block.tileSquares + first;
  const moved = block.moved + first;
  const predicted = block.predicted + first;
  const spread = block.spread + first;
  // Two vectors of columns at a time: ten sums and what they are made of fit the registers.
  for (let j = 0; j < columns; j += 4) {
    let p = values + ((<usize>j) << 3);
    let w = weights;
    let s0 = f64x2.splat(0);
    let s1 = f64x2.splat(0);
    let q0 = f64x2.splat(0);
    let q1 = f64x2.splat(0);
    let m0 = f64x2.splat(0);
    let m1 = f64x2.splat(0);
    let p0 = f64x2.splat(0);
    let p1 = f64x2.splat(0);
    let t0 = f64x2.splat(0);
    let t1 = f64x2.splat(0);
    for (let k = 0; k < tile; k++) {
      const v0 = v128.load(p);
      const v1 = v128.load(p, 16);
      const weight = v128.load64_splat(w);
      s0 = f64x2.add(s0, f64x2.mul(weight, v0));
      s1 = f64x2.add(s1, f64x2.mul(weight, v1));
      if (hasKnown) {
        const certain = v128.load64_splat(w + toKnown);
        p0 = f64x2.add(p0, f64x2.mul(certain, v0));
        p1 = f64x2.add(p1, f64x2.mul(certain, v1));
      }
      const distance = v128.load64_splat(w + toRounding);
      m0 = f64x2.add(m0, f64x2.mul(distance, f64x2.abs(v0)));
      m1 = f64x2.add(m1, f64x2.mul(distance, f64x2.abs(v1)));
      const b0 = f64x2.mul(v0, v0);
      const b1 = f64x2.mul(v1, v1);
      q0 = f64x2.add(q0, f64x2.mul(weight, b0));
      q1 = f64x2.add(q1, f64x2.mul(weight, b1));
      const square = v128.load64_splat(w + toVariance);
      t0 = f64x2.add(t0, f64x2.mul(square, b0));
      t1 = f64x2.add(t1, f64x2.mul(square, b1));
      w += 8;
      p += stride;
    }
    const at: usize = (<usize>j) << 3;
    v128.store(sum + at, s0);
    v128.store(sum + at, s1, 16);
    v128.store(squares + at, q0);
    v128.store(squares + at, q1, 16);
    addTo(moved + at, m0, m1);
    if (hasKnown) addTo(predicted + at, p0, p1);
    addTo(spread + at, t0, t1);
  }
}

/**
 * Five products of one tile with the values v [64 × columns]: w·v and w·v² of the tile, each [64 × columns]; rounding·|v|, known·v and
 * variance·v² are added to the running sums. Columns are a multiple of 4.
 */
export function moments(block: BoundTile, rows: i32): void {
  for (let i = 0; i < rows; i++) {
    if (hasAny(block.known + <usize>i * rowBytes)) rowMoments<v128>(block, i);
    else rowMoments<void>(block, i);
  }
}

/**
 * Adds a tile's sums of w·v and w·v² to the running ones, row by row, and to two bounds that depend on the
 * accumulator C at that time: with |C| ≤ |sum| + slack[i]·magnitude before the tile and M ≤
 * √(mass[i]·squares) what the tile adds to it, accumulated += perTile[i]·(|C| + M) + floor[i] and
 * rescaled += rescale[i]·|C|.
 */
export function addTile(block: BoundTile, rows: i32): void {
  const tileSum = block.tileSum;
  const tileSquares = block.tileSquares;
  const sum = block.sum;
  const squares = block.squares;
  const magnitude = block.magnitude;
  const accumulated = block.accumulated;
  const rescaled = block.rescaled;
  const mass = block.mass;
  const slack = block.slack;
  const perTile = block.perTile;
  const floor = block.floor;
  const rescale = block.rescale;
  const columns = block.columns;
  let at: usize = 0;
  for (let i = 0; i < rows; i++) {
    const entry = (<usize>i) << 3;
    const m = v128.load64_splat(mass + entry);
    const loose = v128.load64_splat(slack + entry);
    const fused = v128.load64_splat(perTile + entry);
    const least = v128.load64_splat(floor + entry);
    const scaled = v128.load64_splat(rescale + entry);
    for (let j = 0; j < columns; j += 2) {
      const before = v128.load(sum + at);
      const added = v128.load(tileSquares + at);
      const c = f64x2.add(f64x2.abs(before), f64x2.mul(loose, v128.load(magnitude + at)));
      const reach = f64x2.add(c, f64x2.sqrt(f64x2.mul(m, added)));
      v128.store(
        accumulated + at,
        f64x2.add(v128.load(accumulated + at), f64x2.add(f64x2.mul(fused, reach), least)),
      );
      v128.store(rescaled + at, f64x2.add(v128.load(rescaled + at), f64x2.mul(scaled, c)));
      v128.store(sum + at, f64x2.add(before, v128.load(tileSum + at)));
      v128.store(squares + at, f64x2.add(v128.load(squares + at), added));
      at += 16;
    }
  }
}

/** v² of a tile's values, and Σ |v| by column, into blocks that `addUnknown` does not need. */
function squareValues(block: BoundTile): void {
  const columns = block.columns;
  const stride: usize = (<usize>columns) << 3;
  const sizes = block.tileSum;
  memory.fill(sizes, 0, stride);
  let value = block.values;
  let square = block.valueSquares;
  for (let k = 0; k < tile; k++)
    for (let at: usize = 0; at < stride; at += 16, value += 16, square += 16) {
      const v = v128.load(value);
      v128.store(square, f64x2.mul(v, v));
      v128.store(sizes + at, f64x2.add(v128.load(sizes + at), f64x2.abs(v)));
    }
}

/** Adds floor·Σ |v| over the keys that a row sees: those whose weight a rounding may move. */
function addFloor(block: BoundTile, row: i32, floor: f64): void {
  const stride: usize = (<usize>block.columns) << 3;
  const distances = block.rounding + <usize>row * rowBytes;
  const moved = block.moved + <usize>row * stride;
  let seen = 0;
  for (let k = 0; k < tile; k++) if (load<f64>(distances + ((<usize>k) << 3)) > 0) seen++;
  if (seen === 0) return;
  const factor = f64x2.splat(floor);
  for (let k = 0; k < (seen === tile ? 1 : tile); k++) {
    if (!(load<f64>(distances + ((<usize>k) << 3)) > 0)) continue;
    const values = seen === tile ? block.tileSum : block.values + <usize>k * stride;
    for (let at: usize = 0; at < stride; at += 16) {
      const added = f64x2.mul(factor, f64x2.abs(v128.load(values + at)));
      v128.store(moved + at, f64x2.add(v128.load(moved + at), added));
    }
  }
}

/**
 * What `moments` and `addTile` add where a weight may lie anywhere in its ulp and sums over keys lose nothing by the tile: w·v² and
 * variance·v² to the running sums, and to `moved` the part of the roundings that does not grow with the weight, least[i]·gain[i]·Σ |v|.
 * The other part is relative[i]·Σ w|v|. Rows and columns are multiples of 2 and 4.
 */
export function addUnknown(block: BoundTile, rows: i32): void {
  squareValues(block);
  const columns = block.columns;
  const stride: usize = (<usize>columns) << 3;
  const toVariance = block.variance - block.scores;
  for (let i = 0; i < rows; i++) {
    const at = (<usize>i) << 3;
    addFloor(block, i, load<f64>(block.least + at) * load<f64>(block.gain + at));
  }
  for (let i = 0; i < rows; i += 2) {
    const row = <usize>i * stride;
    for (let j: usize = 0; j < stride; j += 32) {
      const squares = block.squares + row + j;
      const spread = block.spread + row + j;
      let p = block.valueSquares + j;
      let w = block.scores + <usize>i * rowBytes;
      let q00 = v128.load(squares);
      let q01 = v128.load(squares, 16);
      let q10 = v128.load(squares + stride);
      let q11 = v128.load(squares + stride, 16);
      let t00 = v128.load(spread);
      let t01 = v128.load(spread, 16);
      let t10 = v128.load(spread + stride);
      let t11 = v128.load(spread + stride, 16);
      for (let k = 0; k < tile; k++, w += 8, p += stride) {
        const v0 = v128.load(p);
        const v1 = v128.load(p, 16);
        let x = v128.load64_splat(w);
        q00 = f64x2.add(q00, f64x2.mul(x, v0));
        q01 = f64x2.add(q01, f64x2.mul(x, v1));
        x = v128.load64_splat(w, 512);
        q10 = f64x2.add(q10, f64x2.mul(x, v0));
        q11 = f64x2.add(q11, f64x2.mul(x, v1));
        x = v128.load64_splat(w + toVariance);
        t00 = f64x2.add(t00, f64x2.mul(x, v0));
        t01 = f64x2.add(t01, f64x2.mul(x, v1));
        x = v128.load64_splat(w + toVariance, 512);
        t10 = f64x2.add(t10, f64x2.mul(x, v0));
        t11 = f64x2.add(t11, f64x2.mul(x, v1));
      }
      v128.store(squares, q00);
      v128.store(squares, q01, 16);
      v128.store(squares + stride, q10);
      v128.store(squares + stride, q11, 16);
      v128.store(spread, t00);
      v128.store(spread, t01, 16);
      v128.store(spread + stride, t10);
      v128.store(spread + stride, t11, 16);
    }
  }
}
