import {
  gatherRows,
  type IntegerTensor,
  type Problem,
  type Sequence,
  type StoredProblem,
  type StoredTensors,
  type Tensor,
} from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { checkEmptySizes } from './canonical.js';
import type { TensorFile } from '../tensor-file.js';
import { gatherStored } from './gather-stored.js';
import type { PlacedSequences, ReadInputs } from './read-features.js';
import {
  sequenceRows,
  sequencesOf,
  type RowTensor,
  type SequenceInputs,
} from './read-sequences.js';

/** The inputs that say where sequences are; a problem with one of them has sequences of their own lengths. */
const sequenceNames = [
  ...['cu_seqlens', 'cu_seqlens_q', 'cu_seqlens_k', 'seqused_q', 'seqused_k'],
  ...['leftpad_k', 'block_table'],
] as const satisfies readonly (keyof ReadInputs)[];

/** Whether some inputs tell of sequences of their own lengths. */
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
    table: null,
  };
}

function inputsOfKeys(inputs: ReadInputs): SequenceInputs {
  return {
    cumulative: listOf('cu_seqlens_k', inputs.cu_seqlens_k ?? inputs.cu_seqlens),
    used: listOf('seqused_k', inputs.seqused_k),
    left: listOf('leftpad_k', inputs.leftpad_k),
    table: inputs.block_table ?? null,
  };
}

/** What the header of a file says of a tensor; refuses one that is not there, or is no tensor of numbers. */
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

/** Queries, keys and values of several sequences, and where they are. */
export interface ReadSequences {
  readonly tensors: Pick<Problem, 'q' | 'k' | 'v'>;
  readonly sequences: readonly Sequence[];
  readonly placed: PlacedSequences;
  readonly stored: Omit<StoredProblem, 'of'>;
}

/** Where the sequences of a file are. @throws RequestError for inputs that do not fit */
function placeSequences(inputs: ReadInputs, q: RowTensor, k: RowTensor): PlacedSequences {
  const queries = sequenceRows('q', inputsOfQueries(inputs), q);
  const keys = sequenceRows('k', inputsOfKeys(inputs), k);
  const [ofQueries, ofKeys] = [queries.lengths.length, keys.lengths.length];
  if (ofQueries !== ofKeys)
    throw new RequestError(
      `there are ${ofQueries} sequences of queries and ${ofKeys} of keys; say where both are: cu_seqlens_q and cu_seqlens_k, or a block_table of ${ofQueries} rows`,
    );
  return { queries, keys };
}

/** The inputs of sequences under the names that tell queries and keys apart. */
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

/**
 * Reads queries, keys and values that are packed, padded or in pages, and gathers the rows that count.
 * @param keepsPosed whether the tensors are kept as they are, and read whole
 * @throws RequestError for inputs that do not fit, and as `TensorFile.read`
 */
export async function readSequences(
  file: TensorFile,
  inputs: ReadInputs,
  headsFirst: boolean,
  keepsPosed: boolean,
): Promise<ReadSequences> {
  const header = (name: string) => headerOf(file, name, headsFirst);
  const [q, k, v] = [await header('q'), await header('k'), await header('v')];
  const placed = placeSequences(inputs, q, k);
  const rowsOf = { q: placed.queries.rows, k: placed.keys.rows, v: placed.keys.rows };
  const headsOf = (name: keyof typeof rowsOf, { shape }: RowTensor) =>
    (rowsOf[name].headsFirst ? shape.at(-3) : shape.at(-2)) ?? 0;
  checkSameSlots(k, v, headsOf('k', k));
  const posed: Record<string, Tensor> = {};
  const read = async (name: 'q' | 'k' | 'v', of: RowTensor): Promise<Tensor> => {
    const rows = rowsOf[name];
    if (keepsPosed) {
      posed[name] = await file.read(name);
      return gatherRows(posed[name], rows);
    }
    const format = file.entries.get(name)?.format ?? 'fp32';
    const dim = of.shape.at(-1) ?? 0;
    return gatherStored(file, name, { format, heads: headsOf(name, of), dim }, rows);
  };
  const tensors = { q: await read('q', q), k: await read('k', k), v: await read('v', v) };
  return {
    tensors,
    sequences: sequencesOf(placed.queries.lengths, placed.keys.lengths),
    placed,
    stored: {
      queries: placed.queries.rows,
      keys: placed.keys.rows,
      tensors: keepsPosed ? { ...posed, ...posedInputs(inputs) } : null,
    },
  };
}
