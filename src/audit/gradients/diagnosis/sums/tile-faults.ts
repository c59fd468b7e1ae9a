import { listed } from '../../../../words/index.js';
import type { KeyRange } from '../../../../problem/index.js';
import type { GradientQuantityName } from '../../gradient-quantities.js';
import { axisOf, placeOfKeys, placeOfRows, type Place } from '../../../rows/index.js';
import { fails, type PredictedGradients, type Prediction } from '../prediction.js';
import type { Replayed } from '../replay/replay.js';
import { tileShare, type ScoreTile, type TileUse } from '../replay/tile-shares.js';

/** Rows and keys of the tiles of most kernels. */
const usualSizes = [128, 64] as const;

/** Rows and keys of the tiles of other kernels. */
const otherSizes = [256, 192, 96, 32] as const;

/** The largest distance from 1 of the part of a fault's change in the error. */
const nearness = 2 ** -3;

/** A fault of a tile, which is given by its keys in dQ or its queries in dK and dV. */
interface TileFault {
  readonly id: string;
  /** The verbs behind the gradients' names: "lacks what", and "lack what" in the plural. */
  readonly verbs: readonly [one: string, many: string];
  /** The use that takes the place of the tile's share; null where there is none. */
  readonly use: (tile: ScoreTile, before: ScoreTile | null, size: number) => TileUse | null;
  /** The number of times that the tile's own share is left then. */
  readonly kept: number;
}

const faults: readonly TileFault[] = [
  { id: 'missing', verbs: ['lacks what', 'lack what'], use: () => nothing, kept: 0 },
  { id: 'twice', verbs: ['has twice what', 'have twice what'], use: () => nothing, kept: 2 },
  {
    id: 'stale',
    verbs: [
      'is made with P or dS of the tile before where',
      'are made with P or dS of the tile before where',
    ],
    use: (_, before) => before && { factors: { from: before, isTransposed: false }, rowsOff: 0 },
    kept: 0,
  },
  {
    id: 'stale',
    verbs: [
      'is made with rows of the tile before where',
      'are made with rows of the tile before where',
    ],
    use: (tile, before, size) =>
      before && { factors: { from: tile, isTransposed: false }, rowsOff: -size },
    kept: 0,
  },
  {
    id: 'stale',
    verbs: [
      'has the tile before in the place of what',
      'have the tile before in the place of what',
    ],
    use: (_, before, size) =>
      before && { factors: { from: before, isTransposed: false }, rowsOff: -size },
    kept: 0,
  },
];

const nothing: TileUse = { factors: null, rowsOff: 0 };

/** The part of a fault's change in an error: 1 where it is all of it. */
function partIn(error: Float64Array, change: Float64Array): number {
  let [products, squares] = [0, 0];
  change.forEach((x, i) => {
    products += error[i] * x;
    squares += x * x;
  });
  return squares > 0 ? products / squares : 0;
}

/** A gradient that fails, its exact values and its error. */
interface Failing {
  readonly name: GradientQuantityName;
  readonly prose: string;
  readonly exact: Float64Array;
  readonly error: Float64Array;
  /** Number of heads, counted over the batch. */
  readonly heads: number;
}

function failingOf({ failed }: Replayed, names: readonly GradientQuantityName[]): Failing[] {
  return failed.given
    .filter((one) => names.includes(one.quantity.name) && fails(failed, one))
    .map(({ quantity: { name, prose, axes }, values }) => {
      const { gradients, shape } = failed.measured;
      const exact = gradients[name].exact.values;
      const heads = shape[axes[0]] * shape[axes[1]];
      return { name, prose, exact, error: values.map((x, i) => x - exact[i]), heads };
    });
}

/** Predicted gradients in the heads that a fault is in, and these heads, counted over the batch. */
interface TilePrediction {
  readonly predicted: PredictedGradients;
  readonly heads: readonly number[];
}

/** The heads of a gradient whose errors contain a fault's change; null where others contain a part of it. */
function headsWith(error: Float64Array, change: Float64Array, heads: number): number[] | null {
  const size = error.length / heads;
  const parts = Array.from({ length: heads }, (_, head) =>
    partIn(
      error.subarray(head * size, (head + 1) * size),
      change.subarray(head * size, (head + 1) * size),
    ),
  );
  const isWhole = (part: number) => Math.abs(part - 1) < nearness;
  if (!parts.every((part) => isWhole(part) || Math.abs(part) < nearness)) return null;
  const found = [...parts.keys()].filter((head) => isWhole(parts[head]));
  return found.length === 0 ? null : found;
}

