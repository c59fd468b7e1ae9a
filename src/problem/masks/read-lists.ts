import type { KeyLists, Sequence } from '../features.js';
import { mergedRanges, type KeyRange } from '../key-ranges.js';
import type { RowPlace } from '../places.js';

/** The most ranges that are remembered between calls. */
const mostRemembered = 2 ** 17;

/** The sizes of lists: see `KeyLists.indices`. */
interface ListSizes {
  readonly rows: number;
  readonly heads: number;
  readonly length: number;
}

/** The sizes of the tensor of lists; those that it lacks are 1. */
export function listSizes({ indices: { shape } }: KeyLists): ListSizes {
  const [rows, heads, length] = [1, 1, 1, ...shape].slice(-3);
  return { rows, heads, length };
}

/** The facts that tell which list is a row's. */
export interface ListOwner {
  readonly groupSize: number;
  readonly sequences?: readonly Sequence[] | undefined;
}

/** The number of the list of each row, counted over [batch, rows, kv heads]. */
export function listNumbers(
  lists: KeyLists,
  { groupSize, sequences }: ListOwner,
): (place: Pick<RowPlace, 'sequence' | 'head' | 'query'>) => number {
  const { rows, heads } = listSizes(lists);
  const { blockQueries, ofHead } = lists;
  return ({ sequence, head, query }) => {
    const row =
      sequences === undefined
        ? sequence * rows + Math.floor(query / blockQueries)
        : sequences[sequence].firstQuery + query;
    return row * heads + (heads === 1 ? 0 : (ofHead ?? Math.floor(head / groupSize)));
  };
}

/** The entries of a list, unused ones too, as they are given. Shares memory with the lists. */
export function listEntries(lists: KeyLists, number: number): Int32Array {
  const { length } = listSizes(lists);
  return lists.indices.data.subarray(number * length, (number + 1) * length);
}

/** The keys that a list has, as ranges. */
function rangesOf(entries: Int32Array, blockKeys: number, keys: number): readonly KeyRange[] {
  const sorted = entries.filter((entry) => entry >= 0).sort();
  const ranges = Array.from(sorted, (entry) => ({
    begin: entry * blockKeys,
    end: Math.min((entry + 1) * blockKeys, keys),
  }));
  return mergedRanges(ranges);
}

/** The keys of each row's list, counted within its sequence: a few lists are remembered, in O(entries). */
export function listedRanges(
  lists: KeyLists,
  owner: ListOwner,
): (place: RowPlace) => readonly KeyRange[] {
  const numberOf = listNumbers(lists, owner);
  const known = new Map<number, readonly KeyRange[]>();
  let size = 0;
  return (place) => {
    const number = numberOf(place);
    const found = known.get(number);
    if (found !== undefined) return found;
    const ranges = rangesOf(listEntries(lists, number), lists.blockKeys, place.keys);
    if (size + ranges.length > mostRemembered) {
      known.clear();
      size = 0;
    }
    size += ranges.length;
    known.set(number, ranges);
    return ranges;
  };
}

/** The lists of one batch that one kv head reads. Shares memory with the lists. */
export function listsOfHead(
  lists: KeyLists,
  { batch, kvHead }: { readonly batch: number; readonly kvHead: number },
): KeyLists {
  const { rows, heads, length } = listSizes(lists);
  const size = rows * heads * length;
  const data = lists.indices.data.subarray(batch * size, (batch + 1) * size);
  return {
    ...lists,
    indices: { shape: [1, rows, heads, length], data },
    ofHead: lists.ofHead ?? (heads === 1 ? undefined : kvHead),
  };
}
