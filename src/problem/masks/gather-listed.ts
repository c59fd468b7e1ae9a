import { scalesOfRows, type Tensor } from '../../formats/index.js';
import { gatherRows } from '../gather-rows.js';
import type { KeyLists, Sequence } from '../features.js';
import { countKeys, keysOf, mergedRanges, type KeyRange } from '../key-ranges.js';
import { problemMask } from './mask.js';
import type { Problem, ProblemShape } from '../problem.js';

/** The most rows that share gathered keys: those of a tile. */
const mostRows = 64;

/** The rows that loops take for some rows: they take four at a time. */
function paddedRows(rows: number): number {
  return Math.ceil(rows / 4) * 4;
}

/** Rows that share gathered keys. */
interface Run {
  readonly first: number;
  readonly rows: number;
  /** The keys that any of them sees. */
  readonly keys: readonly KeyRange[];
}

/** Products that the rows of a run take. */
function costOf({ rows, keys }: Run): number {
  return paddedRows(rows) * countKeys(keys);
}

/** Rows in runs such that few products are taken for keys that a row does not see. */
function runsOf(ranges: readonly (readonly KeyRange[])[], first: number, rows: number): Run[] {
  const all = ranges.slice(first, first + rows);
  const whole = { first, rows, keys: mergedRanges(all.flat()) };
  if (rows === 1) return [whole];
  const half = rows <= 4 ? 1 : Math.max(4, Math.floor(rows / 8) * 4);
  const halves = [...runsOf(ranges, first, half), ...runsOf(ranges, first + half, rows - half)];
  const apart = halves.reduce((sum, run) => sum + costOf(run), 0);
  return rows > mostRows || apart < costOf(whole) ? halves : [whole];
}

/** The given keys of a tensor of one head, in their order, factors too. */
function gathered(tensor: Tensor, keys: Int32Array): Tensor {
  const { format, shape, data } = tensor;
  const slots = shape.at(-2) ?? 0;
  const plain: Tensor = { format, shape: [1, 1, slots, shape.at(-1) ?? 0], data };
  const rows = gatherRows(plain, {
    form: 'padded',
    groups: 1,
    slotsPerGroup: slots,
    headsFirst: true,
    slots: keys,
  });
  const scales = scalesOfRows(tensor, [1, 1, keys.length], (row) => keys[row]);
  return { ...rows, ...(scales !== undefined && { scales }) };
}

/** The places among a run's keys of the keys that each of its rows sees, as lists; null where each sees them all. */
function listsWithin(
  runs: readonly Run[],
  ranges: readonly (readonly KeyRange[])[],
): KeyLists | null {
  const counts = ranges.map(countKeys);
  const isAll = runs.every(({ first, rows, keys }) =>
    counts.slice(first, first + rows).every((count) => count === countKeys(keys)),
  );
  if (isAll) return null;
  const most = counts.reduce((longest, count) => Math.max(longest, count), 1);
  const data = new Int32Array(ranges.length * most).fill(-1);
  for (const { first, rows, keys } of runs) {
    const placeOf = new Map<number, number>();
    for (const key of keysOf(keys)) placeOf.set(key, placeOf.size);
    for (let row = first; row < first + rows; row++) {
      let at = row * most;
      for (const key of keysOf(ranges[row])) data[at++] = placeOf.get(key) ?? -1;
    }
  }
  return {
    indices: { shape: [1, ranges.length, 1, most], data },
    blockKeys: 1,
    blockQueries: 1,
  };
}

/** Features that go by the places of keys, which a gathered problem does not have. */
function goesByPlaces({ bias, alibiSlopes, dropout }: Problem): boolean {
  return bias !== undefined || alibiSlopes !== undefined || dropout !== undefined;
}

/**
 * A problem of one head whose queries list few of the keys, with these keys alone: packed sequences, each of some queries and
 * the keys that any of them sees, in ascending order. O, the LSE and all that is measured by row are those of the problem;
 * the numbers of keys are not. Null where this does not save half of the products, and for a problem without lists, of several heads, or
 * with features that go by the places of keys. Cost and memory are those of the listed keys.
 */
export function gatherListed(problem: Problem, shape: ProblemShape): Problem | null {
  const { keyLists, q, k, v, scale, softcap, sink } = problem;
  const { batch, heads, queries, keys } = shape;
  if (keyLists === undefined || batch * heads !== 1 || queries === 0 || goesByPlaces(problem))
    return null;
  const mask = problemMask(problem, shape);
  const ranges = Array.from({ length: queries }, (_, query) => mask.ranges(0, query));
  const runs = runsOf(ranges, 0, queries);
  const products = runs.reduce((sum, run) => sum + costOf(run), 0);
  if (products > (paddedRows(queries) * keys) / 2) return null;
  const count = runs.reduce((sum, run) => sum + countKeys(run.keys), 0);
  const slots = new Int32Array(count);
  let firstKey = 0;
  const sequences = runs.map((run): Sequence => {
    const sequence = { firstQuery: run.first, queries: run.rows, firstKey, keys: 0 };
    for (const key of keysOf(run.keys)) slots[firstKey++] = key;
    return { ...sequence, keys: firstKey - sequence.firstKey };
  });
  const lists = listsWithin(runs, ranges);
  return {
    q,
    k: gathered(k, slots),
    v: gathered(v, slots),
    scale,
    causal: false,
    window: null,
    softcap,
    sequences,
    ...(sink && { sink }),
    ...(lists !== null && { keyLists: lists }),
  };
}