/** Gradients with each changed by a fault, if that change is in the errors of some of their heads. */
function predictionOf(
  failing: readonly Failing[],
  changeOf: (name: GradientQuantityName) => Float64Array,
): TilePrediction | null {
  const predicted: [GradientQuantityName, Float64Array][] = [];
  let all: readonly number[] | null = null;
  for (const { name, exact, error, heads } of failing) {
    const change = changeOf(name);
    const found = headsWith(error, change, heads);
    if (found === null || (all !== null && String(all) !== String(found))) return null;
    all = found;
    const size = exact.length / heads;
    const isIn = new Set(found);
    predicted.push([
      name,
      exact.map((x, i) => (isIn.has(Math.floor(i / size)) ? x + change[i] : x)),
    ]);
  }
  return all === null
    ? null
    : { predicted: Object.fromEntries(predicted) as PredictedGradients, heads: all };
}

/** The place of a tile of some heads: its keys in dQ, its queries in dK and dV, and which rows of these. */
function placeOf(
  { failed: { problem, measured } }: Replayed,
  heads: readonly number[],
  [axis, tile]: readonly ['keys' | 'queries', KeyRange],
  rows?: KeyRange,
): Place {
  const { shape } = measured;
  const other = axis === 'keys' ? 'queries' : 'keys';
  const { begin, end } = rows ?? { begin: 0, end: shape[other] };
  const members = heads.flatMap((head) =>
    Array.from({ length: end - begin }, (_, i) => head * shape[other] + begin + i),
  );
  const layout = { ...problem, shape };
  const within = Array.from({ length: tile.end - tile.begin }, (_, i) => tile.begin + i);
  const place = axis === 'keys' ? placeOfRows(members, layout) : placeOfKeys(members, layout);
  return { ...place, [axis]: axisOf(within, shape[axis]) };
}

function* tiles(count: number, size: number): Generator<KeyRange> {
  for (let begin = 0; begin < count; begin += size)
    yield { begin, end: Math.min(begin + size, count) };
}

/** Tiles of keys in dQ, or of queries in dK and dV, that are missing, counted twice, or those of another place, in all heads. */
function* lostTiles(of: Replayed, axis: 'keys' | 'queries', size: number): Generator<Prediction> {
  const { shape } = of.failed.measured;
  const failing = failingOf(of, axis === 'keys' ? ['dq'] : ['dk', 'dv']);
  if (failing.length === 0 || shape[axis] <= size) return;
  const whole = {
    queries: { begin: 0, end: shape.queries },
    keys: { begin: 0, end: shape.keys },
  };
  const words = listed(failing.map(({ prose }) => prose));
  for (const range of tiles(shape[axis], size)) {
    // Stale tiles may be of the full size where the last is not.
    const tile = { ...whole, [axis]: range };
    const length = range.end - range.begin;
    const before: ScoreTile | null =
      range.begin === 0
        ? null
        : { ...whole, [axis]: { begin: range.begin - size, end: range.begin - size + length } };
    if (!of.budget.takes((4 * length) / shape[axis])) return;
    const own = new Map(failing.map(({ name }) => [name, tileShare(of, name, tile)]));
    for (const { id, verbs, use, kept } of faults) {
      const used = use(tile, before, size);
      if (used === null) continue;
      const found = predictionOf(failing, (name) => {
        const instead = tileShare(of, name, tile, used);
        const ofTile = own.get(name)!;
        return instead.map((x, i) => x + (kept - 1) * ofTile[i]);
      });
      if (found === null) continue;
      yield {
        id: `${axis === 'keys' ? 'key' : 'query'}-tile-${id}`,
        sentence: `${words} ${verbs[failing.length === 1 ? 0 : 1]} ${axis} ${range.begin} to ${range.end - 1} add`,
        place: placeOf(of, found.heads, [axis, range]),
        predicted: found.predicted,
      };
    }
    const ofTile = `${axis} ${range.begin} to ${range.end - 1}`;
    yield* lostBlocks(of, failing, own, [ofTile, axis, size, range]);
  }
}

