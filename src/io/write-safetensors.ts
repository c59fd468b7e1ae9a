import {
  featureSettings,
  posedRows,
  posedTensors,
  scaleTensors,
  type Problem,
  type StoredTensor as AnyTensor,
  type StoredTensors,
} from '../problem/index.js';
import { RequestError } from '../request-error.js';
import { atomicWriteFile, type WriteOptions } from './atomic-write.js';
import {
  bytesOf,
  checkedTensors,
  elementCount,
  formatNote,
  maxHeaderBytes,
  packed,
  quoted,
  safetensorsDtypeOf,
  safetensorsDtypes,
  writtenType,
  type NamedTensors,
  type RawTensor,
} from './tensors/index.js';

const dtypeRank = new Map([...safetensorsDtypes.keys()].map((dtype, rank) => [dtype, rank]));

/** Orders tensors as the reference does: widest dtype first, then by the bytes of the name. */
function layoutOrder([aName, a]: [string, AnyTensor], [bName, b]: [string, AnyTensor]): number {
  const rank = (tensor: AnyTensor): number =>
    dtypeRank.get(safetensorsDtypeOf[writtenType(tensor)])!;
  return rank(b) - rank(a) || Buffer.compare(Buffer.from(aName), Buffer.from(bName));
}

/**
 * The metadata to write: the caller's, and for each tf32 tensor the note that its F32 elements are
 * tf32.
 */
function annotated(
  named: readonly [string, AnyTensor][],
  metadata: Readonly<Record<string, string>>,
): Record<string, string> {
  const notes = new Map<string, string>();
  for (const [key, value] of Object.entries(metadata)) {
    if (typeof value !== 'string')
      throw new RequestError(
        `metadata ${quoted(key)} is no string and cannot be written; give it as text`,
      );
    notes.set(key, value);
  }
  for (const [name, tensor] of named) {
    const format = writtenType(tensor);
    const key = formatNote(name);
    if (notes.has(key) && notes.get(key) !== format)
      throw new RequestError(
        `metadata ${quoted(key)} says ${quoted(notes.get(key)!)}, but tensor ${quoted(name)} ` +
          `is ${format}; leave that key out`,
      );
    if (format === 'tf32') notes.set(key, 'tf32');
  }
  return Object.fromEntries(notes);
}

function checkWellFormed(text: string): void {
  if (/\p{Surrogate}/u.test(text))
    throw new RequestError(
      `${quoted(text)} holds a lone surrogate, which UTF-8 cannot carry; rename it`,
    );
}

/** The bytes of a tensor as the file has them. */
function fileBytes(name: string, tensor: AnyTensor): Uint8Array {
  const bytes = bytesOf(tensor.data);
  return writtenType(tensor) === 'e2m1' ? packed(name, bytes) : bytes;
}

function headerOf(
  tensors: readonly RawTensor[],
  metadata: Readonly<Record<string, string>>,
): Uint8Array {
  const notes = Object.entries(metadata);
  const members: string[] = [];
  for (const text of [...notes.flat(), ...tensors.map(({ name }) => name)]) checkWellFormed(text);
  if (notes.length > 0) members.push(`"__metadata__":${JSON.stringify(metadata)}`);
  let offset = 0;
  for (const { name, dtype, shape, bytes } of tensors) {
    const { byteLength } = bytes;
    const description = { dtype, shape, data_offsets: [offset, offset + byteLength] };
    members.push(`${JSON.stringify(name)}:${JSON.stringify(description)}`);
    offset += byteLength;
  }
  const text = Buffer.from(`{${members.join(',')}}`);
  const length = Math.ceil(text.length / 8) * 8;
  if (length > maxHeaderBytes)
    throw new RequestError(
      `the safetensors header would take ${length} bytes, above the limit of ${maxHeaderBytes}; ` +
        'write less metadata or fewer tensors',
    );
  const header = new Uint8Array(8 + length).fill(0x20);
  new DataView(header.buffer).setBigUint64(0, BigInt(length), true);
  header.set(text, 8);
  return header;
}

function* contentOf(
  tensors: readonly RawTensor[],
  metadata: Readonly<Record<string, string>>,
): Generator<Uint8Array> {
  yield headerOf(tensors, metadata);
  for (const { bytes } of tensors) yield bytes;
}

/** A tensor as the file has it. */
function rawTensor(name: string, tensor: AnyTensor): RawTensor {
  const dtype = safetensorsDtypeOf[writtenType(tensor)];
  return { name, dtype, shape: tensor.shape, bytes: fileBytes(name, tensor) };
}

