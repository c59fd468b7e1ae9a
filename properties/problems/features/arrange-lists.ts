import { listSizes, type KeyLists, type Sequence } from '../../../src/problem/index.js';

/** The batches, kv heads (null: all), queries and keys to keep, in order. */
interface ListSelection {
  readonly batches: readonly number[];
  readonly kvHeads: readonly number[] | null;
  readonly queries: readonly number[];
  readonly keys: readonly number[];
}

function everyIndex(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

/** The new places of each key. */
function placesOf(keys: readonly number[]): Map<number, number[]> {
  const places = new Map<number, number[]>();
  keys.forEach((key, at) => {
    const known = places.get(key);
    if (known === undefined) places.set(key, [at]);
    else known.push(at);
  });
  return places;
}

/**
 * Lists of the kept rows, with the places that their keys have now: keys that are left out become −1, and a key that is there
 * several times is listed as often. Blocks stay what they are as far as there are keys: see `arrangementLoss`.
 * @param sequences where the problem's are packed: not arranged with blocks or keys in another order
 */
export function arrangeLists(
  lists: KeyLists,
  { batches, kvHeads, queries, keys }: ListSelection,
  sequences: readonly Sequence[] | undefined,
): KeyLists {
  const { blockKeys, blockQueries, indices } = lists;
  const { rows, heads, length } = listSizes(lists);
  if (sequences !== undefined)
    throw new TypeError('lists of packed sequences are not put in another order');
  const places = placesOf(keys);
  const blocks = Math.ceil(keys.length / blockKeys);
  const placed = (entry: number): readonly number[] => {
    if (entry < 0) return [-1];
    if (blockKeys > 1) return [entry < blocks ? entry : -1];
    return places.get(entry) ?? [-1];
  };
  const ofQueries =
    blockQueries === 1 ? queries : everyIndex(Math.ceil(queries.length / blockQueries));
  const ofHeads = heads === 1 || kvHeads === null ? everyIndex(heads) : kvHeads;
  const arranged = batches.flatMap((batch) =>
    ofQueries.flatMap((row) =>
      ofHeads.map((head) => {
        const at = ((batch * rows + row) * heads + head) * length;
        return Array.from(indices.data.subarray(at, at + length)).flatMap(placed);
      }),
    ),
  );
  const most = arranged.reduce((longest, list) => Math.max(longest, list.length), 1);
  const data = new Int32Array(arranged.length * most).fill(-1);
  arranged.forEach((list, at) => data.set(list, at * most));
  return {
    ...lists,
    indices: { shape: [batches.length, ofQueries.length, ofHeads.length, most], data },
  };
}
