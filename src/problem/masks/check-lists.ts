import { RequestError } from '../../request-error.js';
import type { KeyLists } from '../features.js';
import { rowPlaces, type RowPlace } from '../places.js';
import type { Problem, ProblemShape } from '../problem.js';
import { listEntries, listNumbers, listSizes } from './read-lists.js';

/** The name of lists in a problem file. */
export function listsName({ blockKeys }: Pick<KeyLists, 'blockKeys'>): 'kv_index' | 'block_index' {
  return blockKeys === 1 ? 'kv_index' : 'block_index';
}

/** @throws RequestError for lists of other sizes than the problem has */
export function checkListSizes(
  lists: KeyLists,
  { sequences, rows }: Pick<Problem, 'sequences' | 'rows'>,
  { batch, kvHeads, queries }: ProblemShape,
): void {
  const { blockKeys, blockQueries, indices, ofHead } = lists;
  const name = listsName(lists);
  for (const [of, size] of Object.entries({ block_size: blockKeys, block_q: blockQueries }))
    if (!Number.isSafeInteger(size) || size < 1)
      throw new RequestError(`${of} is ${size}; give a whole number, 1 or more`);
  if (sequences !== undefined && blockQueries !== 1)
    throw new RequestError(
      `${name} has a list for every ${blockQueries} queries of packed sequences; give each query its own`,
    );
  const count = Math.ceil((rows?.of ?? queries) / blockQueries);
  const found = listSizes(lists);
  const batches = indices.shape.length === 4 ? indices.shape[0] : 1;
  const fits =
    [3, 4].includes(indices.shape.length) &&
    batches === batch &&
    found.rows === count &&
    (found.heads === 1 || found.heads === kvHeads || ofHead !== undefined);
  if (!fits)
    throw new RequestError(
      `${name} has shape [${indices.shape.join(', ')}]; give it [${batch}, ${count}, ${kvHeads === 1 ? '1' : `${kvHeads} or 1`}, n]${batch === 1 ? ', or without the first' : ''}`,
    );
}

/** A list, in words. */
function listWords(
  lists: KeyLists,
  { sequence, head, query }: RowPlace,
  groupSize: number,
): string {
  const { heads } = listSizes(lists);
  const ofHead = heads === 1 ? '' : `, kv head ${lists.ofHead ?? Math.floor(head / groupSize)}`;
  return `the list of query ${query} of batch ${sequence}${ofHead}`;
}

/** Checks the entries of lists one after the other; remembers in which list each key was last. */
class EntryCheck {
  readonly #lists: KeyLists;
  readonly #causal: boolean;
  readonly #groupSize: number;
  readonly #lastIn: Int32Array;

  constructor(lists: KeyLists, { causal }: Problem, { groupSize, keys }: ProblemShape) {
    this.#lists = lists;
    this.#causal = causal;
    this.#groupSize = groupSize;
    this.#lastIn = new Int32Array(Math.ceil(keys / lists.blockKeys)).fill(-1);
  }

  /** @throws RequestError for an entry that is no key or block, is there before, or is hidden by causal */
  check(number: number, place: RowPlace): void {
    const { blockKeys, blockQueries } = this.#lists;
    const count = Math.ceil(place.keys / blockKeys);
    const lastQuery = Math.min(
      (Math.floor(place.query / blockQueries) + 1) * blockQueries,
      place.queries,
    );
    const diagonal = lastQuery - 1 + place.keys - place.queries;
    const entries = listEntries(this.#lists, number);
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i];
      if (entry === -1) continue;
      if (entry < -1 || entry >= count)
        this.#refuse(place, i, `is ${entry}; there are ${count}, from 0 on, and -1 is none`);
      if (this.#causal && entry * blockKeys > diagonal)
        this.#refuse(place, i, `is ${entry}, which causal hides from it; give -1 for none`);
      if (this.#lastIn[entry] === number)
        this.#refuse(
          place,
          i,
          `is ${entry}, which is entry ${entries.indexOf(entry)} too; list it once`,
        );
      this.#lastIn[entry] = number;
    }
  }

  #refuse(place: RowPlace, index: number, words: string): never {
    const unit = this.#lists.blockKeys === 1 ? 'key' : `block of ${this.#lists.blockKeys} keys`;
    throw new RequestError(
      `${listsName(this.#lists)}: entry ${index} of ${listWords(this.#lists, place, this.#groupSize)} is to be a ${unit}, but ${words}`,
    );
  }
}

/**
 * Checks every entry of lists, in O(entries).
 * @throws RequestError for an entry that is no key or block of the query's sequence, that its list has before, or that lies
 * beyond the causal limit of its query
 */
export function checkListEntries(lists: KeyLists, problem: Problem, shape: ProblemShape): void {
  const numberOf = listNumbers(lists, { ...shape, sequences: problem.sequences });
  const placeOf = rowPlaces(problem, shape);
  const check = new EntryCheck(lists, problem, shape);
  const { batch, heads, groupSize, queries } = shape;
  const headsPerList = listSizes(lists).heads === 1 ? heads : groupSize;
  for (let head = 0; head < batch * heads; head += headsPerList)
    for (let query = 0, last = -1; query < queries; query++) {
      const place = placeOf(head, query);
      const number = numberOf(place);
      if (number !== last) check.check(number, place);
      last = number;
    }
}
