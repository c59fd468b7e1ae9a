// AssemblyScript: sums of weighted values in fp64, two lanes at a time. ../../prediction.ts has the same sums in TypeScript.

/** Adds w·v and |w·v| of four pairs of columns of all keys to their sums. */
// @inline
function addColumns(
  weights: usize,
  values: usize,
  keys: i32,
  stride: usize,
  out: usize,
  magnitude: usize,
): void {
  let a = v128.load(out);
  let b = v128.load(out, 16);
  let c = v128.load(out, 32);
  let d = v128.load(out, 48);
  let e = v128.load(magnitude);
  let f = v128.load(magnitude, 16);
  let g = v128.load(magnitude, 32);
  let h = v128.load(magnitude, 48);
  let at = values;
  for (let j = 0; j < keys; j++, at += stride) {
    const w = v128.load64_splat(weights + ((<usize>j) << 3));
    let p = f64x2.mul(w, v128.load(at));
    a = f64x2.add(a, p);
    e = f64x2.add(e, f64x2.abs(p));
    p = f64x2.mul(w, v128.load(at, 16));
    b = f64x2.add(b, p);
    f = f64x2.add(f, f64x2.abs(p));
    p = f64x2.mul(w, v128.load(at, 32));
    c = f64x2.add(c, p);
    g = f64x2.add(g, f64x2.abs(p));
    p = f64x2.mul(w, v128.load(at, 48));
    d = f64x2.add(d, p);
    h = f64x2.add(h, f64x2.abs(p));
  }
  v128.store(out, a);
  v128.store(out, b, 16);
  v128.store(out, c, 32);
  v128.store(out, d, 48);
  v128.store(magnitude, e);
  v128.store(magnitude, f, 16);
  v128.store(magnitude, g, 32);
  v128.store(magnitude, h, 48);
}

/**
 * Adds the values of `keys` keys, [keys × dim] with `dim` a multiple of 8, by their weights to sums by column: Σ w v and Σ |w v|.
 * @returns Σ w²‖v‖²
 */
export function weighValues(
  weights: usize,
  values: usize,
  keys: i32,
  dim: i32,
  out: usize,
  magnitude: usize,
): f64 {
  const stride = (<usize>dim) << 3;
  for (let column: usize = 0; column < stride; column += 64)
    addColumns(weights, values + column, keys, stride, out + column, magnitude + column);
  let squares: f64 = 0;
  let at = values;
  for (let j = 0; j < keys; j++) {
    let a = f64x2.splat(0);
    let b = f64x2.splat(0);
    let c = f64x2.splat(0);
    let d = f64x2.splat(0);
    for (let end = at + stride; at < end; at += 64) {
      const v0 = v128.load(at);
      const v1 = v128.load(at, 16);
      const v2 = v128.load(at, 32);
      const v3 = v128.load(at, 48);
      a = f64x2.add(a, f64x2.mul(v0, v0));
      b = f64x2.add(b, f64x2.mul(v1, v1));
      c = f64x2.add(c, f64x2.mul(v2, v2));
      d = f64x2.add(d, f64x2.mul(v3, v3));
    }
    const sum = f64x2.add(f64x2.add(a, b), f64x2.add(c, d));
    const w = load<f64>(weights + ((<usize>j) << 3));
    squares += w * w * (f64x2.extract_lane(sum, 0) + f64x2.extract_lane(sum, 1));
  }
  return squares;
}
