import type { WordRounding } from './word-rounding.js';

/**
 * Rounds the numbers in the first `count` words as planned and writes their bit patterns from
 * `outStart` on in `out`, in integer arithmetic alone. Equal to `encode` of each number.
 */
export function roundWords(
  plan: WordRounding,
  words: Uint32Array,
  count: number,
  out: Uint8Array | Uint16Array | Uint32Array,
  outStart: number,
): void {
  const { fractionBits, infinityWord, rebias, realignBelow, drop, nearest } = plan;
  const { largest, padding, nan, signs } = plan;
  const hiddenBit = 1 << fractionBits;
  const fractionMask = hiddenBit - 1;
  const rebiasWord = rebias << fractionBits;

  for (let i = 0; i < count; i++) {
    const word = words[i];
    const magnitude = word & 0x7fffffff;
    const sign = signs[word >>> 31];
    let result: number;
    if (magnitude >= infinityWord) {
      result = magnitude === infinityWord ? sign.infinityResult : nan;
    } else if (magnitude < sign.flushBelow) {
      result = sign.bit;
    } else {
      let aligned = magnitude - rebiasWord;
      let shift = drop;
      if (magnitude < realignBelow) {
        shift += rebias + 1 - (magnitude >>> fractionBits);
        aligned = (magnitude & fractionMask) | hiddenBit;
        if (shift > fractionBits + 1) {
          // Less than half of the smallest subnormal: zero and a nonzero remainder, or zero itself.
          shift = 2;
          aligned = magnitude === 0 ? 0 : 1;
        }
      }
      const ones = (1 << shift) - 1;
      const increment = nearest
        ? (ones >>> 1) + ((aligned >>> shift) & 1)
        : ones & sign.awayFromZero;
      const rounded = (aligned + increment) >>> shift;
      result = rounded > largest ? sign.overflowResult : (rounded << padding) | sign.bit;
    }
    out[outStart + i] = result;
  }
}
