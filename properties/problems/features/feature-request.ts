import type { NumberFormat } from '../../../src/formats/index.js';
import type { Sequence } from '../../../src/problem/index.js';
import type { Sizes } from '../sizes.js';
import type { RandomValues } from '../values.js';

/** Arguments for drawing the features of a problem. */
export interface FeatureRequest {
  readonly sizes: Sizes;
  /** Format of Q, K and V. */
  readonly format: NumberFormat;
  /** Keys of a kernel's block; edges of features are put beside its edges. */
  readonly tiling: { readonly blockKeys: number };
  readonly random: RandomValues;
  /** The packed sequences; null for none. */
  readonly sequences: readonly Sequence[] | null;
}

/** The shape that masks, biases and kept weights are broadcast to: batches or sequences, query heads, queries, keys. */
export type WholeSizes = readonly [number, number, number, number];

/** The sizes that broadcast tensors of a problem may have; for packed sequences those of the longest. */
export function wholeSizes({ sizes, sequences }: FeatureRequest): WholeSizes {
  const { batch, kvHeads, groupSize, queries, keys } = sizes;
  const heads = kvHeads * groupSize;
  if (sequences === null) return [batch, heads, queries, keys];
  const most = (length: (sequence: Sequence) => number) =>
    sequences.reduce((largest, sequence) => Math.max(largest, length(sequence)), 0);
  return [sequences.length, heads, most((one) => one.queries), most((one) => one.keys)];
}

/** One of some things. */
export function oneOf<T>(from: readonly T[], random: RandomValues): T {
  return from[random.integer(0, from.length - 1)];
}

/** Things in a random order. */
export function shuffled<T>(things: readonly T[], random: RandomValues): T[] {
  const order = [...things];
  for (let i = order.length - 1; i > 0; i--) {
    const j = random.integer(0, i);
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

/** A shape that is broadcast to the whole, of any axes; leading sizes of 1 may be left out. */
export function drawBroadcastShape(whole: WholeSizes, random: RandomValues): number[] {
  // Tensors that differ by key and by query say most.
  const kept = [2, 2, 3, 4].map((odds) => random.integer(0, odds) > 0);
  const shape = whole.map((size, axis) => (kept[axis] ? size : 1));
  const leading = shape.findIndex((size) => size !== 1);
  const left = random.integer(0, 1) === 0 || leading < 0 ? 0 : leading;
  return shape.slice(left);
}

/** The place of an element of a broadcast tensor; 0 along axes that it lacks. */
export interface BroadcastPlace {
  readonly batch: number;
  readonly head: number;
  readonly query: number;
  readonly key: number;
}

/** An array with the value of each place of a broadcast shape. */
export function fillBroadcast(
  shape: readonly number[],
  value: (place: BroadcastPlace) => number,
): Float64Array {
  const [batches, heads, queries, keys] = [1, 1, 1, 1, ...shape].slice(-4);
  const values = new Float64Array(batches * heads * queries * keys);
  let at = 0;
  for (let batch = 0; batch < batches; batch++)
    for (let head = 0; head < heads; head++)
      for (let query = 0; query < queries; query++)
        for (let key = 0; key < keys; key++) values[at++] = value({ batch, head, query, key });
  return values;
}

/** Ends of pieces of a length, the last at its end; pieces may be empty. */
export type Cuts = readonly number[];

/** Cuts anywhere, or within one of the edges of tiles. */
export function drawCuts(
  length: number,
  pieces: number,
  blockKeys: number,
  random: RandomValues,
): Cuts {
  const besideTiles = random.integer(0, 2) === 0;
  const cut = () => {
    if (!besideTiles) return random.integer(0, length);
    const tile = random.integer(0, Math.ceil(length / blockKeys)) * blockKeys;
    return Math.max(0, Math.min(length, tile + random.integer(-1, 1)));
  };
  const inner = Array.from({ length: pieces - 1 }, cut).sort((a, b) => a - b);
  return [...inner, length];
}

/** Sequences with these ends, one behind the other. */
export function sequencesOf(queryEnds: Cuts, keyEnds: Cuts): readonly Sequence[] {
  return queryEnds.map((queryEnd, index) => {
    const firstQuery = queryEnds[index - 1] ?? 0;
    const firstKey = keyEnds[index - 1] ?? 0;
    return {
      firstQuery,
      queries: queryEnd - firstQuery,
      firstKey,
      keys: (keyEnds[index] ?? firstKey) - firstKey,
    };
  });
}
