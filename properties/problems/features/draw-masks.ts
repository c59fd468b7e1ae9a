import type {
  BlockMask,
  BooleanTensor,
  IntegerTensor,
  Segments,
  Sequence,
} from '../../../src/problem/index.js';
import type { RandomValues } from '../values.js';
import {
  drawBroadcastShape,
  drawCuts,
  fillBroadcast,
  oneOf,
  sequencesOf,
  wholeSizes,
  type BroadcastPlace,
  type FeatureRequest,
  type WholeSizes,
} from './feature-request.js';

/** Whether a key is visible at a place. */
type Visibility = (place: BroadcastPlace) => boolean;

/** Shares of the keys that random masks leave. */
const densities: readonly number[] = [0.02, 0.3, 0.7, 0.98];

/** Ways to hide keys, from masks by places to random ones. */
const visibilities: readonly ((
  whole: WholeSizes,
  blockKeys: number,
  random: RandomValues,
) => Visibility)[] = [
  (_whole, _blockKeys, random) => {
    const density = oneOf(densities, random);
    return () => random.uniform() < density;
  },
  ([, , queries, keys]) =>
    ({ query, key }) =>
      key <= query + keys - queries,
  (_whole, blockKeys) =>
    ({ query, key }) =>
      Math.floor(query / blockKeys) % 2 === Math.floor(key / blockKeys) % 2,
  ([, , , keys], blockKeys, random) => {
    const tile = random.integer(0, Math.max(Math.ceil(keys / blockKeys) - 1, 0));
    return ({ key }) => Math.floor(key / blockKeys) === tile;
  },
  (_whole, _blockKeys, random) => {
    const share = oneOf(densities, random);
    const rows = new Map<number, boolean>();
    return ({ query }) => {
      const known = rows.get(query) ?? random.uniform() < share;
      rows.set(query, known);
      return known;
    };
  },
];

/** A mask of a shape, in which some key is visible somewhere. */
export function booleanTensor(shape: readonly number[], isVisible: Visibility): BooleanTensor {
  const data = Uint8Array.from(fillBroadcast(shape, (place) => +isVisible(place)));
  if (data.length > 0 && !data.includes(1)) data[0] = 1;
  return { shape, data };
}

/** A mask of any broadcast shape. */
export function drawMask(request: FeatureRequest): BooleanTensor {
  const { tiling, random } = request;
  const whole = wholeSizes(request);
  const shape = drawBroadcastShape(whole, random);
  return booleanTensor(shape, oneOf(visibilities, random)(whole, tiling.blockKeys, random));
}

/** The most documents, and the most packed sequences. */
const mostPieces = 5;

/** The index of the piece that each place is in. */
export function piecesOf(ends: readonly number[], length: number): number[] {
  let piece = 0;
  return Array.from({ length }, (_, place) => {
    while (place >= ends[piece] && piece < ends.length - 1) piece++;
    return piece;
  });
}

/** The documents of queries whose last sits on the last key; those before the first key are in the first. */
export function alignedSegments(ofKeys: readonly number[], queries: number): number[] {
  const more = ofKeys.length - queries;
  return Array.from({ length: queries }, (_, query) => ofKeys[Math.max(0, query + more)] ?? 0);
}

/** Documents of queries and keys: aligned at their ends, cut elsewhere, or in no order. */
export function drawSegments({ sizes, tiling, random }: FeatureRequest): Segments {
  const { batch, queries, keys } = sizes;
  const isShared = random.integer(0, 1) === 0;
  const sets = Array.from({ length: isShared ? 1 : batch }, () => {
    const pieces = random.integer(1, mostPieces);
    const ofKeys = piecesOf(drawCuts(keys, pieces, tiling.blockKeys, random), keys);
    const kind = random.integer(0, 3);
    // Documents of queries that are cut elsewhere, and documents in no order.
    if (kind === 0)
      return {
        queries: piecesOf(drawCuts(queries, pieces, tiling.blockKeys, random), queries),
        keys: ofKeys,
      };
    if (kind === 1) {
      const any = (length: number) => Array.from({ length }, () => random.integer(1, pieces));
      return { queries: any(queries), keys: any(keys) };
    }
    return { queries: alignedSegments(ofKeys, queries), keys: ofKeys };
  });
  const tensor = (name: 'queries' | 'keys', length: number): IntegerTensor => ({
    shape: isShared ? [length] : [batch, length],
    data: Int32Array.from(sets.flatMap((set) => set[name])),
  });
  return { queries: tensor('queries', queries), keys: tensor('keys', keys) };
}

/** Keys of a block, beside the kernel's own. */
const blockSizes: readonly number[] = [1, 16, 64, 128];

/** Blocks of any sizes, listed in either order. */
export function drawBlockMask(request: FeatureRequest): BlockMask {
  const { tiling, random } = request;
  const [batches, heads, queries, keys] = wholeSizes(request);
  const size = () => oneOf([tiling.blockKeys, ...blockSizes], random);
  const [blockQueries, blockKeys] = [size(), size()];
  const rows = Math.ceil(queries / blockQueries);
  const columns = Math.ceil(keys / blockKeys);
  const leading = [oneOf([1, batches], random), oneOf([1, heads], random), rows];
  const lists = leading[0] * leading[1] * rows;
  const share = oneOf([0.2, 0.5, 0.9], random);
  const counts = new Int32Array(lists);
  const indices = new Int32Array(lists * columns);
  for (let list = 0; list < lists; list++) {
    const seen = Array.from({ length: columns }, (_, column) => column).filter(
      () => random.uniform() < share,
    );
    if (random.integer(0, 1) === 0) seen.reverse();
    counts[list] = seen.length;
    indices.set(seen, list * columns);
  }
  return {
    counts: { shape: leading, data: counts },
    indices: { shape: [...leading, columns], data: indices },
    blockQueries,
    blockKeys,
  };
}

/** Sequences of any lengths, empty ones among them; the ends of queries and keys alike where both may be. */
export function drawSequences({ sizes, tiling, random }: FeatureRequest): readonly Sequence[] {
  const { queries, keys } = sizes;
  const pieces = random.integer(1, mostPieces);
  const ofKeys = drawCuts(keys, pieces, tiling.blockKeys, random);
  const areAlike = queries === keys && random.integer(0, 3) > 0;
  return sequencesOf(
    areAlike ? ofKeys : drawCuts(queries, pieces, tiling.blockKeys, random),
    ofKeys,
  );
}
