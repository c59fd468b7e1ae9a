import { RequestError } from '../../../request-error.js';
import type { ReadBytes } from '../column-major.js';
import { printable, quoted } from '../messages.js';
import { npyDtype, type NpyDtype, structuredDtype } from './dtypes.js';
import { parsePythonLiteral, type PythonLiteral } from './python-literal.js';
import { dimensionOf, elementCount, maxRank } from '../named-tensors.js';

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