/** A tile of keys in dQ of some queries of a head, or of queries in dK and dV of some keys: missing, or twice. */
function* lostBlocks(
  of: Replayed,
  failing: readonly Failing[],
  own: ReadonlyMap<GradientQuantityName, Float64Array>,
  words: readonly [tile: string, of: 'keys' | 'queries', size: number, range: KeyRange],
): Generator<Prediction> {
  const { shape } = of.failed.measured;
  const [tile, axis, size, range] = words;
  const [other, heads] =
    axis === 'keys'
      ? (['queries', shape.batch * shape.heads] as const)
      : (['keys', shape.batch * shape.kvHeads] as const);
  for (let head = 0; head < heads; head++)
    for (const { begin, end } of tiles(shape[other], size)) {
      const columns = (name: GradientQuantityName) => (name === 'dv' ? shape.vDim : shape.qkDim);
      const placeIn = (name: GradientQuantityName) =>
        [begin, end].map((row) => (head * shape[other] + row) * columns(name));
      const parts = failing.map(({ name, error }) => {
        const [first, last] = placeIn(name);
        return partIn(error.subarray(first, last), own.get(name)!.subarray(first, last));
      });
      const times = Math.sign(parts[0]);
      if (!parts.every((part) => Math.abs(part * times - 1) < nearness)) continue;
      const predicted = failing.map(({ name, exact }) => {
        const [first, last] = placeIn(name);
        const ofTile = own.get(name)!;
        return [
          name,
          exact.map((x, i) => (i >= first && i < last ? x + times * ofTile[i] : x)),
        ] as const;
      });
      const ofHead = head % (axis === 'keys' ? shape.heads : shape.kvHeads);
      const names = listed(failing.map(({ prose }) => prose));
      const verb = times > 0 ? faults[1].verbs : faults[0].verbs;
      yield {
        id: `${axis === 'keys' ? 'key' : 'query'}-tile-${times > 0 ? 'twice' : 'missing'}`,
        sentence: `${names} of ${other} ${begin} to ${end - 1} of head ${ofHead} ${verb[failing.length === 1 ? 0 : 1]} ${tile} add`,
        place: placeOf(of, [head], [axis, range], { begin, end }),
        predicted: Object.fromEntries(predicted) as PredictedGradients,
      };
    }
}

/** The place of a tile that is transposed in a gradient. */
function transposedPlace(
  of: Replayed,
  heads: readonly number[],
  { queries, keys }: ScoreTile,
  name: GradientQuantityName,
): Place {
  return name === 'dq'
    ? placeOf(of, heads, ['keys', keys], queries)
    : placeOf(of, heads, ['queries', queries], keys);
}

/** Tiles of P or dS with rows for columns, in all heads: one, or all. */
function* transposedTiles(of: Replayed, size: number): Generator<Prediction> {
  const { queries, keys } = of.failed.measured.shape;
  for (const { name, ...one } of failingOf(of, ['dq', 'dk', 'dv'])) {
    const failing = [{ name, ...one }];
    const turned = (tile: ScoreTile) => {
      const own = tileShare(of, name, tile);
      const instead = tileShare(of, name, tile, {
        factors: { from: tile, isTransposed: true },
        rowsOff: 0,
      });
      return instead.map((x, i) => x - own[i]);
    };
    for (const ofQueries of tiles(queries, size))
      for (const ofKeys of tiles(keys, size)) {
        if (!of.budget.takes((2 * size * size) / (queries * keys) + 1 / keys)) return;
        const change = turned({ queries: ofQueries, keys: ofKeys });
        const found = predictionOf(failing, () => change);
        if (found === null) continue;
        yield {
          id: 'tile-transposed',
          sentence: `a tile of ${name === 'dv' ? 'P' : 'dS'}, queries ${ofQueries.begin} to ${ofQueries.end - 1} and keys ${ofKeys.begin} to ${ofKeys.end - 1}, is transposed in ${one.prose}`,
          place: transposedPlace(of, found.heads, { queries: ofQueries, keys: ofKeys }, name),
          predicted: found.predicted,
        };
      }
  }
}

/**
 * Tiles of keys that dQ lacks, has twice or has from another place, the same for tiles of queries in dK and dV, and transposed
 * ones. Those of packed sequences begin elsewhere, and are not looked for.
 */
function* tilesOf(of: Replayed, sizes: readonly number[]): Generator<Prediction> {
  if (of.failed.problem.sequences !== undefined) return;
  for (const size of sizes) {
    yield* lostTiles(of, 'keys', size);
    yield* lostTiles(of, 'queries', size);
    yield* transposedTiles(of, size);
  }
}

/** Faults of tiles of 128 and of 64. */
export function tileFaults(of: Replayed): Generator<Prediction> {
  return tilesOf(of, usualSizes);
}

/** Faults of tiles of 256, 192, 96 and 32. */
export function otherTileFaults(of: Replayed): Generator<Prediction> {
  return tilesOf(of, otherSizes);
}
