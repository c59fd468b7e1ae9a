import { RequestError } from '../../request-error.js';
import type { TensorMapRequest } from './tensor-map.js';

/** The contents of the 128 bytes of a CUtensorMap, except which tensor it is for. */
export type EncodedTensorMap = Omit<TensorMapRequest, 'tensor' | 'tensorBytes' | 'byteOffset'>;

/** Bits of the second 64-bit word, from the lowest. */
const fields = {
  rank: { at: 4, bits: 3 },
  elementType: { at: 7, bits: 4 },
  interleave: { at: 11, bits: 2 },
  swizzle: { at: 13, bits: 2 },
  oobFill: { at: 15, bits: 1 },
  isTensorFloat: { at: 16, bits: 1 },
  l2Promotion: { at: 17, bits: 2 },
} as const;

/**
 * Bits that CuTe DSL sets and the driver does not: bit 1 always, bit 21 for tensors from 2^17 bytes on. They change no
 * copy.
 */
const withoutMeaning = (1 << 1) | (1 << 21);

/** CUDA's names of values by their number in the map. */
const words = {
  elementType: [
    ...(['uint8', 'uint16', 'uint32', 'int32', 'uint64', 'int64'] as const),
    ...(['float16', 'float32', 'float32_ftz', 'float64', 'bfloat16'] as const),
  ],
  interleave: ['none', '16B', '32B'],
  swizzle: ['none', '32B', '64B', '128B'],
  l2Promotion: ['none', 'L2_64B', 'L2_128B', 'L2_256B'],
  oobFill: ['none', 'NAN_REQUEST_ZERO_FMA'],
} as const;

/** The formats that the bit of tfloat32 makes of float32 with and without ftz. */
const tensorFloats: Readonly<Record<string, string>> = {
  float32: 'tfloat32',
  float32_ftz: 'tfloat32_ftz',
};

const mapBytes = 128;
const mostDimensions = 5;

/**
 * The word for a number.
 * @throws RequestError for an unknown number
 */
function wordOf(kind: keyof typeof words, number: number): string {
  const word = (words[kind] as readonly string[])[number];
  if (word === undefined)
    throw new RequestError(`its ${kind} has the number ${number}, which is not known`);
  return word;
}

/**
 * Decodes a tensor map from a kernel's parameters. Words of 64 bits, little-endian: the address; the fields of this file with the
 * stride of dimension 1 above them; the next strides, all as 16 bytes, with their bits from 32 on in the upper half of word 3;
 * the extents less 1; in the upper half of word 6 the element strides less 1, three bits each, and from bit 56 on the box less 1,
 * eight bits each. The words from 8 on are the driver's own. Source: 10,225 maps that cuTensorMapEncodeTiled of driver 580 (CUDA
 * 13.0) made; this function returns the arguments of each (fixtures/ptx/tensor-maps.json.gz).
 *
 * @param text 256 hexadecimal digits, byte by byte
 * @throws RequestError for bytes that are not such a map
 */
export function decodeTensorMap(text: string): EncodedTensorMap {
  const bytes = Uint8Array.from(text.match(/../g) ?? [], (digits) => parseInt(digits, 16));
  if (bytes.length !== mapBytes || text.length !== 2 * mapBytes)
    throw new RequestError(`has ${text.length} digits; give the 256 of its 128 bytes`);
  return decodeTensorMapBytes(bytes);
}

/** Decodes the 128 bytes themselves. @throws RequestError for bytes that are not such a map */
export function decodeTensorMapBytes(bytes: Uint8Array): EncodedTensorMap {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const half = (index: number) => view.getUint32(4 * index, true);
  const flags = half(2);
  const field = (name: keyof typeof fields) =>
    (flags >>> fields[name].at) & ((1 << fields[name].bits) - 1);
  const known = Object.values(fields).reduce(
    (all, { at, bits }) => all | (((1 << bits) - 1) << at),
    withoutMeaning,
  );
  const [highStrides, boxAndStrides, unused] = [half(7), half(13), half(15)];
  if ((flags & ~known) !== 0 || highStrides >>> 16 !== 0 || unused !== 0)
    throw new RequestError(
      'has bits set that no tiled map has; give one of cuTensorMapEncodeTiled',
    );
  const rank = field('rank') + 1;
  if (rank > mostDimensions)
    throw new RequestError(`has ${rank} dimensions; a map has at most ${mostDimensions}`);
  const dimensions = Array.from({ length: rank }, (_, i) => i);
  const plain = wordOf('elementType', field('elementType'));
  const elementType = field('isTensorFloat') === 1 ? tensorFloats[plain] : plain;
  if (elementType === undefined) throw new RequestError(`has tensor floats of ${plain}`);
  return {
    elementType,
    globalDim: dimensions.map((i) => half(8 + i) + 1),
    globalStrides: dimensions
      .slice(1)
      .map((_, i) => 16 * (half(3 + i) + 2 ** 32 * ((highStrides >>> (4 * i)) & 15))),
    boxDim: dimensions.map((i) => view.getUint8(55 + i) + 1),
    elementStrides: dimensions.map((i) => ((boxAndStrides >>> (3 * i)) & 7) + 1),
    interleave: wordOf('interleave', field('interleave')),
    swizzle: wordOf('swizzle', field('swizzle')),
    l2Promotion: wordOf('l2Promotion', field('l2Promotion')),
    oobFill: wordOf('oobFill', field('oobFill')),
  };
}
