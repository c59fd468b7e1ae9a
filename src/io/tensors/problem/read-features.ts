import {
  cropToArea,
  type BlockMask,
  type BooleanTensor,
  type IntegerTensor,
  type Problem,
  presentFeatures,
  type ProblemFeatures,
  type Tensor,
} from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import { tensorIn } from '../messages.js';
import type { TensorFile } from '../tensor-file.js';
import {
  inputOf,
  problemInputNames,
  problemInputs,
  type InputElements,
  type ProblemInputName,
} from './inputs.js';
import { keyListsOf } from './read-lists.js';
import type { PlacedSequences } from './read-sequences.js';
import type { ProblemSettings } from './settings.js';
import { openTensorArgument } from './tensor-argument.js';

/** The type of a tensor by the kind of its elements. */
interface ByElements {
  readonly numbers: Tensor;
  readonly integers: IntegerTensor;
  readonly truths: BooleanTensor;
}

/** The inputs of a problem beside q, k and v, by name; absent where it does not have one. */
export type ReadInputs = {
  readonly [Name in ProblemInputName]?: ByElements[(typeof problemInputs)[Name]];
};

/** @throws RequestError for numbers where truths belong: PyTorch adds such a mask to the scores */
function refuseNumbers({ path, entries }: TensorFile, name: string, option: string): void {
  const format = entries.get(name)?.format ?? null;
  if (format !== null)
    throw new RequestError(
      `${tensorIn(path, name)}: holds ${format} numbers where booleans belong; if they are added to scores, leave it out with --ignore ${option} and give --bias <file>:${name}`,
    );
}

const readers: {
  readonly [Kind in InputElements]: (
    file: TensorFile,
    name: string,
    option: string,
  ) => Promise<ByElements[Kind]>;
} = {
  numbers: (file, name) => file.read(name),
  integers: (file, name) => file.readIntegers(name),
  truths: (file, name, option) => {
    refuseNumbers(file, name, option);
    return file.readTruths(name);
  },
};

/**
 * Reads the inputs of a problem beside q, k and v.
 * @throws RequestError as `TensorFile.read`
 */
export async function readInputs(file: TensorFile, settings: ProblemSettings): Promise<ReadInputs> {
  const read: Partial<Record<ProblemInputName, ByElements[InputElements]>> = {};
  for (const name of problemInputNames) {
    const text = inputOf(file, name, settings);
    if (text === null) continue;
    const source = await openTensorArgument(text, file, name);
    try {
      read[name] = await readers[problemInputs[name]](source.file, source.name, name);
    } finally {
      await source.close();
    }
  }
  return read as ReadInputs;
}

/** Two inputs that belong together; null for a problem with neither. */
function both<A, B>(
  a: [string, A | undefined],
  b: [string, B | undefined],
): readonly [A, B] | null {
  const [[nameA, valueA], [nameB, valueB]] = [a, b];
  if (valueA !== undefined && valueB !== undefined) return [valueA, valueB];
  if (valueA === undefined && valueB === undefined) return null;
  const [there, missing] = valueA === undefined ? [nameB, nameA] : [nameA, nameB];
  throw new RequestError(`there is ${there} but no ${missing}; give both, or --ignore ${there}`);
}

/**
 * Lists of blocks as one: the blocks of both, row by row. Full blocks come first, as FlashAttention-4, which goes from the end of a
 * list to its beginning, visits them last.
 */
function joinedBlocks(
  [counts, indices]: readonly [IntegerTensor, IntegerTensor],
  [fullCounts, fullIndices]: readonly [IntegerTensor, IntegerTensor],
): readonly [IntegerTensor, IntegerTensor] {
  if (String(counts.shape) !== String(fullCounts.shape))
    throw new RequestError(
      `kv_num_blocks has shape [${counts.shape.join(', ')}], full_kv_num_blocks [${fullCounts.shape.join(', ')}]; make them equal`,
    );
  const rows = counts.data.length;
  const lists = [
    { counts: fullCounts, indices: fullIndices, room: fullIndices.data.length / Math.max(1, rows) },
    { counts, indices, room: indices.data.length / Math.max(1, rows) },
  ];
  const room = lists.reduce((sum, list) => sum + list.room, 0);
  const data = new Int32Array(rows * room);
  const total = new Int32Array(rows);
  for (const list of lists)
    for (let row = 0; row < rows; row++) {
      const first = row * list.room;
      const count = list.counts.data[row];
      if (!(count >= 0 && count <= list.room))
        throw new RequestError(
          `kv_num_blocks or full_kv_num_blocks has ${count} at element ${row}; give 0 to ${list.room}, as many as its indices hold`,
        );
      data.set(list.indices.data.subarray(first, first + count), row * room + total[row]);
      total[row] += count;
    }
  return [
    { shape: counts.shape, data: total },
    { shape: [...counts.shape, room], data },
  ];
}

