/** The weights of a tile, and the fp32 numbers nearest to them. */
export interface SummedWeights {
  readonly weights: Float64Array;
  readonly nearest: Float32Array;
}

const lanes = 8;

/** start + Σ p over the weights [first, end), in fp64. */
export function exactRowSum(start: number, weights: Float64Array, first: number, end: number) {
  let sum = start;
  for (let i = first; i < end; i++) sum += weights[i];
  return sum;
}

/**
 * start + Σ p as the kernel adds, at the fp32 numbers nearest to start and weights, plus what these
 * differ by: four packed accumulators of element pairs with a stride of 8, then their tree. Every
 * addition is fp32, to nearest even, and keeps subnormals.
 */
export function emulatedRowSum(
  start: number,
  { weights, nearest }: SummedWeights,
  first: number,
  end: number,
): number {
  const { fround } = Math;
  const sums = new Float32Array(lanes);
  const nearestStart = fround(start);
  let difference = start === nearestStart ? 0 : start - nearestStart;
  sums[0] = nearestStart;
  for (let i = first; i < end; i++) {
    // A store to a Float32Array rounds to nearest even.
    sums[(i - first) % lanes] += nearest[i];
    if (weights[i] !== nearest[i]) difference += weights[i] - nearest[i];
  }
  const pair = (lane: number): number =>
    fround(fround(sums[lane] + sums[lane + 2]) + fround(sums[lane + 4] + sums[lane + 6]));
  const sum = fround(pair(0) + pair(1));
  return difference === 0 ? sum : sum + difference;
}
