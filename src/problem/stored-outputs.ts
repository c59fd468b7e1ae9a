import {
  allocateStorage,
  encodeFromFloat64,
  formats,
  patternsOf,
  storageOf,
  type Tensor,
} from '../formats/index.js';
import { RequestError } from '../request-error.js';
import type { Sequence } from './features.js';
import { gatherRows, scatterRows } from './gather-rows.js';
import type { Problem } from './problem.js';
import type { Quantity } from './quantities.js';
import { posedRows, storedOf } from './store-problem.js';
import { slotCount, type StoredRows } from './stored.js';

/** The posed rows that a quantity has one row for each of. */
function rowsOf(problem: Problem, { axes: [, , rows] }: Quantity): StoredRows | null {
  const stored = posedRows(problem);
  if (stored === null) return null;
  return rows === 'keys' ? stored.keys : stored.queries;
}

function misshapen(quantity: Quantity, { shape }: Tensor, wanted: string): RequestError {
  return new RequestError(
    `${quantity.prose} has shape [${shape.join(', ')}] but the problem, as it is stored, asks for ${wanted}; pass the matching tensor`,
  );
}

function headsOf(problem: Problem, { axes: [, heads] }: Quantity): number {
  return (heads === 'kvHeads' ? problem.k : problem.q).shape.at(-3) ?? 0;
}

function gatherVectors(
  problem: Problem,
  quantity: Quantity,
  tensor: Tensor,
  rows: StoredRows,
): Tensor {
  const { form, groups, slotsPerGroup, headsFirst } = rows;
  const heads = headsOf(problem, quantity);
  const dim = tensor.shape.at(-1) ?? 0;
  const slots = headsFirst ? [heads, slotsPerGroup, dim] : [slotsPerGroup, heads, dim];
  const wanted = form === 'packed' ? slots : [groups, ...slots];
  const isRank3 = form === 'padded' && groups === 1 && tensor.shape.length === 3;
  if (String(isRank3 ? [1, ...tensor.shape] : tensor.shape) !== String(wanted))
    throw misshapen(quantity, tensor, `[${wanted.slice(0, -1).join(', ')}, dim]`);
  return gatherRows({ ...tensor, shape: wanted }, rows);
}

/** The place of a row's number, from its head, its slot, its sequence and its query. */
type NumberAt = (head: number, slot: number, sequence: number, query: number) => number;

/**
 * The places of the numbers of rows in a tensor of a shape; null for an impossible shape. Packed: [heads, total]
 * (FlashAttention), [total, heads] (FlashInfer) or [sequences, heads, longest] (older FlashAttention); padded: [batch,
 * heads, seqlen], also with batch and heads merged. A last dimension of 1 is dropped, and rows may be padded beyond
 * their number.
 */
function numberPlaces(
  shape: readonly number[],
  { form, groups, slotsPerGroup }: StoredRows,
  heads: number,
  sequences: readonly Sequence[],
): NumberAt | null {
  const [a, b, c] = shape;
  const isRank = (rank: number) => shape.length === rank;
  if (form !== 'packed') {
    if (isRank(3) && a === groups && b === heads && c >= slotsPerGroup)
      return (head, slot) =>
        (Math.floor(slot / slotsPerGroup) * heads + head) * c + (slot % slotsPerGroup);
    if (isRank(2) && a === groups * heads && b >= slotsPerGroup)
      return (head, slot) =>
        (Math.floor(slot / slotsPerGroup) * heads + head) * b + (slot % slotsPerGroup);
    return null;
  }
  if (isRank(2) && a === heads && b === slotsPerGroup) return (head, slot) => head * b + slot;
  if (isRank(2) && a === slotsPerGroup && b === heads) return (head, slot) => slot * b + head;
  if (isRank(2) && a === heads && b > slotsPerGroup) return (head, slot) => head * b + slot;
  const longest = sequences.reduce((most, { queries }) => Math.max(most, queries), 0);
  if (isRank(3) && a === sequences.length && b === heads && c >= longest)
    return (head, _, sequence, query) => (sequence * heads + head) * c + query;
  return null;
}

function gatherNumbers(
  problem: Problem,
  quantity: Quantity,
  tensor: Tensor,
  rows: StoredRows,
): Tensor {
  const heads = headsOf(problem, quantity);
  const { sequences = [] } = problem;
  const places = (shape: readonly number[]) => numberPlaces(shape, rows, heads, sequences);
  const at =
    places(tensor.shape) ?? (tensor.shape.at(-1) === 1 ? places(tensor.shape.slice(0, -1)) : null);
  if (at === null) {
    const { form, groups, slotsPerGroup } = rows;
    const outer = form === 'packed' ? [heads] : [groups, heads];
    throw misshapen(quantity, tensor, `[${[...outer, slotsPerGroup].join(', ')}]`);
  }
  const format = formats[tensor.format];
  const source = patternsOf(tensor.data, format);
  const data = allocateStorage(format, heads * rows.slots.length);
  const target = patternsOf(data, format);
  const words = format.storageBits === 64 ? 2 : 1;
  sequences.forEach(({ firstQuery, queries }, sequence) => {
    for (let query = 0; query < queries; query++)
      for (let head = 0; head < heads; head++) {
        const row = firstQuery + query;
        const from = at(head, rows.slots[row], sequence, query) * words;
        const to = (head * rows.slots.length + row) * words;
        for (let word = 0; word < words; word++) target[to + word] = source[from + word];
      }
  });
  return {
    format: tensor.format,
    shape: [1, heads, rows.slots.length],
    data: storageOf(format, target),
  };
}

/**
 * An output of a kernel, in the layout of the posed problem, in its canonical shape: the used rows, one behind
 * the other. A tensor of a problem without packed sequences is returned as it is.
 * @throws RequestError for a shape that the output cannot have
 */
export function gatherOutput(problem: Problem, quantity: Quantity, tensor: Tensor): Tensor {
  const rows = rowsOf(problem, quantity);
  if (rows === null) return tensor;
  const gather = quantity.row === 'vector' ? gatherVectors : gatherNumbers;
  return gather(problem, quantity, tensor, rows);
}

/**
 * The reverse of `gatherOutput`: a canonical output in the layout of the posed problem, NaN in unused rows. Numbers
 * of packed rows are [heads, total], of padded ones [batch, heads, seqlen].
 */
export function poseOutput(problem: Problem, quantity: Quantity, tensor: Tensor): Tensor {
  const rows = rowsOf(problem, quantity);
  if (rows === null) return tensor;
  const { format } = tensor;
  const filler = encodeFromFloat64(formats[format], Float64Array.of(NaN));
  if (quantity.row === 'vector') return scatterRows(tensor, rows, filler);
  const heads = headsOf(problem, quantity);
  const numbers = { ...tensor, shape: [1, heads, rows.slots.length, 1] };
  const scattered = scatterRows(numbers, { ...rows, headsFirst: true }, filler);
  const sizes = rows.form === 'packed' ? [heads] : [rows.groups, heads];
  return { ...scattered, shape: [...sizes, rows.slotsPerGroup] };
}

/** Number of unused rows of an output as posed, which are not judged. */
export function unusedRows(problem: Problem): number {
  const stored = storedOf(problem);
  return stored === null ? 0 : slotCount(stored.queries) - stored.queries.slots.length;
}
