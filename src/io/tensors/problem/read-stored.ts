import {
  cacheName,
  gatherRows,
  halfOfPages,
  type IntegerTensor,
  type Problem,
  type Sequence,
  type StoredProblem,
  type StoredRows,
  type StoredTensors,
  type Tensor,
} from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import { checkEmptySizes } from './canonical.js';
import type { TensorFile } from '../tensor-file.js';
import { problemLayout, type ProblemSettings } from './settings.js';
import { gatherStored } from './gather-stored.js';
import { cachesOf } from './inputs.js';
import { isLatent, latentValues } from './latent.js';
import { hasPages, pageLists, pageNames } from './page-lists.js';
import type { ReadInputs } from './read-features.js';
import {
  pageSizeOf,
  sequenceRows,
  sequencesOf,
  type PlacedSequences,
  type RowTensor,
  type SequenceInputs,
} from './read-sequences.js';

/** The inputs that give the places of sequences; a problem with one of them has sequences of their own lengths. */
const sequenceNames = [
  ...['cu_seqlens', 'cu_seqlens_q', 'cu_seqlens_k', 'seqused_q', 'seqused_k'],
  ...['leftpad_k', ...pageNames],
] as const satisfies readonly (keyof ReadInputs)[];

/** Whether some inputs define sequences of their own lengths. */
export function hasSequences(inputs: ReadInputs): boolean {
  return sequenceNames.some((name) => inputs[name] !== undefined);
}

/** A list of integers that is an input. @throws RequestError for one of another rank */
function listOf(name: string, tensor: IntegerTensor | undefined): Int32Array | null {
  if (tensor === undefined) return null;
  if (tensor.shape.length !== 1)
    throw new RequestError(`${name} has shape [${tensor.shape.join(', ')}]; give it rank 1`);
  return tensor.data;
}

function inputsOfQueries(inputs: ReadInputs): SequenceInputs {
  return {
    cumulative: listOf('cu_seqlens_q', inputs.cu_seqlens_q ?? inputs.cu_seqlens),
    used: listOf('seqused_q', inputs.seqused_q),
    left: null,
    pages: null,
  };
}

function inputsOfKeys(inputs: ReadInputs, k: RowTensor): SequenceInputs {
  return {
    cumulative: listOf('cu_seqlens_k', inputs.cu_seqlens_k ?? inputs.cu_seqlens),
    used: listOf('seqused_k', inputs.seqused_k),
    left: listOf('leftpad_k', inputs.leftpad_k),
    pages: pageLists(inputs, pageSizeOf(k)),
  };
}

/** The header of a tensor in a file; refuses one that is missing, or is no tensor of numbers. */
async function headerOf(file: TensorFile, name: string, headsFirst: boolean): Promise<RowTensor> {
  checkEmptySizes(file, name);
  await file.readElements(name, 0, 0);
  const { shape = [], byteLength = 0 } = file.entries.get(name) ?? {};
  return { name, shape, byteLength, headsFirst };
}

/** @throws RequestError for keys and values in different slots */
function checkSameSlots(k: RowTensor, v: RowTensor, heads: number): void {
  const slots = ({ shape }: RowTensor) => shape.slice(0, -1);
  if (String(slots(k)) !== String(slots(v)))
    throw new RequestError(
      `k has shape [${k.shape.join(', ')}], v [${v.shape.join(', ')}]; all sizes but the last must be equal (${heads} heads of k)`,
    );
}

/** Queries, keys and values of several sequences, and their places. */
export interface ReadSequences {
  readonly tensors: Pick<Problem, 'q' | 'k' | 'v'>;
  /** The tensors of the file that they are of. */
  readonly names: Readonly<Record<'q' | 'k' | 'v', string>>;
  readonly sequences: readonly Sequence[];
  readonly placed: PlacedSequences;
  readonly stored: Omit<StoredProblem, 'of'>;
}

/**
 * The places of the sequences of a file.
 * @throws RequestError for inputs that do not fit
 */
function placeSequences(inputs: ReadInputs, q: RowTensor, k: RowTensor): PlacedSequences {
  const queries = sequenceRows('q', inputsOfQueries(inputs), q);
  const keys = sequenceRows('k', inputsOfKeys(inputs, k), k);
  const [ofQueries, ofKeys] = [queries.lengths.length, keys.lengths.length];
  if (ofQueries !== ofKeys)
    throw new RequestError(
      `there are ${ofQueries} sequences of queries and ${ofKeys} of keys; say where both are: cu_seqlens_q and cu_seqlens_k, or a block_table of ${ofQueries} rows`,
    );
  return { queries, keys };
}

/** The inputs of sequences under the names that distinguish queries from keys. */
function posedInputs(inputs: ReadInputs): StoredTensors {
  const { cu_seqlens: ofBoth, ...others } = inputs;
  const ofQueries = others.cu_seqlens_q ?? ofBoth;
  const ofKeys = others.cu_seqlens_k ?? ofBoth;
  return {
    ...others,
    ...(ofQueries === undefined ? {} : { cu_seqlens_q: ofQueries }),
    ...(ofKeys === undefined ? {} : { cu_seqlens_k: ofKeys }),
  };
}

