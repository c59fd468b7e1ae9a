// AssemblyScript: the sums of textbook attention in fp64, two lanes at a time. Each sum has the additions of
// ../yardstick-attention.ts in their order, so that its bits do not depend on how many are made at once.

/** Products of a row of Q with `keys` rows of K: sums of every fourth product, which are added as (s0 + s1) + (s2 + s3). */
export function scoreRow(q: usize, k: usize, scores: usize, keys: i32, dim: i32): void {
  const rowBytes = (<usize>dim) << 3;
  const quads = (<usize>(dim & ~3)) << 3;
  let j = 0;
  for (; j + 3 < keys; j += 4) {
    const k0 = k + <usize>j * rowBytes;
    const k1 = k0 + rowBytes;
    const k2 = k1 + rowBytes;
    const k3 = k2 + rowBytes;
    let a0 = f64x2.splat(0);
    let b0 = f64x2.splat(0);
    let a1 = f64x2.splat(0);
    let b1 = f64x2.splat(0);
    let a2 = f64x2.splat(0);
    let b2 = f64x2.splat(0);
    let a3 = f64x2.splat(0);
    let b3 = f64x2.splat(0);
    for (let at: usize = 0; at < quads; at += 32) {
      const x = v128.load(q + at);
      const y = v128.load(q + at, 16);
      a0 = f64x2.add(a0, f64x2.mul(x, v128.load(k0 + at)));
      b0 = f64x2.add(b0, f64x2.mul(y, v128.load(k0 + at, 16)));
      a1 = f64x2.add(a1, f64x2.mul(x, v128.load(k1 + at)));
      b1 = f64x2.add(b1, f64x2.mul(y, v128.load(k1 + at, 16)));
      a2 = f64x2.add(a2, f64x2.mul(x, v128.load(k2 + at)));
      b2 = f64x2.add(b2, f64x2.mul(y, v128.load(k2 + at, 16)));
      a3 = f64x2.add(a3, f64x2.mul(x, v128.load(k3 + at)));
      b3 = f64x2.add(b3, f64x2.mul(y, v128.load(k3 + at, 16)));
    }
    const out = scores + ((<usize>j) << 3);
    store<f64>(out, sumOf(a0, b0, q, k0, quads, rowBytes));
    store<f64>(out, sumOf(a1, b1, q, k1, quads, rowBytes), 8);
    store<f64>(out, sumOf(a2, b2, q, k2, quads, rowBytes), 16);
    store<f64>(out, sumOf(a3, b3, q, k3, quads, rowBytes), 24);
  }
  for (; j < keys; j++) {
    const row = k + <usize>j * rowBytes;
    let a = f64x2.splat(0);
    let b = f64x2.splat(0);
    for (let at: usize = 0; at < quads; at += 32) {
      a = f64x2.add(a, f64x2.mul(v128.load(q + at), v128.load(row + at)));
      b = f64x2.add(b, f64x2.mul(v128.load(q + at, 16), v128.load(row + at, 16)));
    }
    store<f64>(scores + ((<usize>j) << 3), sumOf(a, b, q, row, quads, rowBytes));
  }
}

/** The four sums as one; the products that are left join the first before. */
// @inline
function sumOf(a: v128, b: v128, q: usize, k: usize, from: usize, to: usize): f64 {
  let first = f64x2.extract_lane(a, 0);
  for (let at = from; at < to; at += 8) first += load<f64>(q + at) * load<f64>(k + at);
  const rest = f64x2.extract_lane(b, 0) + f64x2.extract_lane(b, 1);
  return first + f64x2.extract_lane(a, 1) + rest;
}

// @inline
function product(weight: usize, offset: usize, value: usize): v128 {
  return f64x2.mul(v128.load64_splat(weight + offset), v128.load(value));
}

/** Four weights times a pair of columns of four rows. */
// @inline
function fourProducts(weights: usize, value: usize, rowBytes: usize): v128 {
  const third = value + 2 * rowBytes;
  return f64x2.add(
    f64x2.add(product(weights, 0, value), product(weights, 8, value + rowBytes)),
    f64x2.add(product(weights, 16, third), product(weights, 24, third + rowBytes)),
  );
}

/** row += Σ_j weights[j] · values[j], four rows of values at a time: row + ((p0 + p1) + (p2 + p3)). */
export function addWeightedRows(
  row: usize,
  weights: usize,
  values: usize,
  keys: i32,
  dim: i32,
): void {
  const rowBytes = (<usize>dim) << 3;
  const quads = keys & ~3;
  let c: usize = 0;
  for (; c + 64 <= rowBytes; c += 64) {
    let a = v128.load(row + c);
    let b = v128.load(row + c, 16);
    let d = v128.load(row + c, 32);
    let e = v128.load(row + c, 48);
    let value = values + c;
    for (let j = 0; j < quads; j += 4, value += 4 * rowBytes) {
      const w = weights + ((<usize>j) << 3);
      a = f64x2.add(a, fourProducts(w, value, rowBytes));
      b = f64x2.add(b, fourProducts(w, value + 16, rowBytes));
      d = f64x2.add(d, fourProducts(w, value + 32, rowBytes));
      e = f64x2.add(e, fourProducts(w, value + 48, rowBytes));
    }
    for (let j = quads; j < keys; j++, value += rowBytes) {
      const w = weights + ((<usize>j) << 3);
      a = f64x2.add(a, product(w, 0, value));
      b = f64x2.add(b, product(w, 0, value + 16));
      d = f64x2.add(d, product(w, 0, value + 32));
      e = f64x2.add(e, product(w, 0, value + 48));
    }
    v128.store(row + c, a);
    v128.store(row + c, b, 16);
    v128.store(row + c, d, 32);
    v128.store(row + c, e, 48);
  }
  for (; c < rowBytes; c += 8) {
    let sum = load<f64>(row + c);
    let value = values + c;
    for (let j = 0; j < quads; j += 4, value += 4 * rowBytes) {
      const w = weights + ((<usize>j) << 3);
      const third = value + 2 * rowBytes;
      sum +=
        load<f64>(w) * load<f64>(value) +
        load<f64>(w, 8) * load<f64>(value + rowBytes) +
        (load<f64>(w, 16) * load<f64>(third) + load<f64>(w, 24) * load<f64>(third + rowBytes));
    }
    for (let j = quads; j < keys; j++, value += rowBytes)
      sum += load<f64>(weights + ((<usize>j) << 3)) * load<f64>(value);
    store<f64>(row + c, sum);
  }
}

/** Rounds numbers to fp32, to nearest even, in place. */
export function roundToFloat32(at: usize, count: i32): void {
  const end = at + ((<usize>count) << 3);
  for (; at + 16 <= end; at += 16)
    v128.store(at, f64x2.promote_low_f32x4(f32x4.demote_f64x2_zero(v128.load(at))));
  if (at < end) store<f64>(at, <f64>(<f32>load<f64>(at)));
}