/** Default queries and keys of a block: flex_attention's. */
const defaultBlock = 128;

function blockMaskOf(inputs: ReadInputs, { blockQ, blockK }: ProblemSettings): BlockMask | null {
  const partial = both(['kv_num_blocks', inputs.kv_num_blocks], ['kv_indices', inputs.kv_indices]);
  const full = both(
    ['full_kv_num_blocks', inputs.full_kv_num_blocks],
    ['full_kv_indices', inputs.full_kv_indices],
  );
  const blocks =
    partial !== null && full !== null ? joinedBlocks(partial, full) : (partial ?? full);
  if (blocks === null) return null;
  const [counts, indices] = blocks;
  return {
    counts,
    indices,
    blockQueries: blockQ ?? defaultBlock,
    blockKeys: blockK ?? defaultBlock,
  };
}

/**
 * The used part of a tensor over queries and keys, which may cover all slots of padded sequences or only the used
 * ones, as its sizes tell.
 */
function countingPart<T extends Tensor | BooleanTensor>(
  name: string,
  tensor: T,
  { queries, keys }: PlacedSequences,
): T {
  const [ofQueries, ofKeys] = [1, 1, ...tensor.shape].slice(-2);
  const longest = (lengths: readonly number[]) => lengths.reduce((a, b) => Math.max(a, b), 0);
  const [mostQueries, mostKeys] = [longest(queries.lengths), longest(keys.lengths)];
  const isPadded = keys.left.some((left) => left > 0);
  const allowed = {
    queries: [1, mostQueries, queries.capacity],
    // Where padding comes first, only columns that are slots tell which keys they are.
    keys: isPadded ? [1, keys.capacity] : [1, mostKeys, keys.capacity],
  };
  if (!allowed.queries.includes(ofQueries) || !allowed.keys.includes(ofKeys))
    throw new RequestError(
      `${name} has shape [${tensor.shape.join(', ')}]; of several sequences give it as many queries as the longest has (${mostQueries}) and as many keys (${allowed.keys[1]}), or 1`,
    );
  return cropToArea(tensor, {
    queries: mostQueries,
    keys: mostKeys,
    left: isPadded ? keys.left : null,
  });
}

/**
 * The tables that q and k were rotated by; nothing if there are none.
 * @throws RequestError for one without the other
 */
export function rotaryOf({ rope_cos: cos, rope_sin: sin }: ReadInputs): Pick<Problem, 'rotary'> {
  const tables = both(['rope_cos', cos], ['rope_sin', sin]);
  return tables === null ? {} : { rotary: { cos: tables[0], sin: tables[1] } };
}

/**
 * The features of a problem from its inputs.
 * @param sequences null for a problem that is one tensor of batches
 * @throws RequestError for inputs that lack another, and sizes that do not fit
 */
export function featuresOf(
  inputs: ReadInputs,
  settings: ProblemSettings,
  sequences: PlacedSequences | null,
): ProblemFeatures {
  const { alibi_slopes: alibiSlopes, sink, dropout_mask: kept } = inputs;
  const { prefix = 0, dropoutP, lseSink = true } = settings;
  const part = <T extends Tensor | BooleanTensor>(name: string, tensor: T): T =>
    sequences === null ? tensor : countingPart(name, tensor, sequences);
  const segments = both(['q_segments', inputs.q_segments], ['k_segments', inputs.k_segments]);
  const blockMask = blockMaskOf(inputs, settings);
  if (kept !== undefined && dropoutP === undefined)
    throw new RequestError(
      'there is dropout_mask but no dropout_p; give the probability with --dropout-p',
    );
  const { mask, bias } = inputs;
  return presentFeatures({
    mask: mask && part('mask', mask),
    bias: bias && part('bias', bias),
    alibiSlopes,
    sink: sink && { logits: sink, inLse: lseSink },
    segments: segments === null ? undefined : { queries: segments[0], keys: segments[1] },
    prefix: prefix === 0 ? undefined : prefix,
    blockMask: blockMask ?? undefined,
    keyLists: keyListsOf(inputs, settings, sequences) ?? undefined,
    dropout: kept && { kept: part('dropout_mask', kept), probability: dropoutP ?? 0 },
    // Sequences are read with the tensors that they pack; parts of a problem are not read.
    sequences: undefined,
    keyRanges: undefined,
    rows: undefined,
  });
}
