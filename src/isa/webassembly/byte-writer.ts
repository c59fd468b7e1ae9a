/** Writer of the bytes of a WebAssembly module. */
export interface ByteWriter {
  /** One byte, from 0 to 255. */
  readonly byte: (value: number) => void;
  /** A whole number from 0 to 2^32 − 1 in LEB128. */
  readonly unsigned: (value: number) => void;
  /** A whole number from −2^31 to 2^31 − 1 in signed LEB128. */
  readonly signed: (value: number) => void;
  readonly bytes: (values: ArrayLike<number>) => void;
  /** Number of bytes written. */
  readonly length: () => number;
  /** A view of the written bytes; valid until the next byte is written. */
  readonly written: () => Uint8Array<ArrayBuffer>;
}

const firstCapacity = 256;

/** An empty writer; it grows. */
export function createByteWriter(): ByteWriter {
  let buffer = new Uint8Array(firstCapacity);
  let length = 0;
  const reserve = (count: number): void => {
    if (length + count <= buffer.length) return;
    const larger = new Uint8Array(Math.max(2 * buffer.length, length + count));
    larger.set(buffer);
    buffer = larger;
  };
  const byte = (value: number): void => {
    reserve(1);
    buffer[length++] = value;
  };
  return {
    byte,
    unsigned: (value) => {
      let rest = value;
      for (; rest > 0x7f; rest >>>= 7) byte((rest & 0x7f) | 0x80);
      byte(rest);
    },
    signed: (value) => {
      let rest = value;
      for (; rest < -0x40 || rest > 0x3f; rest >>= 7) byte((rest & 0x7f) | 0x80);
      byte(rest & 0x7f);
    },
    bytes: (values) => {
      reserve(values.length);
      buffer.set(values, length);
      length += values.length;
    },
    length: () => length,
    written: () => buffer.subarray(0, length),
  };
}
