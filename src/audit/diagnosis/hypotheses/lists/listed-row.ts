import {
  hasKey,
  listEntries,
  listNumbers,
  listSizes,
  mergedRanges,
  problemMask,
  type KeyLists,
  type Mask,
  type RowPlace,
} from '../../../../problem/index.js';
import type { HypothesisContext, SampleRow } from '../../hypothesis.js';
import {
  predictWeighted,
  softmaxRow,
  type RowPrediction,
  type WeightedRow,
} from '../../prediction.js';

/** Keys, counted over those of all sequences, and how often each counts. */
export type CountedKeys = Map<number, number>;

/** One row of the sample and its list. */
export interface ListedRow {
  readonly row: SampleRow;
  readonly place: RowPlace;
  /** The number of its list: see `listNumbers`. */
  readonly number: number;
  readonly entries: Int32Array;
  /** The number of entries that are none. */
  readonly none: number;
  /** The list of a row elsewhere; null where there is none. */
  readonly listAt: (by: ListOffset) => Int32Array | null;
}

/** Distances from a row to the one whose list is meant. */
interface ListOffset {
  readonly query?: number;
  readonly kvHead?: number;
  readonly sequence?: number;
}

/** Rows of a problem with lists, and what they give for other lists. */
export class ListedRows {
  readonly lists: KeyLists;
  readonly #context: HypothesisContext;
  readonly #others: Mask;
  readonly #numberOf: ReturnType<typeof listNumbers>;

  constructor(context: HypothesisContext, lists: KeyLists) {
    const { problem } = context.reader;
    const { keyLists, ...others } = problem;
    void keyLists;
    this.lists = lists;
    this.#context = context;
    // Lists of keys leave out what causal hides; a kernel that reads other keys does not ask again.
    const isAsked = lists.blockKeys > 1 || problem.window !== null;
    this.#others = problemMask(isAsked ? others : { ...others, causal: false }, context.shape);
    const { sequences } = problem;
    this.#numberOf = listNumbers(lists, { ...context.shape, sequences });
  }

  of(row: SampleRow): ListedRow {
    const place = this.#context.reader.place(row.row);
    const number = this.#numberOf(place);
    const entries = listEntries(this.lists, number);
    const none = entries.reduce((count, entry) => count + (entry < 0 ? 1 : 0), 0);
    const listAt = (by: ListOffset) => this.#listAt(place, by);
    return { row, place, number, entries, none, listAt };
  }

  #listAt(place: RowPlace, { query = 0, kvHead = 0, sequence = 0 }: ListOffset): Int32Array | null {
    const { shape, reader } = this.#context;
    const { sequences } = reader.problem;
    const other = {
      sequence: place.sequence + sequence,
      head: place.head + kvHead * shape.groupSize,
      query: place.query + query,
    };
    if (kvHead !== 0 && listSizes(this.lists).heads === 1) return null;
    const count = sequences?.length ?? shape.batch;
    if (other.sequence < 0 || other.sequence >= count) return null;
    const queries = sequences?.[other.sequence].queries ?? place.queries;
    const isThere =
      other.head >= 0 && other.head < shape.heads && other.query >= 0 && other.query < queries;
    return isThere ? listEntries(this.lists, this.#numberOf(other)) : null;
  }

  /** The keys that entries stand for, where no other mask hides them; entries beyond the keys are none. */
  keysOf(
    { row, place }: ListedRow,
    entries: Iterable<number>,
    blockKeys = this.lists.blockKeys,
  ): CountedKeys {
    const seen = this.#others.ranges(row.head, row.query);
    const counted: CountedKeys = new Map();
    for (const entry of entries)
      for (let key = entry * blockKeys; entry >= 0 && key < (entry + 1) * blockKeys; key++) {
        const at = place.firstKey + key;
        if (key >= place.keys || !hasKey(seen, at)) break;
        counted.set(at, (counted.get(at) ?? 0) + 1);
      }
    return counted;
  }

  /** The weights of a row that sees keys as often as they count. */
  weigh({ row }: ListedRow, keys: CountedKeys): WeightedRow {
    const { reader } = this.#context;
    const dots = reader.dots(row.row, row.kv);
    const ranges = mergedRanges([...keys.keys()].map((key) => ({ begin: key, end: key + 1 })));
    const scores = reader.maskedScores(
      row.row,
      ranges,
      (key) => reader.score(dots[key], row.row, key) + Math.log(keys.get(key) ?? 1),
    );
    return softmaxRow(scores, reader.valuesOf(row.row, row.kv));
  }

  /** The results of a row that sees keys as often as they count; those of the row where they are its own. */
  predict(listed: ListedRow, keys: CountedKeys): RowPrediction {
    const { row } = listed;
    const own = this.keysOf(listed, listed.entries);
    const isSame = own.size === keys.size && [...own].every(([key, n]) => keys.get(key) === n);
    return isSame ? row.correct : predictWeighted(row, this.weigh(listed, keys));
  }
}
