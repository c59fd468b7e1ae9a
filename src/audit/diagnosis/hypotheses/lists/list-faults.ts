import { storedOf, type Problem } from '../../../../problem/index.js';
import type { Hypothesis, HypothesisContext, HypothesisFamily } from '../../hypothesis.js';
import { predictWeighted, type RowPrediction } from '../../prediction.js';
import { ListedRows, type CountedKeys, type ListedRow } from './listed-row.js';

/** A wrong reading of lists: the keys that a row sees by it; null where nothing is known of the row. */
interface ListFault {
  readonly id: string;
  readonly statement: string;
  readonly keysOf: (row: ListedRow) => CountedKeys | null;
}

const directions = [
  [1, 'behind'],
  [-1, 'before'],
] as const;

/** Lists of other rows. */
function* otherLists(rows: ListedRows): Generator<ListFault> {
  const of = (row: ListedRow, list: Int32Array | null) => rows.keysOf(row, list ?? row.entries);
  for (const [by, where] of directions) {
    yield {
      id: 'list-of-other-query',
      statement: `each query reads the list of the query ${where} it`,
      keysOf: (row) => of(row, row.listAt({ query: by })),
    };
    yield {
      id: 'list-of-other-head',
      statement: `each kv head reads the list of the one ${where} it`,
      keysOf: (row) => of(row, row.listAt({ kvHead: by })),
    };
    yield {
      id: 'list-of-other-sequence',
      statement: `each batch entry reads the list of the one ${where} it`,
      keysOf: (row) => of(row, row.listAt({ sequence: by })),
    };
  }
  yield {
    id: 'list-of-other-query',
    statement: 'every query reads the list of the first',
    keysOf: (row) => of(row, row.listAt({ query: -row.place.query })),
  };
  yield {
    id: 'list-of-other-sequence',
    statement: 'every batch entry reads the list of the first',
    keysOf: (row) => of(row, row.listAt({ sequence: -row.place.sequence, query: 0 })),
  };
}

/** Tiles of entries that kernels read at a time. */
const entryTiles: readonly number[] = [16, 32, 64, 128];

/** Parts of lists. */
function* partsOfLists(rows: ListedRows): Generator<ListFault> {
  const part = (
    id: string,
    statement: string,
    cut: (entries: Int32Array) => Int32Array,
  ): ListFault => ({ id, statement, keysOf: (row) => rows.keysOf(row, cut(row.entries)) });
  yield part('list-half', 'only the first half of each list is read', (entries) =>
    entries.subarray(0, Math.ceil(entries.length / 2)),
  );
  yield part('list-half', 'only the second half of each list is read', (entries) =>
    entries.subarray(Math.floor(entries.length / 2)),
  );
  yield part('list-end-left-out', 'the last entry of each list is left out', (entries) =>
    entries.subarray(0, -1),
  );
  yield part('list-end-left-out', 'the first entry of each list is left out', (entries) =>
    entries.subarray(1),
  );
  yield part('list-stops-at-none', 'a list is read up to its first -1 only', (entries) => {
    const end = entries.findIndex((entry) => entry < 0);
    return end < 0 ? entries : entries.subarray(0, end);
  });
  for (const tile of entryTiles)
    yield part(
      'list-tail-left-out',
      `entries behind the last whole ${tile} of each list are left out`,
      (entries) => entries.subarray(0, Math.floor(entries.length / tile) * tile),
    );
}

