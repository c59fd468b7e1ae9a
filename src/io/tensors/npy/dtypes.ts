import {
  type DtypeFacts,
  floatDtype,
  integerDtype,
  opaqueDtype,
  rawDtype,
  truthDtype,
} from '../dtype.js';

/** The dtype in the descr of an npy header. */
export interface NpyDtype extends DtypeFacts {
  readonly bigEndian: boolean;
}

/**
 * Kinds and item sizes in bytes, as in numpy's array-protocol type strings without the byte order. numpy.save writes
 * V and f1 for the types of the ml_dtypes package: V2 for bfloat16, f1 for float8_e5m2, and V1 for float8_e4m3fn and
 * for most of its other 8-bit and narrower types, so that V1 is ambiguous.
 */
const sizedKinds: ReadonlyMap<string, DtypeFacts> = new Map([
  ['b1', truthDtype],
  ['f1', floatDtype('e5m2')],
  ['f2', floatDtype('fp16')],
  ['f4', floatDtype('fp32')],
  ['f8', floatDtype('fp64')],
  ['V1', rawDtype(8, 'opaque bytes')],
  ['V2', rawDtype(16, 'opaque byte pairs', 'bf16')],
  ['u1', integerDtype('uint8')],
  ['i1', integerDtype('int8')],
  ['u2', integerDtype('uint16')],
  ['i2', integerDtype('int16')],
  ['u4', integerDtype('uint32')],
  ['i4', integerDtype('int32')],
  ['u8', integerDtype('uint64')],
  ['i8', integerDtype('int64')],
]);

/** Kinds that are legal at any item size: their contents, and bytes per unit of the size. */
const otherKinds: ReadonlyMap<string, readonly [holds: string, unitBytes: number]> = new Map([
  ['f', ['extended-precision numbers', 1]],
  ['c', ['complex numbers', 1]],
  ['b', ['booleans', 1]],
  ['i', ['integers', 1]],
  ['u', ['unsigned integers', 1]],
  ['m', ['time spans', 1]],
  ['M', ['dates', 1]],
  ['S', ['byte strings', 1]],
  ['a', ['byte strings', 1]],
  ['U', ['text', 4]],
  ['V', ['opaque bytes', 1]],
]);

/** Names that programs write in place of a type string because that would be ambiguous. */
const namedTypes: ReadonlyMap<string, DtypeFacts> = new Map([
  ['bfloat16', floatDtype('bf16')],
  ['float8_e4m3fn', floatDtype('e4m3')],
  ['float8_e5m2', floatDtype('e5m2')],
]);

const savePlain = 'save a plain array of one number type';

/** Facts of an object array, whose elements are pickled and are never read. */
const objectDtype = opaqueDtype(null, 'pickled Python objects', savePlain);

/** Facts of a structured array, whose elements are records. */
export const structuredDtype = opaqueDtype(null, 'structured records', savePlain);

/**
 * The dtype of an npy type string: byte order (`<`, `>`, `=`, `|` or none; the last three are taken as
 * little-endian, the order of every host this runs on), kind, and item size. Null when it is invalid.
 */
export function npyDtype(descr: string): NpyDtype | null {
  const named = namedTypes.get(descr);
  if (named !== undefined) return { ...named, bigEndian: false };
  const match = /^([<>=|]?)([A-Za-z])([0-9]{0,9})(\[[0-9A-Za-z]{1,20}\])?$/.exec(descr);
  if (match === null) return null;
  const [, order, kind, size] = match;
  const bigEndian = order === '>';
  if (kind === 'O') return { ...objectDtype, bigEndian };
  const sized = sizedKinds.get(`${kind}${size}`);
  if (sized !== undefined) return { ...sized, bigEndian };
  const other = otherKinds.get(kind!);
  if (other === undefined || size === '') return null;
  return { ...opaqueDtype(Number(size) * other[1] * 8, other[0]), bigEndian };
}
