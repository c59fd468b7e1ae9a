// AssemblyScript: scores to weights in fp64, two lanes at a time. See ./tile-kernels.ts on rounding.

import { exp2Fraction, scaleByPowerOfTwo, sumOf } from './exp2';

/** What the exact product s·c of two fp64 numbers and a double-double's tail leave of the rounded product p. */
// @inline
function productRest(s: v128, p: v128, cBig: v128, cSmall: v128, cTail: v128): v128 {
  const split = f64x2.splat(134217729);
  const t = f64x2.mul(split, s);
  const sBig = f64x2.sub(t, f64x2.sub(t, s));
  const sSmall = f64x2.sub(s, sBig);
  let e = f64x2.sub(f64x2.mul(sBig, cBig), p);
  e = f64x2.add(e, f64x2.mul(sBig, cSmall));
  e = f64x2.add(e, f64x2.mul(sSmall, cBig));
  e = f64x2.add(e, f64x2.mul(sSmall, cSmall));
  return f64x2.add(e, f64x2.mul(s, cTail));
}

/** The head of Veltkamp's split of a constant into halves of 26 bits. */
// @inline
function splitHead(c: v128): v128 {
  const split = f64x2.splat(134217729);
  return f64x2.sub(f64x2.mul(split, c), f64x2.sub(f64x2.mul(split, c), c));
}

/** Scores are [64 × 64]. */
const tileRows: i32 = 64;
const rowBytes: usize = 512;

/** Where a tile's scores are, and an array of a number for each of its rows: low and high in i32, the others in f64. */
@unmanaged
export class TileMemory {
  scores: usize;
  addends: usize;
  low: usize;
  high: usize;
  reference: usize;
  factor: usize;
  extent: usize;
  maximum: usize;
  sums: usize;
}

/** Two double-doubles: an exponent is s·c, or s·c + a·d. */
@unmanaged
export class ExponentFactors {
  cHigh: f64;
  cLow: f64;
  dHigh: f64;
  dLow: f64;
}

/** The body of `weights`, for addends that are v128, or void: the loops without them have nothing of them. */
// @inline
function weigh<Addends>(tile: TileMemory, factors: ExponentFactors): void {
  const isAdded = isVector<Addends>();
  const low = tile.low;
  const high = tile.high;
  const reference = tile.reference;
  const factor = tile.factor;
  const extent = tile.extent;
  const maximum = tile.maximum;
  const sums = tile.sums;
  const cHigh = factors.cHigh;
  const cLow = factors.cLow;
  const dHigh = factors.dHigh;
  const dLow = factors.dLow;
  const c = f64x2.splat(cHigh);
  const cTail = f64x2.splat(cLow);
  const cBig = splitHead(c);
  const cSmall = f64x2.sub(c, cBig);
  const d = f64x2.splat(dHigh);
  const dTail = f64x2.splat(dLow);
  const dBig = splitHead(d);
  const dSmall = f64x2.sub(d, dBig);
  for (let i = 0; i < tileRows; i++) {
    const row = tile.scores + <usize>i * rowBytes;
    const rowAddends = tile.addends + <usize>i * rowBytes;
    const begin = load<i32>(low + ((<usize>i) << 2));
    const end = load<i32>(high + ((<usize>i) << 2));
    const at: usize = (<usize>i) << 3;
    if (begin >= end) {
      memory.fill(row, 0, rowBytes);
      store<f64>(factor + at, 1);
      store<f64>(sums + at, 0);
      continue;
    }
    let largest: f64 = -Infinity;
    let extreme: f64 = load<f64>(extent + at);
    for (let j = begin; j < end; j++) {
      let y = load<f64>(row + ((<usize>j) << 3)) * cHigh;
      extreme = max<f64>(extreme, abs<f64>(y));
      if (isAdded) {
        const z = load<f64>(rowAddends + ((<usize>j) << 3)) * dHigh;
        extreme = max<f64>(extreme, abs<f64>(z));
        y += z;
      }
      largest = max<f64>(largest, y);
    }
    store<f64>(extent + at, extreme);
    store<f64>(maximum + at, max<f64>(load<f64>(maximum + at), largest));
    let from = load<f64>(reference + at);
    if (from === -Infinity) {
      from = nearest<f64>(largest);
      store<f64>(reference + at, from);
      store<f64>(factor + at, 0);
    } else if (largest - from > 16) {
      const to = nearest<f64>(largest);
      const shift = from - to;
      store<f64>(factor + at, shift < -1022 ? 0 : reinterpret<f64>((<i64>shift + 1023) << 52));
      store<f64>(reference + at, to);
      from = to;
    } else {
      store<f64>(factor + at, 1);
    }
    const origin = f64x2.splat(from);
    let sum = f64x2.splat(0);
    for (let j = 0; j < tileRows; j += 2) {
      const place: usize = row + ((<usize>j) << 3);
      const s = v128.load(place);
      // s·c as p + e: Dekker's product, then the tail of c.
      let p = f64x2.mul(s, c);
      let e = productRest(s, p, cBig, cSmall, cTail);
      if (isAdded) {
        // a·d likewise as q + …, and p + q exactly by 2Sum.
        const a = v128.load(rowAddends + ((<usize>j) << 3));
        const q = f64x2.mul(a, d);
        const both = f64x2.add(p, q);
        const ofQ = f64x2.sub(both, p);
        const lost = f64x2.add(f64x2.sub(p, f64x2.sub(both, ofQ)), f64x2.sub(q, ofQ));
        e = f64x2.add(f64x2.add(e, productRest(a, q, dBig, dSmall, dTail)), lost);
        p = both;
      }
      const n = f64x2.nearest(p);
      const f = f64x2.add(f64x2.sub(p, n), e);
      const shift = f64x2.sub(n, origin);
      const clamped = f64x2.max(f64x2.min(shift, f64x2.splat(1000)), f64x2.splat(-1000));
      let w = scaleByPowerOfTwo(exp2Fraction(f), clamped);
      w = v128.and(w, f64x2.ge(shift, f64x2.splat(-1000)));
      if (j < begin || j + 2 > end) {
        if (j < begin || j >= end) w = f64x2.replace_lane(w, 0, 0);
        if (j + 1 < begin || j + 1 >= end) w = f64x2.replace_lane(w, 1, 0);
      }
      v128.store(place, w);
      sum = f64x2.add(sum, w);
    }
    store<f64>(sums + at, sumOf(sum));
  }
}

/**
 * Turns a tile of scores into weights 2^(s·c − reference) in place and sums them by row, where
 * c = cHigh + cLow is a double-double. With addends, one for each score, the exponents are s·c + a·d with
 * d = dHigh + dLow.
 *
 * Row i sees columns low[i] ≤ j < high[i]; the others get
 * weight 0. reference[i] is an integer, −Infinity before the row's first visible column; it is
 * raised to the row's maximum when a weight would exceed 2^16, and factor[i] is the power of two
 * that older sums must be multiplied by. extent[i] becomes the largest |s·c| or |a·d| seen, maximum[i] the
 * largest exponent. A weight below 2^-1000 becomes 0; so does an older sum that falls by more than 2^1022,
 * to less than 2^-1005 of the new largest weight for each of its terms.
 */
export function weights(tile: TileMemory, factors: ExponentFactors, isAdded: bool): void {
  if (isAdded) weigh<v128>(tile, factors);
  else weigh<void>(tile, factors);
}