/** Entries that are read as other keys. */
function* movedEntries(rows: ListedRows): Generator<ListFault> {
  const { blockKeys } = rows.lists;
  const unit = blockKeys === 1 ? 'key' : 'block';
  for (const [by, where] of directions)
    yield {
      id: 'list-off-by-one',
      statement: `each entry of a list is read as the ${unit} ${where} it`,
      keysOf: (row) =>
        rows.keysOf(
          row,
          row.entries.map((entry) => (entry < 0 ? -1 : entry + by)),
        ),
    };
  const last = ({ place }: ListedRow) => Math.ceil(place.keys / blockKeys) - 1;
  for (const [key, words] of [
    [last, 'last'],
    [() => 0, 'first'],
  ] as const) {
    yield {
      id: 'list-none-as-key',
      statement: `each -1 of a list is read as the ${words} ${unit}`,
      keysOf: (row) =>
        rows.keysOf(
          row,
          row.entries.map((e) => (e < 0 ? key(row) : e)),
        ),
    };
    yield {
      id: 'list-none-as-key',
      statement: `-1 in a list is read as the ${words} ${unit}, once`,
      keysOf: (row) => rows.keysOf(row, new Set(row.entries.map((e) => (e < 0 ? key(row) : e)))),
    };
  }
  if (blockKeys === 1) return;
  for (const size of [1, blockKeys / 2, blockKeys * 2])
    yield {
      id: 'list-block-size',
      statement: `blocks of a list are taken to have ${size} keys, not ${blockKeys}`,
      keysOf: (row) => rows.keysOf(row, row.entries, Math.max(1, Math.floor(size))),
    };
}

/** Blocks of which a part is left out. */
function* partsOfBlocks(rows: ListedRows, { causal }: Problem): Generator<ListFault> {
  const { blockKeys } = rows.lists;
  if (blockKeys === 1) return;
  const without = (
    id: string,
    statement: string,
    isLeft: (key: number, row: ListedRow) => boolean,
  ): ListFault => ({
    id,
    statement,
    keysOf: (row) => {
      const all = rows.keysOf(row, row.entries);
      return new Map([...all].filter(([key]) => isLeft(key - row.place.firstKey, row)));
    },
  });
  yield without(
    'list-block-tail',
    'the last block of the keys is left out where it is not whole',
    (key, { place }) => key < Math.floor(place.keys / blockKeys) * blockKeys,
  );
  yield without(
    'list-block-tail',
    'the last key of each block is left out',
    (key) => key % blockKeys !== blockKeys - 1,
  );
  const diagonalBlock = ({ place }: ListedRow) =>
    Math.floor((place.query + place.keys - place.queries) / blockKeys);
  if (!causal) return;
  yield without(
    'list-block-of-diagonal',
    'the block that causal cuts is left out',
    (key, row) => Math.floor(key / blockKeys) !== diagonalBlock(row),
  );
}

/** Slots of a cache taken for positions, and positions for slots. */
function* slotFaults(rows: ListedRows, problem: Problem): Generator<ListFault> {
  const stored = storedOf(problem);
  if (stored === null || rows.lists.blockKeys !== 1) return;
  const { slots } = stored.keys;
  const keyOf = new Map<number, number>();
  slots.forEach((slot, key) => keyOf.set(slot, key));
  const counted = (keys: readonly (number | undefined)[]): CountedKeys | null => {
    const all: CountedKeys = new Map();
    for (const key of keys) {
      if (key === undefined) return null;
      all.set(key, (all.get(key) ?? 0) + 1);
    }
    return all;
  };
  const keysOf = (row: ListedRow) => [...rows.keysOf(row, row.entries).keys()];
  yield {
    id: 'list-positions-as-slots',
    statement: 'the positions of a list are read as slots of the cache: the block table is ignored',
    keysOf: (row) => counted(keysOf(row).map((key) => keyOf.get(key - row.place.firstKey))),
  };
  if (rows.lists.areSlots !== true) return;
  yield {
    id: 'list-slots-as-positions',
    statement: 'the slots of a list are read as positions of the sequence',
    keysOf: (row) =>
      counted(
        keysOf(row).map((key) =>
          slots[key] < row.place.keys ? slots[key] + row.place.firstKey : undefined,
        ),
      ),
  };
}

