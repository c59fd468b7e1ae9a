import { hashOfText } from '../../meaning/domains/index.js';
import { problemMask, problemShape, rowPlaces, type Problem } from '../../problem/index.js';
import type { LaunchTensor } from '../../ptx/launch/index.js';
import type { InputPlaces, InputRole } from '../launch/contract-places.js';

/** A row of Q, K or V. */
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
  readonly rowsOf: (role: InputRole) => readonly InputRow[];
  /**
   * A text that rows have in common whose head, query and visible keys and values are the same, these at the same places of their
   * sequences.
   * @param head counted over [batch, heads]
   */
  readonly keyOf: (head: number, row: number) => string;
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
  { role, tensor, places }: InputPlaces,
  tensors: ReadonlyMap<string, LaunchTensor>,
): readonly InputRow[] {
  const { shape } = problem[role];
  const [heads, rows, dim] = shape.slice(-3);
  const positions = positionsOf(problem, role !== 'q', rows);
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

/** What the rows of a launch's problem are asked, from the bits of its tensors. */
export function readContents(
  problem: Problem,
  placed: readonly InputPlaces[],
  tensors: ReadonlyMap<string, LaunchTensor>,
): RowContents {
  const shape = problemShape(problem);
  const { heads, groupSize, kvHeads, queries, keys } = shape;
  const rows = new Map(placed.map((one) => [one.role, readRows(problem, one, tensors)]));
  const rowsOf = (role: InputRole) => rows.get(role) ?? [];
  const mask = problemMask(problem, shape);
  const placeOf = rowPlaces(problem, shape);
  const chains = new Map<number, KeyChains>();
  return {
    rowsOf,
    keyOf: (head, row) => {
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
    },
  };
}
