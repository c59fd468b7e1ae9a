/** Packing of elements of less than 8 bits in memory. */
export interface ElementPacking {
  readonly name: string;
  readonly bits: 4 | 6;
  /** Adjacent elements that lie together, lowest bits first. */
  readonly elements: number;
  /** Bytes from one such group to the next: bytes that no element needs are padding. */
  readonly bytes: number;
}

/**
 * The packings of tcgen05.mma's operands in shared memory, where K is major. Source: PTX ISA 9.2, "Packing formats of elements in
 * Tensor and Shared memory" (section 9.7.16.10.4), and the names of `.b4x16_p64` and `.b6x16_p32` there: 16 elements
 * and 64 or 32 bits of padding for kind::f8f6f4 and kind::mxf8f6f4; kind::mxf4 and kind::mxf4nvf4 have no padding.
 */
export const elementPackings = {
  b4x16_p64: { name: 'b4x16_p64', bits: 4, elements: 16, bytes: 16 },
  b6x16_p32: { name: 'b6x16_p32', bits: 6, elements: 16, bytes: 16 },
  b4x2: { name: 'b4x2', bits: 4, elements: 2, bytes: 1 },
} as const satisfies Readonly<Record<string, ElementPacking>>;

/**
 * The patterns of packed elements, one a byte.
 *
 * @param packed whole groups
 * @param target receives `packed.length / bytes · elements` patterns; it may be `packed` itself where a group has as
 *   many elements as bytes
 */
export function unpackElements(
  { bits, elements, bytes }: ElementPacking,
  packed: Uint8Array,
  target: { [index: number]: number },
): void {
  const mask = 2 ** bits - 1;
  const group = new Uint8Array(bytes + 1);
  for (let first = 0, to = 0; first < packed.length; first += bytes) {
    for (let i = 0; i < bytes; i++) group[i] = packed[first + i];
    for (let i = 0; i < elements; i++) {
      const bit = i * bits;
      const word = group[bit >> 3] | (group[(bit >> 3) + 1] << 8);
      target[to++] = (word >> (bit & 7)) & mask;
    }
  }
}

/**
 * For each packed element of 4 bits the byte in which it lies, in place of its pattern: what belongs to bytes follows their elements.
 * Parameters as for `unpackElements`.
 */
export function spreadBytes(
  { bits, elements, bytes }: ElementPacking,
  packed: Uint8Array,
  target: { [index: number]: number },
): void {
  const group = new Uint8Array(bytes);
  for (let first = 0, to = 0; first < packed.length; first += bytes) {
    for (let i = 0; i < bytes; i++) group[i] = packed[first + i];
    for (let i = 0; i < elements; i++) target[to++] = group[(i * bits) >> 3];
  }
}