/** A tensor of a file, or the keys or values of one that has both. */
interface Source {
  readonly header: RowTensor;
  /** The tensor's name, and the places of the rows in it. */
  readonly name: string;
  readonly rowsIn: (rows: StoredRows) => StoredRows;
}

/** @throws RequestError for a tensor that cannot hold the keys and values of pages */
function checkCache({ name, shape }: RowTensor): void {
  if (shape.length !== 5 || shape[1] !== 2)
    throw new RequestError(
      `${name} has shape [${shape.join(', ')}]; give it [pages, 2, page size, heads, dim], or with --kv-layout HND [pages, 2, heads, page size, dim]`,
    );
  // Slots of both are counted in 32 bits.
  const slots = shape.slice(0, -1).reduce((product, size) => product * size, 1);
  if (slots >= 2 ** 31) throw new RequestError(`${name} has ${slots} rows; give fewer than 2^31`);
}

/**
 * The tensors of keys and values: one for each, or one for both.
 * @throws RequestError for both forms
 */
async function keySources(
  file: TensorFile,
  inputs: ReadInputs,
  settings: ProblemSettings,
): Promise<Readonly<Record<'k' | 'v', Source>>> {
  const isPaged = hasPages(inputs);
  const headsFirst = isPaged
    ? settings.kvLayout === 'HND'
    : problemLayout(file, settings) === 'bhsd';
  const caches = isPaged ? cachesOf(file, settings) : [];
  if (caches.length === 0) {
    const own = async (name: string): Promise<Source> => ({
      header: await headerOf(file, name, headsFirst),
      name,
      rowsIn: (rows) => rows,
    });
    const k = await own('k');
    return { k, v: isLatent(file, settings) ? k : await own('v') };
  }
  const { ignored = [] } = settings;
  const [name] = caches;
  const other = [...caches.slice(1), 'k', 'v'].find(
    (one) => file.entries.has(one) && !ignored.includes(one),
  );
  if (other !== undefined)
    throw new RequestError(
      `there are ${name} and ${other}, which both hold keys or values; leave one out with --ignore`,
    );
  const both = await headerOf(file, name, headsFirst);
  checkCache(both);
  const [pages, , ...rest] = both.shape;
  const half = (which: 'k' | 'v'): Source => ({
    header: { ...both, shape: [pages, ...rest], byteLength: both.byteLength / 2 },
    name,
    rowsIn: (rows) => halfOfPages(rows, which),
  });
  return { k: half('k'), v: half('v') };
}

/**
 * Reads queries, keys and values that are packed, padded or in pages, and gathers the used rows.
 * @throws RequestError for inputs that do not fit, and as `TensorFile.read`
 */
export async function readSequences(
  file: TensorFile,
  inputs: ReadInputs,
  settings: ProblemSettings,
): Promise<ReadSequences> {
  const { keepsPosed = false } = settings;
  const q = await headerOf(file, 'q', problemLayout(file, settings) === 'bhsd');
  const { k, v } = await keySources(file, inputs, settings);
  const placed = placeSequences(inputs, q, k.header);
  const headsOf = ({ headsFirst }: StoredRows, { shape }: RowTensor) =>
    (headsFirst ? shape.at(-3) : shape.at(-2)) ?? 0;
  checkSameSlots(k.header, v.header, headsOf(placed.keys.rows, k.header));
  const posed: Record<string, Tensor> = {};
  const read = async (rows: StoredRows, { header, name, rowsIn }: Source): Promise<Tensor> => {
    if (keepsPosed) {
      const as = name === 'q' || name === 'k' || name === 'v' ? name : cacheName;
      posed[as] ??= await file.read(name);
      return gatherRows(posed[as], rowsIn(rows));
    }
    const format = file.entries.get(name)?.format ?? 'fp32';
    const dim = header.shape.at(-1) ?? 0;
    const heads = headsOf(rows, header);
    return gatherStored(file, name, { format, heads, dim }, rowsIn(rows));
  };
  const { queries, keys } = placed;
  const ofQueries: Source = { header: q, name: 'q', rowsIn: (rows) => rows };
  const ofK = await read(keys.rows, k);
  const isOfK = isLatent(file, settings);
  const tensors = {
    q: await read(queries.rows, ofQueries),
    k: ofK,
    v: isOfK ? latentValues(ofK, settings) : await read(keys.rows, v),
  };
  if (isOfK && keepsPosed) posed['v'] = latentValues(posed['k'], settings);
  return {
    tensors,
    names: { q: 'q', k: k.name, v: v.name },
    sequences: sequencesOf(queries.lengths, keys.lengths),
    placed,
    stored: {
      queries: queries.rows,
      keys: keys.rows,
      tensors: keepsPosed ? { ...posed, ...posedInputs(inputs) } : null,
    },
  };
}