/** Entries that are none, and count in the row sum with a score of 0 all the same. */
function noneInSum(rows: ListedRows): Hypothesis {
  return {
    id: 'list-none-in-sum',
    technique: 'row-sum',
    statement: 'each -1 of a list counts in the row sum, as a key with a score of 0',
    predict: (row): RowPrediction => {
      const listed = rows.of(row);
      if (listed.none === 0) return row.correct;
      const { weights, values, lse } = rows.weigh(listed, rows.keysOf(listed, listed.entries));
      const most = Math.max(lse, 0);
      const all = most + Math.log(Math.exp(lse - most) + listed.none * Math.exp(-most));
      const factor = Math.exp(lse - all);
      return predictWeighted(row, { weights: weights.map((w) => w * factor), values, lse: all });
    },
  };
}

/** Lists that are looked at entry by entry. */
const mostLists = 4;

/** The share of a row's squared error that one entry must leave at most. */
const mostLeft = 1 / 4;

/** One entry of a damaged row's list that is left out, or counted twice: the one that leaves least of the error. */
function* oneEntry(context: HypothesisContext, rows: ListedRows): Generator<Hypothesis> {
  const { sample, shape } = context;
  const seen = new Set<number>();
  for (const row of sample) {
    const listed = rows.of(row);
    if (!row.damaged || seen.has(listed.number) || seen.size === mostLists) continue;
    seen.add(listed.number);
    const { weights, values } = rows.weigh(listed, rows.keysOf(listed, listed.entries));
    const { observed, correct } = row;
    let best = { left: Infinity, index: -1, count: 0 };
    const before = observed.reduce((sum, x, c) => sum + (x - correct.out[c]) ** 2, 0);
    listed.entries.forEach((entry, index) => {
      const keys = [...rows.keysOf(listed, [entry]).keys()];
      for (const count of keys.length === 0 ? [] : [0, 2]) {
        const change = count - 1;
        const moved = new Float64Array(shape.vDim);
        let weight = 0;
        for (const key of keys) {
          weight += weights[key];
          for (let c = 0; c < shape.vDim; c++)
            moved[c] += weights[key] * values[key * shape.vDim + c];
        }
        let left = 0;
        for (let c = 0; c < shape.vDim; c++)
          left += (observed[c] - (correct.out[c] + change * moved[c]) / (1 + change * weight)) ** 2;
        if (left < best.left) best = { left, index, count };
      }
    });
    if (!(best.left < mostLeft * before)) continue;
    const { index, count } = best;
    const { place, number } = listed;
    const unit = rows.lists.blockKeys === 1 ? 'key' : 'block';
    yield {
      id: count === 0 ? 'list-entry-left-out' : 'list-entry-twice',
      technique: null,
      statement: `entry ${index} of the list of query ${place.query} of batch ${place.sequence}, ${unit} ${listed.entries[index]}, is ${count === 0 ? 'left out' : 'counted twice'}`,
      local: true,
      adjusted: true,
      predict: (other) => {
        const own = rows.of(other);
        if (own.number !== number) return other.correct;
        const keys = rows.keysOf(own, own.entries);
        for (const key of rows.keysOf(own, [own.entries[index]]).keys())
          if (count === 0) keys.delete(key);
          else keys.set(key, count);
        return rows.predict(own, keys);
      },
    };
  }
}

/** Faults in the reading of lists of keys. */
export const listHypotheses: HypothesisFamily = function* (context) {
  const { problem } = context.reader;
  const { keyLists } = problem;
  if (keyLists === undefined) return;
  const rows = new ListedRows(context, keyLists);
  const faults = [
    ...otherLists(rows),
    ...partsOfLists(rows),
    ...movedEntries(rows),
    ...partsOfBlocks(rows, problem),
    ...slotFaults(rows, problem),
  ];
  for (const { id, statement, keysOf } of faults)
    yield {
      id,
      technique: null,
      statement,
      predict: (row) => {
        const listed = rows.of(row);
        const keys = keysOf(listed);
        return keys === null ? null : rows.predict(listed, keys);
      },
    };
  yield noneInSum(rows);
  yield* oneEntry(context, rows);
};
