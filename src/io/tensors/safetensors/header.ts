import { type DtypeFacts, floatDtype, integerDtype, opaqueDtype, truthDtype } from '../dtype.js';
import type { WrittenType } from '../element-storage.js';
import { RequestError } from '../../../request-error.js';
import { JsonCursor } from './json-cursor.js';
import { listed, printable, quoted, tensorIn } from '../messages.js';
import { dimensionOf, elementCount, maxRank } from '../named-tensors.js';

const scaled = 'leave it out, or dequantize it to F32 before saving';

/**
 * Every dtype of the safetensors format (`Dtype` of the reference implementation, version 0.8), in
 * its order: the reference lays tensors out by descending position in this list, then by name.
 */
export const safetensorsDtypes: ReadonlyMap<string, DtypeFacts> = new Map([
  ['BOOL', truthDtype],
  ['F4', floatDtype('e2m1')],
  ['F6_E2M3', opaqueDtype(6, 'packed MXFP6 E2M3 elements', scaled)],
  ['F6_E3M2', opaqueDtype(6, 'packed MXFP6 E3M2 elements', scaled)],
  ['U8', integerDtype('uint8')],
  ['I8', integerDtype('int8')],
  ['F8_E5M2', floatDtype('e5m2')],
  ['F8_E4M3', floatDtype('e4m3')],
  // Exponents, which `readScales` takes as whole numbers.
  ['F8_E8M0', { ...opaqueDtype(8, 'E8M0 block scales', scaled), whole: 'uint8' }],
  ['F8_E4M3FNUZ', opaqueDtype(8, 'E4M3 FNUZ numbers')],
  ['F8_E5M2FNUZ', opaqueDtype(8, 'E5M2 FNUZ numbers')],
  ['I16', integerDtype('int16')],
  ['U16', integerDtype('uint16')],
  ['F16', floatDtype('fp16')],
  ['BF16', floatDtype('bf16')],
  ['I32', integerDtype('int32')],
  ['U32', integerDtype('uint32')],
  ['F32', floatDtype('fp32')],
  ['C64', opaqueDtype(64, 'complex numbers')],
  ['F64', floatDtype('fp64')],
  ['I64', integerDtype('int64')],
  ['U64', integerDtype('uint64')],
]);

/** The dtype that elements are written as. tf32 has none of its own: it is written as F32, with a note in the metadata. */
export const safetensorsDtypeOf: Readonly<Record<WrittenType, string>> = {
  int32: 'I32',
  truth: 'BOOL',
  fp64: 'F64',
  fp32: 'F32',
  tf32: 'F32',
  bf16: 'BF16',
  fp16: 'F16',
  e4m3: 'F8_E4M3',
  e5m2: 'F8_E5M2',
  e2m1: 'F4',
};

/** The longest header, in bytes; the reference implementation's own limit. */
export const maxHeaderBytes = 100_000_000;

/** One tensor as the header of a safetensors file describes it, checked. */
interface SafetensorsTensor {
  readonly name: string;
  readonly dtype: string;
  readonly facts: DtypeFacts;
  readonly shape: readonly number[];
  readonly elements: number;
  /** Offsets of the first byte and of the byte after the last, from the start of the data. */
  readonly begin: number;
  readonly end: number;
}

/** The contents of the header: the metadata, and the tensors by ascending offset. */
interface SafetensorsHeader {
  readonly metadata: ReadonlyMap<string, string>;
  readonly tensors: readonly SafetensorsTensor[];
}

const saveAgain = 'save it again with a safetensors library';

function readMetadata(cursor: JsonCursor, refuse: (what: string) => never): Map<string, string> {
  const metadata = new Map<string, string>();
  if (cursor.kind() !== 'object') refuse('"__metadata__" is no object of strings');
  cursor.object((key) => {
    if (cursor.kind() !== 'string')
      refuse(`"__metadata__" has a value under ${quoted(key)} that is no string`);
    metadata.set(key, cursor.string());
  });
  return metadata;
}

/** Reads an array of at most `longest` non-negative safe integers. */
function readIntegers(
  cursor: JsonCursor,
  key: string,
  longest: number,
  refuse: (what: string) => never,
): number[] {
  const integers: number[] = [];
  if (cursor.kind() !== 'array') refuse(`${key} is no array`);
  cursor.array(() => {
    if (cursor.kind() !== 'number') refuse(`${key} holds something other than a number`);
    const spelling = cursor.number();
    const value = dimensionOf(spelling);
    if (value === null)
      return refuse(`${key} holds ${quoted(spelling)}, no whole number from 0 to 2^53 - 1`);
    if (integers.length === longest) refuse(`${key} has more than ${longest} numbers`);
    integers.push(value);
  });
  return integers;
}

