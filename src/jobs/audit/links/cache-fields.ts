import {
  checkPlaces,
  codeNames,
  codes,
  fieldOf,
  numberLayouts,
  type CodeName,
  type Field,
  type FieldSizes,
} from '../../../problem/index.js';
import type { Tensor } from '../../../formats/index.js';
import { quoted, type LinkFile } from '../../../io/tensors/index.js';
import { RequestError } from '../../../request-error.js';

/** The parts of a write, by the names of their new tokens. */
export const partNames = ['k', 'v', 'kv_c', 'k_pe'] as const;
/** One of {@link partNames}. */
export type PartName = (typeof partNames)[number];

/** A buffer of a cache, as it is in a file. */
export interface CacheBuffer {
  readonly bytes: Uint8Array;
  readonly dtype: string;
  readonly shape: readonly number[];
}

/** The buffers of a cache. */
export interface CacheBuffers {
  readonly after: Map<string, CacheBuffer>;
  readonly before: ReadonlyMap<string, Uint8Array> | null;
  /** Slots of a block, where somebody says it. */
  readonly saidBlockSize: number | undefined;
}

/** New tokens of a part. */
export interface GivenPart {
  readonly name: PartName;
  readonly input: Tensor;
}

/** A part whose numbers have their place. */
export interface PlacedPart extends GivenPart {
  readonly numbers: Field;
  /** Slots of a block. */
  readonly blockSize: number;
  /** Rows of a latent cache; null for a part with a buffer of its own. */
  readonly record: CacheRecord | null;
}

/** Rows of a latent cache that hold all of a token. */
export interface CacheRecord {
  readonly bytes: number;
  /** Where the factors of kv_c are, and columns that share one; null for none. */
  readonly factors: { readonly at: number; readonly columns: number } | null;
}

/** Codes by the dtypes of safetensors and NumPy, in lower case. */
const dtypeCodes: Readonly<Record<string, CodeName>> = {
  f32: 'fp32',
  '<f4': 'fp32',
  f16: 'fp16',
  '<f2': 'fp16',
  bf16: 'bf16',
  f8_e4m3: 'e4m3',
  f8_e5m2: 'e5m2',
  f8_e4m3fnuz: 'e4m3fnuz',
  f8_e8m0: 'e8m0',
  i8: 'int8',
  '|i1': 'int8',
};

/** The name of a code. @throws RequestError for another word */
export function parseCode(text: string, where: string): CodeName {
  const code = codeNames.find((name) => name === text.trim().toLowerCase());
  if (code === undefined)
    throw new RequestError(`${where} is ${quoted(text)}; give one of ${codeNames.join(', ')}`);
  return code;
}

/** The code of a buffer: said, else by its dtype. @throws RequestError for bytes of unknown meaning */
export function codeOf(
  file: LinkFile,
  note: string,
  name: string,
  { dtype }: CacheBuffer,
): CodeName {
  const code = file.note(note, parseCode) ?? dtypeCodes[dtype.toLowerCase()];
  return (
    code ??
    file.refuse(
      `${name} holds ${dtype}, which does not say its format; give --note ${note}=${codeNames.join(', ')}`,
    )
  );
}

/** The index of the axis that counts the slots of a block, in the usual layouts. */
const blockAxis: Readonly<Partial<Record<string, number>>> = {
  nhd: 1,
  hnd: 2,
  'joined-nhd': 2,
  'joined-hnd': 3,
  'split-nhd': 2,
  'x-packed': 3,
  transposed: 3,
};

function blockSizeOf(layout: string, { shape }: CacheBuffer, said: number | undefined): number {
  if (said !== undefined) return said;
  const axis = blockAxis[layout];
  // Without blocks, a cache is one block.
  return axis === undefined || shape.length < 4 ? (shape[0] ?? 1) : shape[axis];
}

/** The layout of a buffer where nobody says it: by its rank, and where its heads are. */
function usualLayout(file: LinkFile, name: string, { shape }: CacheBuffer, heads: number): string {
  if (name === 'kv_cache' && shape.length === 5) {
    if (shape[1] === 2) return shape[3] === heads ? 'joined-nhd' : 'joined-hnd';
    if (shape[0] === 2) return 'split-nhd';
  }
  if (shape.length === 5) return 'x-packed';
  if (shape.length === 3) return 'nhd';
  if (shape.length === 4) {
    if (shape[2] === heads && shape[1] !== heads) return 'nhd';
    if (shape[1] === heads && shape[2] !== heads) return 'hnd';
  }
  return file.refuse(
    `${name} has shape [${shape.join(', ')}], which does not say its layout; give --note cache_layout=<name>, one of ${Object.keys(numberLayouts).join(', ')}, or in words such as "slot head column"`,
  );
}

/**
 * The buffers of a cache, after the write and, where any is given, before it.
 * @throws RequestError where there is none
 */
