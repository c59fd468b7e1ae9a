import { hashOfText } from '../../meaning/domains/index.js';
import {
  keysOf,
  type Mask,
  problemMask,
  problemShape,
  rowPlaces,
  type Problem,
  type ProblemShape,
} from '../../problem/index.js';
import type { LaunchTensor } from '../../ptx/launch/index.js';
import {
  givenRoles,
  shapeOfRole,
  type PlacedInput,
  type PlacedRole,
} from '../launch/contract-places.js';

/** A row of an input. */
export interface InputRow {
  /** Of its role, counted within the batch. */
  readonly head: number;
  /** Counted within its sequence. */
  readonly position: number;
  /** A hash of its bits. */
  readonly contents: string;
}

/** What the rows of a problem are asked. */
export interface RowContents {
  /** In the order of the problem: [batch, heads, rows]. */
  readonly rowsOf: (role: PlacedRole) => readonly InputRow[];
  /**
   * A text that rows have in common whose head, query and visible keys and values are the same, these at the same places of their
   * sequences.
   * @param head counted over [batch, heads]
   */
  readonly keyOf: (head: number, row: number) => string;
  /** The same of a row of dQ: what the backward is given for the query counts too. */
  readonly queryKeyOf: (head: number, row: number) => string;
  /**
   * A text that rows of dK or dV have in common of one key and value at one place, whose queries have rows of dQ in common, in one order.
   * @param kvHead counted over [batch, kv heads]
   */
  readonly gradientKeyOf: (kvHead: number, key: number) => string;
}

/** Whether an input has a row for each key; else it has one for each query. */
export function isOfKeys(role: PlacedRole): boolean {
  return role === 'k' || role === 'v';
}

/** The bits of elements as a text. */
function bitsOf({ bytes, elementBits }: LaunchTensor, places: Float64Array): string {
  const size = elementBits / 8;
  let text = '';
  for (const place of places)
    text += String.fromCharCode(...bytes.subarray(place * size, (place + 1) * size));
  return text;
}

/** Places of rows in their sequences. */
function positionsOf({ sequences }: Problem, isOfKeys: boolean, count: number): readonly number[] {
  const positions = Array.from({ length: count }, (_, i) => i);
  for (const { firstQuery, queries, firstKey, keys } of sequences ?? []) {
    const [first, length] = isOfKeys ? [firstKey, keys] : [firstQuery, queries];
    for (let i = 0; i < length; i++) positions[first + i] = i;
  }
  return positions;
}

function readRows(
  problem: Problem,
  { role, tensor, places }: PlacedInput,
  tensors: ReadonlyMap<string, LaunchTensor>,
): readonly InputRow[] {
  const [heads, rows, dim] = shapeOfRole(role, problemShape(problem));
  const positions = positionsOf(problem, isOfKeys(role), rows);
  return Array.from({ length: places.length / dim }, (_, i) => ({
    head: Math.floor(i / rows) % heads,
    position: positions[i % rows],
    contents: hashOfText(
      bitsOf(tensors.get(tensor)!, places.subarray(i * dim, (i + 1) * dim)),
    ).join(),
  }));
}

/** Hashes of keys and values from a first one on, up to each later one; made as far as they are asked for. */
class KeyChains {
  readonly #chains = new Map<number, string[]>();
  readonly #contentsAt: (row: number) => string;

  constructor(contentsAt: (row: number) => string) {
    this.#contentsAt = contentsAt;
  }

  /** A hash of rows `begin` to `end`, the last excluded. */
  of(begin: number, end: number): string {
    let chain = this.#chains.get(begin);
    if (chain === undefined) this.#chains.set(begin, (chain = ['']));
    while (begin + chain.length <= end) {
      const text = `${chain[chain.length - 1]} ${this.#contentsAt(begin + chain.length - 1)}`;
      chain.push(hashOfText(text).join());
    }
    return chain[end - begin];
  }
}

/** A hash for each key of a head of the queries that see it, in their order. */
function hashSeers(
  mask: Mask,
  { heads, kvHeads, groupSize, queries, keys }: ProblemShape,
  kvHead: number,
  queryKeyOf: RowContents['queryKeyOf'],
): readonly string[] {
  const hashes = Array.from({ length: keys }, () => '');
  const firstHead = Math.floor(kvHead / kvHeads) * heads + (kvHead % kvHeads) * groupSize;
  for (let head = firstHead; head < firstHead + groupSize; head++)
    for (let row = 0; row < queries; row++) {
      const own = hashOfText(queryKeyOf(head, row)).join();
      for (const key of keysOf(mask.ranges(head, row)))
        hashes[key] = hashOfText(`${hashes[key]} ${own}`).join();
    }
  return hashes;
}

/** What the rows of a launch's problem are asked, from the bits of its tensors. */
export function readContents(
  problem: Problem,
  placed: readonly PlacedInput[],
  tensors: ReadonlyMap<string, LaunchTensor>,
): RowContents {
  const shape = problemShape(problem);
  const { heads, groupSize, kvHeads, queries, keys } = shape;
  const rows = new Map(placed.map((one) => [one.role, readRows(problem, one, tensors)]));
  const rowsOf = (role: PlacedRole) => rows.get(role) ?? [];
  const mask = problemMask(problem, shape);
  const placeOf = rowPlaces(problem, shape);
  const chains = new Map<number, KeyChains>();
  const keyOf = (head: number, row: number) => {
    const kvHead = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    let ofHead = chains.get(kvHead);
    if (ofHead === undefined) {
      const contentsAt = (key: number) =>
        (['k', 'v'] as const).map((role) => rowsOf(role)[kvHead * keys + key].contents).join(' ');
      chains.set(kvHead, (ofHead = new KeyChains(contentsAt)));
    }
    const known = ofHead;
    const { firstKey } = placeOf(head, row);
    const seen = mask
      .ranges(head, row)
      .map(({ begin, end }) => `${begin - firstKey} ${known.of(begin, end)}`);
    return [head % heads, rowsOf('q')[head * queries + row].contents, ...seen].join(' | ');
  };
  const queryKeyOf = (head: number, row: number) =>
    [
      keyOf(head, row),
      ...givenRoles.map((role) => rowsOf(role).at(head * queries + row)?.contents ?? 'none'),
    ].join(' | ');
  const seers = new Map<number, readonly string[]>();
  return {
    rowsOf,
    keyOf,
    queryKeyOf,
    gradientKeyOf: (kvHead, key) => {
      let known = seers.get(kvHead);
      if (known === undefined)
        seers.set(kvHead, (known = hashSeers(mask, shape, kvHead, queryKeyOf)));
      const at = kvHead * keys + key;
      const { head, position, contents } = rowsOf('k')[at];
      return [head, position, contents, rowsOf('v')[at].contents, known[key]].join(' | ');
    },
  };
}
