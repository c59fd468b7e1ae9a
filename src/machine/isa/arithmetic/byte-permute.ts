/**
 * What `prmt.b32` with a mode takes from the 64 bits {b, a}, whose bytes are numbered from a's lowest,
 * for the lowest two bits of its third operand: the bytes of the result, the lowest first. Source: PTX
 * ISA, instruction `prmt`.
 */
const modeBytes = {
  /** Four bytes forwards from the selected one. */
  f4e: [
    [0, 1, 2, 3],
    [1, 2, 3, 4],
    [2, 3, 4, 5],
    [3, 4, 5, 6],
  ],
  /** Four bytes backwards from the selected one. */
  b4e: [
    [0, 7, 6, 5],
    [1, 0, 7, 6],
    [2, 1, 0, 7],
    [3, 2, 1, 0],
  ],
  /** One byte four times. */
  rc8: [
    [0, 0, 0, 0],
    [1, 1, 1, 1],
    [2, 2, 2, 2],
    [3, 3, 3, 3],
  ],
  /** The bytes of a, those below the selected one replaced by it. */
  ecl: [
    [0, 1, 2, 3],
    [1, 1, 2, 3],
    [2, 2, 2, 3],
    [3, 3, 3, 3],
  ],
  /** The bytes of a, those above the selected one replaced by it. */
  ecr: [
    [0, 0, 0, 0],
    [0, 1, 1, 1],
    [0, 1, 2, 2],
    [0, 1, 2, 3],
  ],
  /** Two bytes twice. */
  rc16: [
    [0, 1, 0, 1],
    [2, 3, 2, 3],
    [0, 1, 0, 1],
    [2, 3, 2, 3],
  ],
} as const;

/** A mode of `prmt`. */
type PermuteMode = keyof typeof modeBytes;

/** The modes of `prmt`. */
export const permuteModes = Object.keys(modeBytes) as PermuteMode[];

/** A byte of {b, a} by its number from 0 to 7. */
function byteOf(a: number, b: number, number: number): number {
  return ((number < 4 ? a : b) >>> (8 * (number & 3))) & 0xff;
}

/**
 * `prmt.b32`: every byte of the result is the byte of {b, a} that the lowest three bits of a nibble of
 * `selector` name; the nibble's highest bit replaces it by eight copies of its sign. The lowest four
 * nibbles count.
 */
export function permuteBytes(a: number, b: number, selector: number): number {
  let result = 0;
  for (let position = 0; position < 4; position++) {
    const nibble = (selector >>> (4 * position)) & 0xf;
    const byte = byteOf(a, b, nibble & 7);
    const taken = nibble < 8 ? byte : -(byte >>> 7) & 0xff;
    result |= taken << (8 * position);
  }
  return result >>> 0;
}

/** `prmt.b32` with a mode, by the lowest two bits of `selector`. */
export function permuteBytesInMode(
  mode: PermuteMode,
  a: number,
  b: number,
  selector: number,
): number {
  const bytes: readonly number[] = modeBytes[mode][selector & 3];
  return bytes.reduce((word, number, i) => word | (byteOf(a, b, number) << (8 * i)), 0) >>> 0;
}
