import { decodeToFloat64, formats, type Tensor } from '../../formats/index.js';
import { RequestError } from '../../request-error.js';
import { broadcastStrides, type BroadcastStrides } from '../broadcast.js';
import { listedRanges } from './read-lists.js';
import { commonRanges, mergedRanges, type KeyRange } from '../key-ranges.js';
import type { BlockMask, BooleanTensor, Segments } from '../features.js';
import { rowPlaces, type RowPlace } from '../places.js';
import type { Problem, ProblemShape } from '../problem.js';
import { problemShape } from '../shape.js';

/** The keys that each query sees. */
export interface Mask {
  /**
   * The keys that a query sees: ranges in ascending order, disjoint, none of them empty; no range for a
   * query that sees nothing.
   * @param head counted over [batch, heads]
   */
  readonly ranges: (head: number, query: number) => readonly KeyRange[];
}

const noKeys: readonly KeyRange[] = [];

/** The keys of a sequence that one of its queries sees by one mask, counted within the sequence. */
type MaskPart = (place: RowPlace) => readonly KeyRange[];

/**
 * The mask of a problem. A query sees a key where all of these allow it: causal and window, aligned to the
 * bottom right (the last query of a sequence sits on its last key), or the prefix in their place; `mask`;
 * `segments`; `blockMask`; `keyLists`; `keyRanges`; a `bias` above −∞; and of packed sequences only its own. Without features a query sees one range at
 * most, in every head the same.
 * @throws RequestError as `problemShape`, where no shape is given
 */
export function problemMask(problem: Problem, shape: ProblemShape = problemShape(problem)): Mask {
  const placeOf = rowPlaces(problem, shape);
  const { mask, bias, segments, blockMask, keyLists, keyRanges, prefix = 0, sequences } = problem;
  const parts: MaskPart[] = [
    ...(mask === undefined ? [] : [tensorPart(mask)]),
    ...(bias === undefined ? [] : [biasPart(bias)]),
    ...(segments === undefined ? [] : [segmentsPart(segments)]),
    ...(blockMask === undefined ? [] : [blocksPart(blockMask)]),
    ...(keyRanges === undefined ? [] : [keyRangesPart(keyRanges)]),
    ...(keyLists === undefined
      ? []
      : [listedRanges(keyLists, { groupSize: shape.groupSize, sequences })]),
  ];
  const ofDiagonal: MaskPart = (place) => {
    const range = diagonalRange(problem, place, place.query);
    if (prefix > 0) return mergedRanges([{ begin: 0, end: Math.min(prefix, place.keys) }, range]);
    return range.begin < range.end ? [range] : noKeys;
  };
  return {
    ranges: (head, query) => {
      const place = placeOf(head, query);
      let ranges = ofDiagonal(place);
      for (const part of parts) {
        if (ranges.length === 0) return noKeys;
        ranges = commonRanges(ranges, part(place));
      }
      const { firstKey } = place;
      if (firstKey === 0) return ranges;
      return ranges.map(({ begin, end }) => ({ begin: begin + firstKey, end: end + firstKey }));
    },
  };
}

/** The keys that causal and window masks leave, aligned to the bottom right; an empty range has begin = end. */
function diagonalRange(
  { causal, window }: Problem,
  { keys, queries }: Pick<ProblemShape, 'keys' | 'queries'>,
  query: number,
): KeyRange {
  const diagonal = query + keys - queries;
  const { left, right } = window ?? { left: -1, right: -1 };
  let begin = 0;
  let end = keys;
  if (causal) end = Math.min(end, diagonal + 1);
  if (right >= 0) end = Math.min(end, diagonal + right + 1);
  if (left >= 0) begin = Math.max(begin, diagonal - left);
  end = Math.max(end, 0);
  return begin < end ? { begin, end } : { begin: end, end };
}

/** The runs of keys, from `first` on, that are visible. */
function runs(isVisible: (at: number) => boolean, first: number, keys: number): KeyRange[] {
  const ranges: KeyRange[] = [];
  for (let key = 0; key < keys; key++) {
    if (!isVisible(first + key)) continue;
    const begin = key;
    while (key < keys && isVisible(first + key)) key++;
    ranges.push({ begin, end: key });
  }
  return ranges;
}

/** The start of a row of a broadcast tensor. */
function rowStart(strides: BroadcastStrides, { sequence, head, query }: RowPlace): number {
  return sequence * strides.batch + head * strides.head + query * strides.query;
}

