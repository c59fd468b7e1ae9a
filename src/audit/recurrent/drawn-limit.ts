/**
 * log of the bound on the probability that a sum of squares with one degree of freedom exceeds τ² times the mean of `draws`
 * such sums: √τ² ((R + 1)/(R + τ²))^((R + 1)/2). docs/theory/bounds-recurrent.md proves it.
 */
function logProbability(square: number, draws: number): number {
  return 0.5 * Math.log(square) - ((draws + 1) / 2) * Math.log((draws + square) / (draws + 1));
}

/**
 * τ: the root mean square of errors exceeds τ times that of `draws` drawn ones with at most this probability.
 * @param freedom tr Σ / ‖Σ‖ of the errors' covariance Σ, or less: 1 for a single error or one linear statistic
 */
export function drawnLimit(probability: number, draws: number, freedom = 1): number {
  const wanted = Math.log(probability) / Math.max(1, freedom);
  let [low, high] = [1, 4];
  while (logProbability(high, draws) > wanted) high *= 2;
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (logProbability(middle, draws) > wanted) low = middle;
    else high = middle;
  }
  return Math.sqrt(high);
}
