/** The finalizer of MurmurHash3: a bijection of 32-bit words that spreads every bit. */
export function mix(word: number): number {
  let hash = word;
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x85ebca6b);
  hash ^= hash >>> 13;
  hash = Math.imul(hash, 0xc2b2ae35);
  hash ^= hash >>> 16;
  return hash >>> 0;
}

/** A hash of 32-bit words in their order. */
export function hashOf(words: Uint32Array): number {
  return words.reduce((hash, word) => (mix(hash ^ word) + 0x9e3779b9) >>> 0, 0x811c9dc5);
}

/** fp32 zeros, subnormals, ties, ends of integer ranges, infinities and NaNs; shift amounts; −2^31. */
export const specialWords: readonly number[] = [
  0x00000000, 0x00000001, 0x007fffff, 0x00800000, 0x3effffff, 0x3f000000, 0x3f000001, 0x3fc00000,
  0x40200000, 0x4b000001, 0x4effffff, 0x4f000000, 0x4f7fffff, 0x4f800000, 0x7f7fffff, 0x7f800000,
  0x7f800001, 0x7fc00000, 0x7fffffff, 0x00000020, 0x0000001f, 0x000000ff, 0x00000100, 0x80000000,
];

export const patternCount = 2 ** 14;
const seed = 20261121;

/** A word as it is, or made small, special, an fp32 number near the integers or a small exponent. */
function shaped(word: number, kind: number): number {
  const field = (word >>> 23) & 0xff;
  if (kind === 1) return word & 0x3f;
  if (kind === 2) return specialWords[word % 24] | (word & 0x80000000);
  if (kind === 3) return (word & 0x807fffff) | ((0x7e + (field % 0x24)) << 23);
  if (kind === 4) return (word & 0x807fff00) | ((0x7e + (field % 8)) << 23);
  if (kind === 5) return word & 0x80ffffff;
  return word;
}

/** Four words for each pattern; the same as in arithmetic-silicon.cu, word for word. */
export function operandPatterns(): Uint32Array {
  const operands = new Uint32Array(4 * patternCount);
  for (let i = 0; i < patternCount; i++) {
    const base = mix(seed + Math.imul(i, 0x9e3779b9));
    for (let k = 0; k < 4; k++)
      operands[4 * i + k] = shaped(
        mix(base + Math.imul(k + 1, 0x6a09e667)),
        (base >>> (8 * k)) & 7,
      );
    if (base >>> 28 === 0) operands[4 * i + 1] = operands[4 * i];
    if (base >>> 28 === 1) operands[4 * i + 1] = operands[4 * i] ^ 0x80000000;
  }
  return operands;
}
