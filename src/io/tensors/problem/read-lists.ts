import type { IntegerTensor, KeyLists, Sequence, StoredRows } from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import { sequencesOf, type PlacedSequences } from './read-sequences.js';
import type { ProblemSettings } from './settings.js';

/** The tensors of lists. */
interface ListInputs {
  readonly kv_index?: IntegerTensor;
  readonly block_index?: IntegerTensor;
}

/** Lists as they are posed, by name. */
interface PosedLists {
  readonly name: 'kv_index' | 'block_index';
  readonly tensor: IntegerTensor;
  readonly blockKeys: number;
}

/** @throws RequestError for both kinds of lists, and for blocks of no size */
function posedLists(
  { kv_index: ofKeys, block_index: ofBlocks }: ListInputs,
  { blockSize }: ProblemSettings,
): PosedLists | null {
  if (ofKeys !== undefined && ofBlocks !== undefined)
    throw new RequestError(
      'there are kv_index and block_index, which both list the keys of a query; leave one out with --ignore',
    );
  if (ofKeys !== undefined) return { name: 'kv_index', tensor: ofKeys, blockKeys: 1 };
  if (ofBlocks === undefined) return null;
  if (blockSize === undefined)
    throw new RequestError(
      'there is block_index but no block_size; give the keys of a block with --block-size',
    );
  return { name: 'block_index', tensor: ofBlocks, blockKeys: blockSize };
}

/** The lists of the used queries, [1, queries, heads, n], of lists for every slot of queries. */
function ofUsedQueries(
  { name, tensor }: PosedLists,
  { form, groups, slotsPerGroup, slots }: StoredRows,
): IntegerTensor {
  const sizes = form === 'packed' ? [slotsPerGroup] : [groups, slotsPerGroup];
  const fits =
    tensor.shape.length === sizes.length + 2 && sizes.every((size, i) => tensor.shape[i] === size);
  if (!fits)
    throw new RequestError(
      `${name} has shape [${tensor.shape.join(', ')}]; give it [${sizes.join(', ')}, Hk or 1, n], a list for every row of q`,
    );
  const [heads, length] = tensor.shape.slice(-2);
  const data = new Int32Array(slots.length * heads * length);
  slots.forEach((slot, row) =>
    data.set(
      tensor.data.subarray(slot * heads * length, (slot + 1) * heads * length),
      row * heads * length,
    ),
  );
  return { shape: [1, slots.length, heads, length], data };
}

/**
 * Lists of slots as lists of positions.
 * @throws RequestError for a slot that holds no key of the query's sequence
 */
function positionsOf(
  { shape, data }: IntegerTensor,
  sequences: readonly Sequence[],
  { groups, slotsPerGroup, slots }: StoredRows,
): IntegerTensor {
  const [heads, length] = shape.slice(-2);
  const positions = new Int32Array(data.length);
  const positionOf = new Int32Array(groups * slotsPerGroup).fill(-1);
  sequences.forEach(({ firstQuery, queries, firstKey, keys }, sequence) => {
    for (let key = 0; key < keys; key++) positionOf[slots[firstKey + key]] = key;
    const end = (firstQuery + queries) * heads * length;
    for (let at = firstQuery * heads * length; at < end; at++) {
      const slot = data[at];
      const position = slot === -1 ? -1 : (positionOf[slot] ?? -1);
      if (slot !== -1 && position === -1) {
        const query = Math.floor(at / (heads * length)) - firstQuery;
        throw new RequestError(
          `kv_index: entry ${at % length} of the list of query ${query} of sequence ${sequence} is slot ${slot}, which holds no key of the sequence`,
        );
      }
      positions[at] = position;
    }
    for (let key = 0; key < keys; key++) positionOf[slots[firstKey + key]] = -1;
  });
  return { shape, data: positions };
}

/**
 * The lists of keys of a problem's queries, as positions of their sequences; null for a problem without lists.
 * @param sequences null for a problem that is one tensor of batches
 * @throws RequestError for lists of another form, and slots that are no key's
 */
export function keyListsOf(
  inputs: ListInputs,
  settings: ProblemSettings,
  sequences: PlacedSequences | null,
): KeyLists | null {
  const posed = posedLists(inputs, settings);
  if (posed === null) return null;
  const { tensor, blockKeys } = posed;
  const areSlots = posed.name === 'kv_index' && settings.kvIndexOf === 'slots';
  if (sequences === null) {
    if (areSlots)
      throw new RequestError(
        'kv_index lists slots of a cache, but the keys are in no cache; give a block_table, or list positions',
      );
    return { indices: tensor, blockKeys, blockQueries: settings.blockQ ?? 1 };
  }
  const { queries, keys } = sequences;
  const used = ofUsedQueries(posed, queries.rows);
  const indices = areSlots
    ? positionsOf(used, sequencesOf(queries.lengths, keys.lengths), keys.rows)
    : used;
  return { indices, blockKeys, blockQueries: settings.blockQ ?? 1, ...(areSlots && { areSlots }) };
}