function readTensor(
  cursor: JsonCursor,
  name: string,
  refuse: (what: string) => never,
): SafetensorsTensor {
  let dtype: string | null = null;
  let shape: number[] | null = null;
  let offsets: number[] | null = null;
  if (cursor.kind() !== 'object') refuse('is described by something other than an object');
  cursor.object((key) => {
    if (key === 'shape') shape = readIntegers(cursor, 'shape', maxRank, refuse);
    else if (key === 'data_offsets') offsets = readIntegers(cursor, 'data_offsets', 2, refuse);
    else if (key !== 'dtype') cursor.skip();
    else if (cursor.kind() === 'string') dtype = cursor.string();
    else refuse('dtype is no string');
  });
  return checkedTensor(name, dtype, shape, offsets, refuse);
}

function checkedTensor(
  name: string,
  dtype: string | null,
  shape: readonly number[] | null,
  offsets: readonly number[] | null,
  refuse: (what: string) => never,
): SafetensorsTensor {
  if (dtype === null) return refuse('has no dtype');
  if (shape === null) return refuse('has no shape');
  if (offsets === null) return refuse('has no data_offsets');
  const facts = safetensorsDtypes.get(dtype);
  if (facts === undefined || facts.bits === null)
    return refuse(`dtype ${quoted(dtype)} is none of ${[...safetensorsDtypes.keys()].join(', ')}`);
  const elements = elementCount(shape);
  const bits = elements === null ? Infinity : elements * facts.bits;
  if (elements === null || bits > Number.MAX_SAFE_INTEGER)
    return refuse(`shape [${shape.join(', ')}] has too many elements to count`);
  if (bits % 8 !== 0)
    return refuse(`shape [${shape.join(', ')}] of ${dtype} does not fill whole bytes`);
  const [begin, end] = offsets;
  if (begin === undefined || end === undefined) return refuse('data_offsets are not two numbers');
  if (begin > end) return refuse(`data_offsets [${begin}, ${end}] run backwards`);
  if (end - begin !== bits / 8)
    return refuse(
      `data_offsets [${begin}, ${end}] span ${end - begin} bytes, ` +
        `but shape [${shape.join(', ')}] of ${dtype} takes ${bits / 8}`,
    );
  return { name, dtype, facts, shape, elements, begin, end };
}

/** Checks that the tensors, by ascending offset, cover the data without overlap or hole. */
function checkCoverage(
  path: string,
  tensors: readonly SafetensorsTensor[],
  dataBytes: number,
): void {
  let covered = 0;
  let previous = '';
  for (const { name, begin, end } of tensors) {
    if (begin < covered)
      throw new RequestError(
        `${tensorIn(path, name)}: data_offsets [${begin}, ${end}] overlap those of tensor ` +
          `${quoted(previous)}, which end at ${covered}; ${saveAgain}`,
      );
    if (begin > covered)
      throw new RequestError(
        `${tensorIn(path, name)}: data_offsets [${begin}, ${end}] leave a hole of ` +
          `${begin - covered} bytes that belong to no tensor before it; ${saveAgain}`,
      );
    if (end > dataBytes)
      throw new RequestError(
        `${tensorIn(path, name)}: data_offsets [${begin}, ${end}] go past the end of the file, ` +
          `which has ${dataBytes} bytes of data; the file is cut short: copy or save it again`,
      );
    covered = end;
    previous = name;
  }
  if (covered < dataBytes)
    throw new RequestError(
      `${printable(path)}: ${dataBytes - covered} bytes after the last tensor ` +
        `${tensors.length === 0 ? '' : `(${listed([previous])}) `}belong to none; ${saveAgain}`,
    );
}

/**
 * Reads and checks the JSON header of a safetensors file: every rule of the reference implementation,
 * and also no key twice at any level. Keys of a tensor other than dtype, shape and data_offsets are
 * passed over, as the reference does.
 * @param dataBytes bytes of the file after the header, which the tensors must cover exactly
 * @throws RequestError naming the file, and the tensor if one is at fault
 */
export function parseSafetensorsHeader(
  path: string,
  text: string,
  dataBytes: number,
): SafetensorsHeader {
  const tensors: SafetensorsTensor[] = [];
  let metadata = new Map<string, string>();
  const refuse = (what: string): never => {
    throw new RequestError(`${printable(path)}: in the safetensors header, ${what}; ${saveAgain}`);
  };
  let at: string | null = null;
  const cursor = new JsonCursor(text, (what) => {
    if (at === null) return refuse(what);
    throw new RequestError(`${tensorIn(path, at)}: in the header, ${what}; ${saveAgain}`);
  });
  if (!text.startsWith('{')) refuse('the first character is no "{"');
  cursor.object((key) => {
    if (key === '__metadata__') {
      metadata = readMetadata(cursor, refuse);
      return;
    }
    at = key;
    tensors.push(
      readTensor(cursor, key, (what) => {
        throw new RequestError(`${tensorIn(path, key)}: ${what}; ${saveAgain}`);
      }),
    );
    at = null;
  });
  cursor.end();
  tensors.sort((a, b) => a.begin - b.begin || a.end - b.end);
  checkCoverage(path, tensors, dataBytes);
  return { metadata, tensors };
}
