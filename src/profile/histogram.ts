/**
 * The bins of the ulp errors' histogram: bin 0 below 1/8 ulp, then two bins to an octave, [2^k,
 * 1.5·2^k) and [1.5·2^k, 2^(k + 1)), and all from 2^28 ulps on in the last.
 */
export const binCount = 64;

const firstExponent = -3;

/** The lower edge of a bin, in ulps; 0 for bin 0. */
export function binStart(bin: number): number {
  if (bin === 0) return 0;
  const octave = 2 ** (firstExponent + Math.floor((bin - 1) / 2));
  return bin % 2 === 1 ? octave : 1.5 * octave;
}

/** The bin of a non-negative ulp error. */
export function binOf(ulps: number): number {
  let bin = binCount - 1;
  while (ulps < binStart(bin)) bin--;
  return bin;
}
