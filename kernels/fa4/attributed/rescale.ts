/** value · α in fp32, at the fp32 number nearest to value, plus what the difference contributes. */
export function emulatedRescale(value: number, alpha: number): number {
  const nearest = Math.fround(value);
  const product = Math.fround(nearest * alpha);
  return value === nearest ? product : product + (value - nearest) * alpha;
}
