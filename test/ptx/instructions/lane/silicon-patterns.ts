import { mix, specialWords } from '../../../machine/arithmetic/patterns.js';

/** Operands of each pattern: no instruction has more. */
export const operandsPerPattern = 5;
export const patternCount = 4096;
const seed = 20261123;

const specialHalves: readonly number[] = [
  ...[
    0x0000, 0x0001, 0x03ff, 0x0400, 0x3800, 0x3bff, 0x3c00, 0x3c01, 0x4200, 0x7bff, 0x7c00, 0x7c01,
  ],
  ...[
    0x7e00, 0x7fff, 0x0080, 0x007f, 0x3f00, 0x3f7f, 0x3f80, 0x3f81, 0x4040, 0x7f7f, 0x7f80, 0x7f81,
  ],
];

const specialDoubles: readonly (readonly [number, number])[] = [
  [0, 0],
  [0, 1],
  [0x000fffff, 0xffffffff],
  [0x00100000, 0],
  [0x36a00000, 0],
  [0x380fffff, 0xf0000000],
  [0x3fe00000, 0],
  [0x3ff00000, 0],
  [0x3ff00000, 1],
  [0x40040000, 0],
  [0x41dfffff, 0xffc00000],
  [0x41f00000, 0],
  [0x43e00000, 0],
  [0x47efffff, 0xf0000000],
  [0x7fefffff, 0xffffffff],
  [0x7ff00000, 0],
  [0x7ff00000, 1],
  [0x7ff80000, 0],
  [0x7ff80123, 0x45678901],
];

const sign = 0x80000000;

/** The high and the low word of an operand of a kind, from three random words. */
function shaped(kind: number, a: number, b: number, c: number): readonly [number, number] {
  const exponent = 0x3c0 + ((c >>> 8) % 0x80);
  switch (kind) {
    case 1:
      return [
        specialWords[a % specialWords.length] ^ (a & sign),
        specialWords[b % specialWords.length] ^ (b & sign),
      ];
    case 2: {
      const [high, low] = specialDoubles[a % specialDoubles.length];
      return [high ^ (b & sign), low];
    }
    case 3: {
      const half = (word: number) =>
        specialHalves[word % specialHalves.length] | ((word >>> 16) & 0x8000);
      return [(half(a) << 16) | half(b), (half(c) << 16) | half(mix(c))];
    }
    case 4:
      return [0, a % 70];
    case 5:
      return [(a & 0x800fffff) | (exponent << 20), (b & 0x807fffff) | ((100 + (c % 56)) << 23)];
    case 6: {
      const half = (word: number) => (word & 0x83ff) | ((8 + ((word >>> 16) % 14)) << 10);
      return [(half(a) << 16) | half(b), (half(c) << 16) | half(mix(c))];
    }
    case 7:
      return [0xffffffff, ~(a % 70)];
    default:
      return [a, b];
  }
}

/** The operands of all patterns, [pattern][operand]; some of a pattern are equal or opposite. */
export function siliconPatterns(): BigUint64Array {
  const operands = new BigUint64Array(operandsPerPattern * patternCount);
  for (let pattern = 0; pattern < patternCount; pattern++) {
    const base = mix(seed + Math.imul(pattern, 0x9e3779b9));
    const at = operandsPerPattern * pattern;
    for (let k = 0; k < operandsPerPattern; k++) {
      const words = [1, 2, 3].map((n) => mix(base + Math.imul(8 * k + n, 0x6a09e667)));
      // Half of the patterns have operands of one kind, the others mixed ones.
      const kind = (base & 8 ? base : mix(base + k)) & 7;
      const [high, low] = shaped(kind, words[0], words[1], words[2]);
      operands[at + k] = (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
    }
    if (base >>> 28 === 0) operands[at + 1] = operands[at];
    if (base >>> 28 === 1) operands[at + 1] = operands[at] ^ 0x8000800080008000n;
    if (base >>> 28 === 2) operands[at + 2] = operands[at + 1];
  }
  return operands;
}
