/** A field of the 128 bytes of a tensor map: its place, and the values that it takes. */
interface MapField {
  /** Whether there is one field for each dimension, counted from 0. */
  readonly isOfDimension: boolean;
  /** The least and the greatest value. */
  readonly range: readonly [least: bigint, greatest: bigint];
  readonly write: (view: DataView, value: bigint, dimension: number) => void;
}

/** Sets bits of the little-endian word at a byte. */
function setBits(view: DataView, byte: number, at: number, bits: number, value: bigint): void {
  const mask = ((1 << bits) - 1) << at;
  const word = view.getUint32(byte, true);
  view.setUint32(byte, (word & ~mask) | (Number(value) << at), true);
}

const flags = 8;
const flag = (
  at: number,
  bits: number,
  greatest: number,
  meaning = (value: bigint) => value,
): MapField => ({
  isOfDimension: false,
  range: [0n, BigInt(greatest)],
  write: (view, value) => setBits(view, flags, at, bits, meaning(value)),
});
const ofDimension = (range: MapField['range'], write: MapField['write']): MapField => ({
  isOfDimension: true,
  range,
  write,
});

/** The element types tf32 and tf32 with ftz, which are stored as the number of float32 with a bit of their own. */
const [tensorFloat, tensorFloatFtz, floatNumber] = [11n, 12n, 7n];

/**
 * The fields of `tensormap.replace`. Source: PTX ISA, "tensormap.replace"; their places are as in `decodeTensorMap`.
 */
const mapFields: Readonly<Record<string, MapField>> = {
  global_address: {
    isOfDimension: false,
    range: [0n, 2n ** 64n - 1n],
    write: (view, value) => view.setBigUint64(0, value, true),
  },
  // Given minus 1, as it is stored.
  rank: flag(4, 3, 4),
  box_dim: ofDimension([1n, 256n], (view, value, i) => view.setUint8(55 + i, Number(value - 1n))),
  global_dim: ofDimension([1n, 2n ** 32n], (view, value, i) =>
    view.setUint32(32 + 4 * i, Number(value - 1n), true),
  ),
  // The stride of dimension i + 1, in bytes.
  global_stride: ofDimension([0n, 2n ** 40n - 1n], (view, value, i) => {
    view.setUint32(12 + 4 * i, Number((value >> 4n) & 0xffffffffn), true);
    setBits(view, 28, 4 * i, 4, value >> 36n);
  }),
  element_stride: ofDimension([1n, 8n], (view, value, i) =>
    setBits(view, 52, 3 * i, 3, value - 1n),
  ),
  elemtype: {
    isOfDimension: false,
    range: [0n, tensorFloatFtz],
    write: (view, value) => {
      const isTensorFloat = value >= tensorFloat;
      setBits(view, flags, 7, 4, isTensorFloat ? value - tensorFloat + floatNumber : value);
      setBits(view, flags, 16, 1, isTensorFloat ? 1n : 0n);
    },
  },
  interleave_layout: flag(11, 2, 2),
  swizzle_mode: flag(13, 2, 3),
  fill_mode: flag(15, 1, 1),
};

/** Whether a field of `tensormap.replace` names a dimension; null for an unknown field. */
export function tensorMapField(name: string): Pick<MapField, 'isOfDimension'> | null {
  return Object.hasOwn(mapFields, name) ? mapFields[name] : null;
}

/**
 * Replaces a field of a tensor map, in place. Values are those of the instruction: extents, boxes and strides of elements unchanged,
 * strides in bytes, the rank less 1, enumerations by their numbers. (Assemblers before CUDA 12.5 took strides over 16.)
 *
 * @param bytes the 128 bytes
 * @param change `dimension` is the operand's; `global_stride` counts from dimension 1
 * @returns the fault of the value, for a message; null where it has been replaced
 */
export function replaceTensorMapField(
  bytes: Uint8Array,
  {
    field,
    dimension,
    value,
  }: { readonly field: string; readonly dimension: number; readonly value: bigint },
): string | null {
  const { range, write, isOfDimension } = mapFields[field];
  const [least, greatest] = range;
  const dimensions = field === 'global_stride' ? 4 : 5;
  if (isOfDimension && (dimension < 0 || dimension >= dimensions))
    return `names dimension ${dimension} of ${field}; from 0 to ${dimensions - 1} are there`;
  if (value < least || value > greatest)
    return `gives ${field} ${value}; from ${least} to ${greatest} are there`;
  if (field === 'global_stride' && value % 16n !== 0n)
    return `gives a stride of ${value} bytes; a multiple of 16 is due`;
  write(new DataView(bytes.buffer, bytes.byteOffset), value, dimension);
  return null;
}
