import { RequestError } from '../../../request-error.js';
import type { ReadBytes } from '../column-major.js';
import {
  floatDtype,
  integerDtype,
  opaqueDtype,
  rawDtype,
  truthDtype,
  type DtypeFacts,
} from '../dtype.js';
import { printable, quoted } from '../messages.js';
import { dimensionOf, elementCount, maxRank } from '../named-tensors.js';
import { parsePythonLiteral, type PythonLiteral } from './python-literal.js';

/** The dtype in the descr of an npy header. */
interface NpyDtype extends DtypeFacts {
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
const structuredDtype = opaqueDtype(null, 'structured records', savePlain);

/**
 * The dtype of an npy type string: byte order (`<`, `>`, `=`, `|` or none; the last three are taken as
 * little-endian, the order of every host this runs on), kind, and item size. Null when it is invalid.
 */
function npyDtype(descr: string): NpyDtype | null {
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

/** The header of an npy array, checked. */
interface NpyHeader {
  /** The type string of the elements, or "structured". */
  readonly descr: string;
  readonly dtype: NpyDtype;
  readonly columnMajor: boolean;
  readonly shape: readonly number[];
  readonly elements: number;
  /** Offset of the first element from the start of the array's bytes. */
  readonly dataStart: number;
  /** Bytes of all elements. */
  readonly byteLength: number;
}

/** The first six bytes of every npy array. */
export const npyMagic = Uint8Array.of(0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59);

/** Versions of the format: bytes of the header's length field, and the header's encoding. */
const versions: ReadonlyMap<string, readonly [lengthBytes: number, encoding: string]> = new Map([
  ['1.0', [2, 'latin1']],
  ['2.0', [4, 'latin1']],
  ['3.0', [4, 'utf-8']],
]);

/** The longest header that is read. Those of plain arrays take 118 bytes. */
const maxHeaderBytes = 1 << 20;

const saveAgain = 'save it again with numpy.save';

type Refuse = (what: string, mend?: string) => never;

function shapeFrom(literal: PythonLiteral | undefined, refuse: Refuse): number[] {
  if (literal?.kind !== 'tuple') return refuse('shape in the npy header is no tuple');
  if (literal.items.length > maxRank)
    refuse(`rank ${literal.items.length} is above ${maxRank}`, 'reshape it before saving');
  return literal.items.map((item) => {
    const dimension = item.kind === 'number' ? dimensionOf(item.spelling) : null;
    return (
      dimension ??
      refuse('shape in the npy header holds a value that is no whole number from 0 to 2^53 - 1')
    );
  });
}

function dtypeFrom(
  literal: PythonLiteral | undefined,
  refuse: Refuse,
): readonly [string, NpyDtype] {
  if (literal?.kind === 'list') return ['structured', { ...structuredDtype, bigEndian: false }];
  if (literal?.kind !== 'string') return refuse('descr in the npy header is no type string');
  const dtype = npyDtype(literal.value);
  return dtype === null
    ? refuse(`descr ${quoted(literal.value)} in the npy header is no type of numpy`)
    : [literal.value, dtype];
}

function parseHeader(
  text: string,
  dataStart: number,
  totalBytes: number,
  refuse: Refuse,
): NpyHeader {
  const literal = parsePythonLiteral(text, (what) => refuse(`in the npy header, ${what}`));
  if (literal.kind !== 'dict') return refuse('the npy header is no dict');
  const { entries } = literal;
  for (const key of entries.keys())
    if (key !== 'descr' && key !== 'fortran_order' && key !== 'shape')
      refuse(`the npy header has an unknown key ${quoted(key)}`);
  const [descr, dtype] = dtypeFrom(entries.get('descr'), refuse);
  const order = entries.get('fortran_order');
  if (order?.kind !== 'name' || order.name === 'None')
    return refuse('fortran_order in the npy header is neither True nor False');
  const shape = shapeFrom(entries.get('shape'), refuse);
  const elements = elementCount(shape);
  const present = totalBytes - dataStart;
  const promised = elements === null ? null : (elements * (dtype.bits ?? 0)) / 8;
  if (elements === null || promised === null || promised > Number.MAX_SAFE_INTEGER)
    return refuse(`shape (${shape.join(', ')}) has too many elements to count`);
  // The elements of a compound dtype are not measured: they are not read.
  const byteLength = dtype.bits === null ? present : promised;
  const mismatch = `shape (${shape.join(', ')}) of ${printable(descr)} takes ${byteLength} bytes, but ${present} follow the header`;
  if (present < byteLength) refuse(mismatch, 'the array is cut short: copy or save it again');
  if (present > byteLength) refuse(mismatch, `remove the trailing bytes, or ${saveAgain}`);
  const columnMajor = order.name === 'True';
  return { descr, dtype, columnMajor, shape, elements, dataStart, byteLength };
}

/**
 * Reads and checks the header of an npy array: format versions 1.0, 2.0 and 3.0, in any spelling
 * that numpy writes. Nothing in it is evaluated, and no memory is taken by an unchecked length.
 * @param where the beginning of a message, naming the file and the tensor
 * @param totalBytes bytes of the whole array, header and elements
 * @throws RequestError when the header breaks the format or disagrees with `totalBytes`
 */
export async function readNpyHeader(
  read: ReadBytes,
  totalBytes: number,
  where: string,
): Promise<NpyHeader> {
  const refuse: Refuse = (what, mend = saveAgain) => {
    throw new RequestError(`${where}: ${printable(what)}; ${mend}`);
  };
  const cutShort = 'the npy header is cut short';
  if (totalBytes < npyMagic.length + 4) refuse(cutShort, 'copy or save it again');
  const prefix = new Uint8Array(npyMagic.length + 2);
  await read(prefix, 0);
  if (npyMagic.some((byte, i) => byte !== prefix[i])) refuse('does not begin as npy arrays do');
  const version = `${prefix[6]}.${prefix[7]}`;
  const layout = versions.get(version);
  if (layout === undefined)
    return refuse(`npy format version ${version} is none of ${[...versions.keys()].join(', ')}`);
  const [lengthBytes, encoding] = layout;
  const headerStart = prefix.length + lengthBytes;
  if (totalBytes < headerStart) refuse(cutShort, 'copy or save it again');
  const field = new Uint8Array(4);
  await read(field.subarray(0, lengthBytes), prefix.length);
  const length = new DataView(field.buffer).getUint32(0, true);
  if (length > maxHeaderBytes)
    refuse(`claims an npy header of ${length} bytes, above the limit of ${maxHeaderBytes}`);
  if (headerStart + length > totalBytes)
    refuse(
      `claims an npy header of ${length} bytes, but only ${totalBytes - headerStart} follow`,
      'the array is cut short: copy or save it again',
    );
  const bytes = new Uint8Array(length);
  await read(bytes, headerStart);
  let text: string;
  try {
    text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return refuse('the npy header is no valid UTF-8');
  }
  return parseHeader(text, headerStart + length, totalBytes, refuse);
}
