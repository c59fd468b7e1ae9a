import {
  type AttentionReference,
  forEachWeightTile,
  type WeightTile,
  type WorkingMemories,
} from '../../../oracles/index.js';
import { decodeFinite, type Tensor } from '../../formats/index.js';
import type { KeyRange, Problem } from '../../problem/index.js';
import { createAllocator } from '../../reuse.js';
import type { KeyTileGroup, TestedRows } from './key-tile-plan.js';
import { instantiateLoops } from './structure-loops.js';
import { walkRows } from './structure-statistic.js';

/** Effects below this part of Σ w|v| are the walk's own roundings (2^-44). */
const negligible = 2 ** -36;

/** Memory for the product of a tile of weights and its values. */
function createProductMemory(vDim: number) {
  const kernels = instantiateLoops();
  const vStride = Math.max(4, Math.ceil(vDim / 4) * 4);
  const [square, wide] = [walkRows * walkRows, walkRows * vStride];
  const { allocate } = createAllocator(kernels.memory, 8 * (square + 2 * wide));
  const block = (length: number) => {
    const address = allocate(8 * length);
    return { address, view: new Float64Array(kernels.memory.buffer, address, length) };
  };
  return { kernels, vStride, weights: block(square), values: block(wide), sums: block(wide) };
}

type ProductMemory = ReturnType<typeof createProductMemory>;

/** Keys [from, to) of a tile of weights, all of one direction. */
interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly direction: Float64Array;
}

/** The values of keys from a stretch's first on, and the exact output of the block's rows. */
interface BlockValues {
  readonly values: Float64Array;
  readonly out: Float64Array;
  readonly vDim: number;
}

/** Σ_j w_j D_j v_j over a stretch of a tile's keys, by row. */
function weighValues(
  { kernels, vStride, weights, values: ofKeys, sums }: ProductMemory,
  { applied, rows, stride }: WeightTile,
  { from, to }: Stretch,
  { values, vDim }: BlockValues,
): void {
  const isPart = from > 0 || to < walkRows;
  if (isPart) weights.view.fill(0);
  const length = rows * stride;
  if (!isPart) weights.view.set(applied.subarray(0, length));
  else
    for (let at = 0; at < length; at += stride)
      weights.view.set(applied.subarray(at + from, at + to), at + from);
  if (isPart || vStride !== vDim) ofKeys.view.fill(0);
  if (vStride === vDim) ofKeys.view.set(values.subarray(0, (to - from) * vDim), from * vDim);
  else
    for (let j = from, at = 0; j < to; j++, at += vDim)
      ofKeys.view.set(values.subarray(at, at + vDim), j * vStride);
  const addresses = [weights.address, ofKeys.address, sums.address] as const;
  // The loop takes four rows at a time.
  kernels.product(...addresses, Math.min(walkRows, 4 * Math.ceil(rows / 4)), walkRows, vStride);
}

/** Adds Σ_j (w_j O − w_j D_j v_j) over a stretch of a tile's keys to the rows of its direction. */
function addStretch(
  memory: ProductMemory,
  stretch: Stretch,
  tile: WeightTile,
  block: BlockValues,
): void {
  weighValues(memory, tile, stretch, block);
  const { out, vDim } = block;
  const { from, to, direction } = stretch;
  const sums = memory.sums.view;
  for (let i = 0; i < tile.rows; i++) {
    let mass = 0;
    for (let at = i * tile.stride + from; at < i * tile.stride + to; at++) mass += tile.weights[at];
    // Outputs of rows without weights may be infinities and NaNs.
    if (mass === 0) continue;
    const first = (tile.firstRow + i) * vDim;
    for (let c = 0, at = i * memory.vStride; c < vDim; c++, at++)
      direction[first + c] += mass * out[first + c] - sums[at];
  }
}

/** Values of so many elements are decoded as a whole: 16 MiB in fp64. */
const mostHeld = 2 ** 21;

/**
 * A function that decodes the values of at most 64 keys of a range, [keys × vDim], infinities and NaNs, which keys without
 * weights may have, as 0: good until others are asked for. Those of a long
 * range are never held in fp64 as a whole.
 */
function valuesReader(
  tensor: Tensor,
  { begin, end }: KeyRange,
  vDim: number,
): (first: number, last: number) => Float64Array {
  if ((end - begin) * vDim <= mostHeld) {
    const all = decodeFinite(tensor, begin * vDim, end * vDim);
    return (first, last) => all.subarray((first - begin) * vDim, (last - begin) * vDim);
  }
  const some = new Float64Array(walkRows * vDim);
  return (first, last) => decodeFinite(tensor, first * vDim, last * vDim, some);
}

/**
 * D of the tiles of a group: Σ_{j in t} (w_j O − w_j D_j v_j), [rows × vDim] each, of a block of queries that is a problem of
 * its own. Rows that see nothing but one tile have 0 there.
 */
export function tileDirections(
  problem: Problem,
  reference: AttentionReference,
  { firstTile, tiles, tileKeys }: KeyTileGroup,
  { firstKey: origin, keys }: TestedRows,
  memories: WorkingMemories,
): Float64Array[] {
  const { vDim, queries: rows } = reference.shape;
  const directions = Array.from({ length: tiles }, () => new Float64Array(rows * vDim));
  const firstKey = origin + firstTile * tileKeys;
  const end = Math.min(origin + keys, firstKey + tiles * tileKeys);
  const valuesOf = valuesReader(problem.v, { begin: firstKey, end }, vDim);
  const { values: out, magnitude } = reference.quantities.out;
  memories.lend(
    `structure product ${vDim}`,
    () => createProductMemory(vDim),
    (memory) => {
      const visit = (tile: WeightTile) => {
        // The first tile and the last may have keys of other groups.
        for (let from = Math.max(0, firstKey - tile.firstKey); from < tile.keys;) {
          const index = Math.floor((tile.firstKey + from - firstKey) / tileKeys);
          if (index >= tiles) break;
          const to = Math.min(tile.keys, firstKey + (index + 1) * tileKeys - tile.firstKey);
          const values = valuesOf(tile.firstKey + from, tile.firstKey + to);
          const stretch = { from, to, direction: directions[index] };
          addStretch(memory, stretch, tile, { values, out, vDim });
          from = to;
        }
      };
      const visitor = { begin: () => undefined, visit, end: () => undefined };
      forEachWeightTile(problem, reference, visitor, { span: { begin: firstKey, end }, memories });
    },
  );
  for (const direction of directions)
    for (let i = 0; i < rows; i++) clearRoundings(direction, magnitude, i * vDim, vDim);
  return directions;
}

/** Sets a row of D to zero where it consists of roundings: where all keys that the row sees are in the tile. */
function clearRoundings(
  direction: Float64Array,
  magnitude: Float64Array,
  from: number,
  vDim: number,
): void {
  let squares = 0;
  let scale = 0;
  for (let i = from; i < from + vDim; i++) {
    squares += direction[i] ** 2;
    scale += magnitude[i] ** 2;
  }
  if (squares < negligible ** 2 * scale) direction.fill(0, from, from + vDim);
}
