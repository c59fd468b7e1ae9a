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

/** One step of a running hash over 32-bit words. */
export function hashWord(hash: number, word: number): number {
  return (mix(hash ^ word) + 0x9e3779b9) >>> 0;
}

export const hashStart = 0x811c9dc5;

const specials = [
  0x00000000, 0x00000001, 0x00000002, 0x00400000, 0x007fffff, 0x00800000, 0x00800001, 0x00ffffff,
  0x33000000, 0x33800000, 0x3effffff, 0x3f000000, 0x3f7fffff, 0x3f800000, 0x3f800001, 0x3fffffff,
  0x40000000, 0x4b000000, 0x4b800000, 0x7f000000, 0x7f7ffffe, 0x7f7fffff, 0x7f800000, 0x7fc00000,
];

function clampExponent(exponent: number): number {
  return Math.min(Math.max(exponent, 0), 254);
}

function assemble(sign: number, exponent: number, fraction: number): number {
  return ((sign << 31) | (clampExponent(exponent) << 23) | (fraction & 0x7fffff)) >>> 0;
}

/** A fraction as it is, or with its low end cleared or filled, or with few bits set. */
function shapeFraction(fraction: number, kind: number, length: number): number {
  const low = length >= 23 ? 0x7fffff : (1 << length) - 1;
  if (kind === 1) return fraction & ~low;
  if (kind === 2) return fraction | low;
  if (kind === 3) return (0x800000 >> (length % 24)) & 0x7fffff;
  if (kind === 4) return ~low & 0x7fffff;
  return kind === 5 ? low : fraction;
}

/**
 * Writes into out the bits of three fp32 operands, a function of seed and index alone; the same as
 * in float32-silicon.cu, word for word. By index mod 8: any bits; cancellation; exponents 22 to 60
 * apart; products near 2^0; products near overflow; subnormals and the smallest normals; exponents
 * of products within range; specials. The third operand is placed around the product of the other
 * two, in half the patterns near it and with opposite sign in half.
 */
export function float32Pattern(seed: number, index: number, out: Uint32Array): void {
  const base = mix(seed + Math.imul(index, 0x9e3779b9));
  const word = (k: number): number => mix(base + Math.imul(k + 1, 0x6a09e667));
  const words = [word(0), word(1), word(2)];
  const signs = word(3);
  const shape = word(4);
  const gaps = word(5);
  let [exponentA, exponentB, exponentC] = words.map((bits) => (bits >>> 23) & 255);
  const fractions = words.map((bits, k) =>
    shapeFraction(bits, (shape >>> (3 * k)) & 7, (shape >>> (9 + 5 * k)) & 31),
  );
  const near = (gaps & 3) - 1;
  const far = 22 + (((gaps >>> 2) & 0xff) % 39);
  const nearC = (((gaps >>> 10) & 0xff) % 7) - 3;
  const farC = (((gaps >>> 18) & 0xff) % 121) - 60;
  const signA = signs & 1;
  let signB = (signs >>> 1) & 1;
  let signC = (signs >>> 2) & 1;
  const wide = ((signs >>> 3) & 1) === 1;
  const same = ((signs >>> 4) & 1) === 1;
  const kind = index & 7;
  if (kind === 1) {
    exponentB = exponentA + near;
    signB = signA ^ 1;
    if (same) fractions[1] = fractions[0] ^ (fractions[1] & 15);
  } else if (kind === 2) {
    exponentB = wide ? exponentA - far : exponentA + far;
  } else if (kind === 3) {
    exponentB = 127 - exponentA + near;
  } else if (kind === 4) {
    exponentB = 381 - exponentA + near;
  } else if (kind === 5) {
    exponentA &= 3;
    exponentB &= 3;
    exponentC &= 3;
  } else if (kind === 6) {
    exponentA = 64 + (exponentA & 127);
    exponentB = 64 + (exponentB & 127);
  }
  if (kind !== 0 && kind !== 5) {
    exponentC = clampExponent(exponentA) + clampExponent(exponentB) - 127 + (wide ? farC : nearC);
    if (index & 8) signC = signA ^ signB ^ 1;
  }
  out[0] = assemble(signA, exponentA, fractions[0]);
  out[1] = assemble(signB, exponentB, fractions[1]);
  out[2] = assemble(signC, exponentC, fractions[2]);
  if (kind === 7) {
    out[0] = specials[words[0] % 24] | (signA << 31);
    if (wide) out[1] = specials[words[1] % 24] | (signB << 31);
    if (same) out[2] = specials[words[2] % 24] | (signC << 31);
  }
}
