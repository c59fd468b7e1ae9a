import { hostileIntegers } from './hostile-values.js';
import type { Random } from './random.js';

type ByteChange = (bytes: Buffer, at: number, random: Random) => Buffer;

/** Bytes that UTF-8 has nowhere, or nowhere alone: a stray continuation, an overlong NUL, a surrogate. */
const brokenUtf8: readonly Buffer[] = [
  ...[[0x80], [0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82]],
  [0xef, 0xbb, 0xbf],
].map((bytes) => Buffer.from(bytes));

/** Writes the low bytes of a hostile integer over what is there, little-endian. */
export function overwriteInteger(bytes: Buffer, at: number, width: number, value: bigint): Buffer {
  for (let byte = 0; byte < width && at + byte < bytes.length; byte++)
    bytes[at + byte] = Number((value >> BigInt(8 * byte)) & 0xffn);
  return bytes;
}

const flipBit: ByteChange = (bytes, at, random) => {
  if (at < bytes.length) bytes[at] ^= 1 << random.below(8);
  return bytes;
};

const changes: readonly ByteChange[] = [
  ...[flipBit, flipBit, flipBit],
  (bytes, at) => bytes.subarray(0, at),
  (bytes, at, random) => {
    if (at < bytes.length) bytes[at] = random.below(256);
    return bytes;
  },
  (bytes, at, random) =>
    overwriteInteger(bytes, at, random.pick([1, 2, 4, 8]), random.pick(hostileIntegers)),
  (bytes, at, random) =>
    bytes.fill(random.pick([0, 0xff, 0x20]), at, Math.min(bytes.length, at + random.below(64))),
  (bytes, at, random) =>
    Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + random.below(32))]),
  (bytes, at, random) =>
    Buffer.concat([
      bytes.subarray(0, Math.min(bytes.length, at + random.below(64))),
      bytes.subarray(at),
    ]),
  (bytes, at, random) =>
    Buffer.concat([bytes.subarray(0, at), random.pick(brokenUtf8), bytes.subarray(at)]),
  (bytes, at, random) =>
    Buffer.concat([
      bytes.subarray(0, at),
      Buffer.alloc(random.pick([1, 8, 5000]), random.below(256)),
    ]),
];

/** The bytes after one to three changes anywhere: cut, flipped, overwritten, taken out, put in. */
export function mutatedBytes(valid: Uint8Array, random: Random): Buffer {
  let bytes: Buffer = Buffer.from(valid);
  for (let change = random.below(3); change >= 0; change--)
    bytes = Buffer.from(random.pick(changes)(bytes, random.below(bytes.length + 1), random));
  return bytes;
}
