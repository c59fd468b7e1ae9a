import type { Problem, ProblemShape } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { drawsOf, drawSome } from './random-numbers.js';

/** The keys whose gradients are judged. */
export interface KeySample {
  /** The same seed draws the same keys. */
  readonly seed: number;
  /** Number of keys that are judged, and of all keys: over all heads of K. */
  readonly keys: number;
  readonly of: number;
  /** Number of judged keys that are chosen for their place, and of those that are drawn. */
  readonly edges: number;
  readonly random: number;
  /** [batch, kv heads, keys of a head], ascending in each head. */
  readonly selection: Int32Array;
}

/** Number of keys, over all heads of K, and the seed that draws them. */
export interface KeySampleRequest {
  readonly keys: number;
  readonly seed: number;
}

/** Keys of a tile, whose first and last are chosen for their place. */
const tileKeys = 128;

/** The part of a head's keys that is given to the edges of tiles and of sequences, where there are more of them. */
const mostAtEdges = 1 / 2;

/** The first and last keys of tiles, and of packed sequences. */
function edgesOf({ sequences }: Problem, keys: number): number[] {
  const edges = new Set<number>();
  for (let first = 0; first < keys; first += tileKeys)
    edges.add(first).add(Math.min(first + tileKeys, keys) - 1);
  for (const one of sequences ?? [])
    if (one.keys > 0) edges.add(one.firstKey).add(one.firstKey + one.keys - 1);
  return [...edges];
}

/**
 * Chooses keys of a problem, as many of each head of K: the first and the last, some where tiles of 128 keys and sequences begin
 * and end, and random ones, which are half of them at least.
 * @returns null where that would be all keys
 * @throws RequestError for fewer keys than heads of K
 */
export function chooseKeys(
  problem: Problem,
  { batch, kvHeads, keys }: ProblemShape,
  request: KeySampleRequest,
): KeySample | null {
  const heads = batch * kvHeads;
  if (request.keys >= heads * keys) return null;
  const ofHead = Math.floor(request.keys / heads);
  if (ofHead < 1)
    throw new RequestError(
      `${request.keys} keys are fewer than the ${heads} heads of K; judge ${heads} at least, one of each`,
    );
  const atEdges = edgesOf(problem, keys);
  const selection = new Int32Array(heads * ofHead);
  let edgeCount = 0;
  for (let head = 0; head < heads; head++) {
    // Streams of their own: rows are drawn by the first ones.
    const draw = drawsOf(request.seed, 2 ** 20 + head);
    const edges = new Set(drawSome([0, keys - 1], ofHead > 2 ? 2 : 0, draw));
    const fresh = atEdges.filter((key) => !edges.has(key));
    const room = Math.max(0, Math.floor(ofHead * mostAtEdges) - edges.size);
    for (const key of drawSome(fresh, room, draw)) edges.add(key);
    const others = Array.from({ length: keys }, (_, key) => key).filter((key) => !edges.has(key));
    selection.set([...edges, ...drawSome(others, ofHead - edges.size, draw)], head * ofHead);
    selection.subarray(head * ofHead, (head + 1) * ofHead).sort();
    edgeCount += edges.size;
  }
  const count = heads * ofHead;
  const { seed } = request;
  return {
    seed,
    keys: count,
    of: heads * keys,
    edges: edgeCount,
    random: count - edgeCount,
    selection,
  };
}

/** The chosen keys of a head of K, counted over [batch, kv heads]; null for all. */
export function keysOfHead(
  sample: KeySample | null,
  { batch, kvHeads }: ProblemShape,
  kvHead: number,
): Int32Array | null {
  if (sample === null) return null;
  const ofHead = sample.keys / (batch * kvHeads);
  return sample.selection.subarray(kvHead * ofHead, (kvHead + 1) * ofHead);
}