const reservedName = '__metadata__';

/**
 * Writes tensors of any dtype as they are, in the order given. The path holds the whole file or its old content.
 * @throws RequestError for a dtype that safetensors does not have, for bytes that are not as many as the shape takes, and
 * when the file system fails
 */
export async function writeRawTensors(
  path: string,
  tensors: readonly RawTensor[],
  metadata: Readonly<Record<string, string>> = {},
): Promise<void> {
  for (const { name, dtype, shape, bytes } of tensors) {
    const bits = safetensorsDtypes.get(dtype)?.bits ?? null;
    const elements = elementCount(shape);
    if (name === reservedName || bits === null || (elements ?? NaN) * bits !== 8 * bytes.byteLength)
      throw new RequestError(
        `tensor ${quoted(name)} cannot be written: ${bytes.byteLength} bytes of dtype ${quoted(dtype)} in shape [${shape.join(', ')}]`,
      );
  }
  await atomicWriteFile(path, contentOf(tensors, metadata), {});
}

/**
 * Writes a safetensors file as the reference implementation lays it out: the header padded with
 * spaces to a multiple of 8 bytes, then the elements, widest dtype first and by name within a dtype.
 * A tf32 tensor is stored as F32 and noted as `format.<name>` = tf32 in the metadata, by which it is
 * read back as tf32. Nothing is copied, and the path holds the whole file or its old content.
 * @throws RequestError when a tensor or the metadata cannot be written, or the file system fails
 */
export async function writeSafetensors(
  path: string,
  tensors: NamedTensors,
  metadata: Readonly<Record<string, string>> = {},
  options: WriteOptions = {},
): Promise<void> {
  const named = checkedTensors(tensors).sort(layoutOrder);
  if (named.some(([name]) => name === reservedName))
    throw new RequestError('tensor "__metadata__" has a name that the format reserves; rename it');
  const raw = named.map(([name, tensor]) => rawTensor(name, tensor));
  await atomicWriteFile(path, contentOf(raw, annotated(named, metadata)), options);
}

/** The layout in which padded sequences are posed; null if there are none. */
export function posedLayout(problem: Problem): 'bhsd' | 'bshd' | null {
  const rows = posedRows(problem);
  const padded = (rows === null ? [] : [rows.queries, rows.keys]).find(
    ({ form }) => form === 'padded',
  );
  if (padded === undefined) return null;
  return padded.headsFirst ? 'bhsd' : 'bshd';
}

/** The layout of a problem's pages if it differs from the default; null otherwise. */
export function posedKvLayout(problem: Problem): 'HND' | null {
  const keys = posedRows(problem)?.keys;
  return keys?.form === 'paged' && keys.headsFirst ? 'HND' : null;
}

/**
 * The settings of a problem as a tensor file notes them, so that `readProblem` gives the same numbers back.
 */
export function problemMetadata(problem: Problem): { readonly [setting: string]: string } {
  const { scale, causal, window, softcap } = problem;
  const layout = posedLayout(problem);
  const kvLayout = posedKvLayout(problem);
  return {
    scale: Object.is(scale, -0) ? '-0' : String(scale),
    causal: String(causal),
    window: window === null ? 'none' : `${window.left},${window.right}`,
    softcap: softcap === null ? 'none' : String(softcap),
    ...Object.fromEntries(
      Object.entries(featureSettings(problem)).map(([name, value]) => [name, String(value)]),
    ),
    ...(layout === null ? {} : { layout }),
    ...(kvLayout === null ? {} : { kv_layout: kvLayout }),
    ...(problem.sequences === undefined ? scaleTensors(problem).metadata : {}),
  };
}

/** Extras to write with a problem: outputs of a kernel in the problem's layout, and notes. */
interface ProblemExtras {
  readonly tensors?: StoredTensors;
  readonly metadata?: Readonly<Record<string, string>>;
}

/**
 * Writes a problem as a safetensors file that `readProblem` reads back the same: its tensors as posed, its settings in
 * the metadata.
 * @throws RequestError when it cannot be written
 */
export async function writeProblem(
  path: string,
  problem: Problem,
  { tensors = {}, metadata = {} }: ProblemExtras = {},
  options: WriteOptions = {},
): Promise<void> {
  await writeSafetensors(
    path,
    { ...posedTensors(problem), ...tensors },
    { ...problemMetadata(problem), ...metadata },
    options,
  );
}
