const { fround } = Math;

/** An array of fp32 numbers. */
type Float32Numbers = Float32Array | Float64Array;

/** Σ a·b over `length` elements, ascending: every product and every sum is rounded to fp32. */
export function dotFloat32(
  a: Float32Numbers,
  aStart: number,
  b: Float32Numbers,
  bStart: number,
  length: number,
): number {
  let sum = 0;
  for (let t = 0; t < length; t++) sum = fround(sum + fround(a[aStart + t] * b[bStart + t]));
  return sum;
}

/** cap · tanh(score / cap) with every operation rounded to fp32; tanh is rounded from fp64. */
export function softcapFloat32(score: number, cap: number): number {
  return fround(cap * fround(Math.tanh(fround(score / cap))));
}

/** e^x rounded from fp64 to fp32. */
export function expFloat32(x: number): number {
  return fround(Math.exp(x));
}

/** The largest of some scores and a sink; unlike PTX's max it keeps a NaN. */
export function largestScore(scores: Float32Numbers, sink = -Infinity): number {
  let largest = sink;
  for (const score of scores) if (score > largest || Number.isNaN(score)) largest = score;
  return largest;
}

/** max + ln(sum), the logarithm rounded from fp64 to fp32, the sum to fp32. */
export function logSumExpFloat32(max: number, sum: number): number {
  return fround(max + fround(Math.log(sum)));
}

/** row[c] += weight · values[at + c] for every c, the product and the sum rounded to fp32. */
export function addScaledFloat32(
  row: Float32Array,
  weight: number,
  values: Float32Numbers,
  at: number,
): void {
  // A store to a Float32Array rounds to nearest even.
  for (let c = 0; c < row.length; c++) row[c] += fround(weight * values[at + c]);
}
