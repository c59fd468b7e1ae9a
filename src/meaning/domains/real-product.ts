/** A matrix of double-doubles in two arrays. */
export interface RealMatrix {
  readonly high: Float64Array;
  readonly low: Float64Array;
}

/** Value of the splitting constant 2^27 + 1 of Dekker's product. */
const splitter = 134217729;

/** Whether a matrix has numbers of at most 24 bits, so that products of them with halves of fp64 numbers are exact. */
function isShort({ high, low }: RealMatrix): boolean {
  for (let i = 0; i < high.length; i++)
    if (low[i] !== 0 || Math.fround(high[i]) !== high[i]) return false;
  return true;
}

/**
 * D = C ± A·Bᵀ in double-double arithmetic, [m][n] from [m][k] and [n][k]: each product and each sum adds a relative error of some
 * 2^−104 of the largest partial sum.
 */
export function realProduct(
  {
    m,
    n,
    k,
    isNegated,
  }: { readonly m: number; readonly n: number; readonly k: number; readonly isNegated: boolean },
  a: RealMatrix,
  b: RealMatrix,
  c: RealMatrix | null,
  d: RealMatrix,
): void {
  const areShort = isShort(a) && isShort(b);
  const sign = isNegated ? -1 : 1;
  for (let i = 0; i < m; i++)
    for (let j = 0; j < n; j++) {
      const at = i * n + j;
      let h = c === null ? 0 : c.high[at];
      let l = c === null ? 0 : c.low[at];
      for (let x = 0; x < k; x++) {
        const p = i * k + x;
        const q = j * k + x;
        const u = sign * a.high[p];
        const v = b.high[q];
        const product = u * v;
        let error = 0;
        if (!areShort && product !== 0) {
          let t = splitter * u;
          const uh = t - (t - u);
          t = splitter * v;
          const vh = t - (t - v);
          const ul = u - uh;
          const vl = v - vh;
          error =
            uh * vh - product + uh * vl + ul * vh + ul * vl + (u * b.low[q] + sign * a.low[p] * v);
        }
        const s = h + product;
        if (!Number.isFinite(s)) {
          h = s;
          continue;
        }
        const t = s - h;
        const e = h - (s - t) + (product - t) + (l + error);
        h = s + e;
        l = e - (h - s);
      }
      d.high[at] = h;
      d.low[at] = Number.isFinite(h) ? l : 0;
    }
}