export async function cacheBuffers(
  file: LinkFile,
  names: readonly string[],
  saidBlockSize: number | undefined,
): Promise<CacheBuffers> {
  const after = new Map<string, CacheBuffer>();
  const before = new Map<string, Uint8Array>();
  for (const name of names) {
    if (file.has(name)) after.set(name, await file.bytes(name));
    if (file.has(`${name}_before`)) before.set(name, (await file.bytes(`${name}_before`)).bytes);
  }
  const first = after.get('kv_cache') ?? after.get('key_cache');
  if (first === undefined)
    return file.refuse(
      'has no key_cache and no kv_cache, the cache after the write; name it with --tensor',
    );
  return {
    after,
    before: before.size === 0 ? null : before,
    saidBlockSize,
  };
}

/** DeepSeek's rows of 656 bytes: 512 numbers in e4m3, 4 factors in fp32, 64 numbers in bf16. */
const deepSeekRow = 656;

/** The parts of a latent cache, each a stretch of every token's row. */
function latentParts(
  file: LinkFile,
  found: CacheBuffers,
  given: readonly GivenPart[],
): PlacedPart[] {
  const name = 'kv_cache';
  const buffer =
    found.after.get(name) ?? file.refuse('has kv_c without kv_cache; name it with --tensor');
  const columnsOf = (part: GivenPart) => part.input.shape[2];
  const rowElements = buffer.shape[buffer.shape.length - 1];
  const rows = buffer.shape.slice(0, -1).reduce((product, size) => product * size, 1);
  const bytes = buffer.bytes.length / Math.max(1, rows);
  const isDeepSeek = bytes === deepSeekRow && rowElements === deepSeekRow;
  let at = 0;
  return given.map((part) => {
    const columns = columnsOf(part);
    const isRope = part.name === 'k_pe';
    const code = isDeepSeek
      ? isRope
        ? 'bf16'
        : 'e4m3'
      : codeOf(file, 'cache_format', name, buffer);
    const sizes = { slots: rows, heads: 1, columns, part: 0 };
    const numbers = fieldOf('slot column', sizes, {
      buffer: name,
      code,
      baseBytes: at,
      firstAxisBytes: bytes,
    });
    const factorBytes = isDeepSeek && !isRope ? 4 * (columns / 128) : 0;
    const start = at + (columns * codes[code].bits) / 8;
    at = start + factorBytes;
    if (at > bytes)
      return file.refuse(
        `kv_cache has rows of ${bytes} bytes, too few for ${columns} columns of ${part.name} in ${code}; give --note cache_format=<format>`,
      );
    const factors = factorBytes === 0 ? null : { at: start, columns: 128 };
    const blockSize = found.saidBlockSize ?? (buffer.shape.length > 2 ? buffer.shape[1] : rows);
    return { ...part, numbers, blockSize, record: { bytes, factors } };
  });
}

/** The field of a part in a buffer of its own, or joined with the other's. */
function numberField(
  file: LinkFile,
  found: CacheBuffers,
  { name, input }: GivenPart,
): { readonly numbers: Field; readonly blockSize: number } {
  const isJoined = found.after.has('kv_cache');
  const buffer = isJoined ? 'kv_cache' : name === 'v' ? 'value_cache' : 'key_cache';
  const one =
    found.after.get(buffer) ?? file.refuse(`has ${name} without ${buffer}; name it with --tensor`);
  const [, heads, columns] = input.shape;
  const said =
    file.note(`${name}_layout`, (text) => text) ?? file.note('cache_layout', (text) => text);
  const own = usualLayoutOf(name, said, () => usualLayout(file, buffer, one, heads));
  const layout = Object.hasOwn(numberLayouts, own) ? numberLayouts[own as 'nhd'] : own;
  const code = codeOf(file, 'cache_format', buffer, one);
  const blockSize = blockSizeOf(own, one, found.saidBlockSize);
  const perSlot = (heads * columns * codes[code].bits) / 8;
  const sides = /\bpart\b/.test(layout) ? 2 : 1;
  const slots = one.bytes.length / perSlot / sides;
  if (!Number.isInteger(slots))
    return file.refuse(
      `${buffer} has ${one.bytes.length} bytes, no whole number of slots of ${heads} × ${columns} in ${code}; give --note cache_format=<format>`,
    );
  const sizes: FieldSizes = { slots, heads, columns, part: name === 'v' ? 1 : 0 };
  const letters = { B: blockSize, X: 128 / codes[code].bits };
  const numbers = fieldOf(layout, sizes, { buffer, code }, letters);
  if (!Object.hasOwn(numberLayouts, own)) checkPlaces(numbers);
  return { numbers, blockSize };
}

/** A layout that is said; of vLLM's first layouts, V's is another than K's. */
function usualLayoutOf(name: PartName, said: string | undefined, usual: () => string): string {
  const found = said?.trim() ?? usual();
  return found === 'x-packed' && name === 'v' ? 'transposed' : found;
}

/**
 * The parts of a write with the places of their numbers.
 * @throws RequestError for buffers whose layout does not fit
 */
export function placedNumbers(
  file: LinkFile,
  found: CacheBuffers,
  given: readonly GivenPart[],
): readonly PlacedPart[] {
  if (given.some(({ name }) => name === 'kv_c')) return latentParts(file, found, given);
  return given.map((part) => ({ ...part, ...numberField(file, found, part), record: null }));
}
