import type { KeyLists } from '../../../src/problem/index.js';
import type { RandomValues } from '../values.js';
import { oneOf, shuffled, type FeatureRequest } from './feature-request.js';

/** Keys of a block, beside single keys and the kernel's own blocks. */
const blockSizes: readonly number[] = [2, 16, 64];

/** Shares of the keys, or blocks, that a list has. */
const shares: readonly number[] = [0, 0.05, 0.3, 0.7, 1];

/** Entries of one list, −1 among them. */
function drawEntries(count: number, length: number, random: RandomValues): number[] {
  const all = shuffled(
    Array.from({ length: count }, (_, entry) => entry),
    random,
  );
  const share = oneOf(shares, random);
  const chosen = all.slice(0, Math.min(length, Math.ceil(share * count)));
  const entries = [...chosen, ...new Array<number>(length - chosen.length).fill(-1)];
  return random.integer(0, 1) === 0 ? entries : shuffled(entries, random);
}

/** Lists of keys or of blocks, for each query or for blocks of queries, of each kv head or of all. */
export function drawKeyLists({ sizes, tiling, random }: FeatureRequest): KeyLists {
  const { batch, kvHeads, queries, keys } = sizes;
  const blockKeys =
    random.integer(0, 1) === 0 ? 1 : oneOf([tiling.blockKeys, ...blockSizes], random);
  const blockQueries = random.integer(0, 3) === 0 ? oneOf([2, 16], random) : 1;
  const count = Math.ceil(keys / blockKeys);
  const rows = Math.ceil(queries / blockQueries);
  const heads = oneOf([1, kvHeads], random);
  const length = Math.max(1, random.integer(1, 2) === 1 ? count : Math.ceil(count / 3));
  const lists = Array.from({ length: batch * rows * heads }, () =>
    drawEntries(count, length, random),
  );
  return {
    indices: { shape: [batch, rows, heads, length], data: Int32Array.from(lists.flat()) },
    blockKeys,
    blockQueries,
  };
}

/** Lists without the entries that causal hides from all queries of theirs. */
export function withinCausal(
  lists: KeyLists,
  { queries, keys }: { readonly queries: number; readonly keys: number },
): KeyLists {
  const { indices, blockKeys, blockQueries } = lists;
  const [, rows, heads, length] = indices.shape;
  const data = indices.data.map((entry, at) => {
    const row = Math.floor(at / (heads * length)) % rows;
    const diagonal = Math.min((row + 1) * blockQueries, queries) - 1 + keys - queries;
    return entry * blockKeys > diagonal ? -1 : entry;
  });
  return { ...lists, indices: { ...indices, data } };
}