/** The runs of trues that a mask has for a query. */
function tensorPart({ shape, data }: BooleanTensor): MaskPart {
  const strides = broadcastStrides(shape);
  return (place) => {
    const first = rowStart(strides, place);
    if (strides.key === 0) return data[first] === 0 ? noKeys : [{ begin: 0, end: place.keys }];
    return runs((at) => data[at] !== 0, first, place.keys);
  };
}

/** The runs of keys whose bias is above −∞. */
function biasPart({ shape, data, format }: Tensor): MaskPart {
  const strides = broadcastStrides(shape);
  return (place) => {
    const first = rowStart(strides, place);
    const count = strides.key === 0 ? 1 : place.keys;
    const values = decodeToFloat64(data, formats[format], undefined, first, first + count);
    if (strides.key === 0)
      return values[0] === -Infinity ? noKeys : [{ begin: 0, end: place.keys }];
    return runs((at) => values[at] !== -Infinity, 0, place.keys);
  };
}

/** The runs of keys of a query's segment; those of a segment are computed once. */
function segmentsPart({ queries, keys }: Segments): MaskPart {
  const ofSegments: Map<number, KeyRange[]>[] = [];
  const listed = (sequence: number, count: number) => {
    const known = ofSegments[sequence] as Map<number, KeyRange[]> | undefined;
    if (known !== undefined) return known;
    const lists = new Map<number, KeyRange[]>();
    const first = keys.shape.length === 2 ? sequence * count : 0;
    for (let key = 0; key < count;) {
      const segment = keys.data[first + key];
      const begin = key;
      while (key < count && keys.data[first + key] === segment) key++;
      const list = lists.get(segment);
      if (list === undefined) lists.set(segment, [{ begin, end: key }]);
      else list.push({ begin, end: key });
    }
    ofSegments[sequence] = lists;
    return lists;
  };
  return (place) => {
    const first = queries.shape.length === 2 ? place.sequence * place.queries : 0;
    const segment = queries.data[first + place.query];
    return listed(place.sequence, place.keys).get(segment) ?? noKeys;
  };
}

/** The keys of a part of a split problem. */
function keyRangesPart(keyRanges: readonly KeyRange[]): MaskPart {
  return ({ sequence }) => {
    const { begin, end } = keyRanges[sequence];
    return begin < end ? [{ begin, end }] : noKeys;
  };
}

/** The keys of the blocks that a query's block of queries sees. */
function blocksPart({ counts, indices, blockQueries, blockKeys }: BlockMask): MaskPart {
  const strides = broadcastStrides([...counts.shape, 1]);
  const capacity = indices.shape.at(-1) ?? 0;
  const known = new Map<number, readonly KeyRange[]>();
  return ({ sequence, head, query, keys }) => {
    const block = Math.floor(query / blockQueries);
    const row = sequence * strides.batch + head * strides.head + block * strides.query;
    let ranges = known.get(row);
    if (ranges === undefined) {
      const seen = indices.data.subarray(row * capacity, row * capacity + counts.data[row]);
      ranges = mergedRanges(
        Array.from(seen, (index) => ({
          begin: index * blockKeys,
          end: Math.min((index + 1) * blockKeys, keys),
        })),
      );
      known.set(row, ranges);
    }
    return ranges;
  };
}

/**
 * The range of keys that query `row` sees in every head, for kernels whose arithmetic knows one range a
 * query. An empty range has begin = end.
 * @throws RequestError where the query sees several ranges, or heads see different ones
 */
export function visibleKeys(problem: Problem, shape: ProblemShape, row: number): KeyRange {
  const { mask, bias, segments, blockMask, keyLists, keyRanges, sequences, rows } = problem;
  const features = [mask, bias, segments, blockMask, keyLists, keyRanges, sequences, rows];
  if (features.some((feature) => feature !== undefined))
    throw new RequestError(
      'this kernel takes causal and window masks alone; leave out masks, biases, segments, blocks, lists and packed sequences',
    );
  const ranges = problemMask(problem, shape).ranges(0, row);
  if (ranges.length > 1)
    throw new RequestError(
      `query ${row} sees ${ranges.length} ranges of keys; this kernel takes masks of one range`,
    );
  return ranges.length === 1 ? ranges[0] : diagonalRange(problem, shape, row);
}
