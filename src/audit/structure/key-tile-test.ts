import {
  forEachWeightTile,
  type WeightTile,
  type WeightVisitor,
  type WorkingMemories,
} from '../../../oracles/index.js';
import { decodeTensor } from '../../formats/index.js';
import { clipRanges, problemMask, type Mask, type Problem } from '../../problem/index.js';
import {
  collectRow,
  collectWeights,
  Statistic,
  walkRows,
  type RowErrors,
} from './structure-statistic.js';
import type { KeyTileGroup, KeyTileLimits, TestedRows } from './key-tile-plan.js';
import { WorstResults, type StructureResult } from './structure-result.js';

/** Effects below this part of Σ w|v| are the walk's own roundings (2^-44). */
const negligible = 2 ** -36;

/** Values from a key on, [keys × vDim]. */
interface DecodedValues {
  readonly firstKey: number;
  readonly values: Float64Array;
}

/** Keys [from, to) of a tile of weights, all of one direction. */
interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly direction: Float64Array;
}

/** Adds Σ_j (w_j O − w_j D_j v_j) over a stretch of a tile's keys to the rows of its direction. */
function addStretch(
  { from, to, direction }: Stretch,
  { weights, applied, rows, firstRow, firstKey, stride }: WeightTile,
  out: Float64Array,
  { values, firstKey: origin }: DecodedValues,
  vDim: number,
): void {
  for (let i = 0; i < rows; i++) {
    const row = (firstRow + i) * vDim;
    let mass = 0;
    let j = from;
    while (j < to) {
      const at = i * stride + j;
      const value = (firstKey + j - origin) * vDim;
      // Four keys at a time, so that a row of sums is walked over as seldom.
      if (
        j + 4 <= to &&
        weights[at] !== 0 &&
        weights[at + 1] !== 0 &&
        weights[at + 2] !== 0 &&
        weights[at + 3] !== 0
      ) {
        mass += weights[at] + weights[at + 1] + weights[at + 2] + weights[at + 3];
        const p0 = applied[at];
        const p1 = applied[at + 1];
        const p2 = applied[at + 2];
        const p3 = applied[at + 3];
        for (let c = 0, v = value; c < vDim; c++, v++)
          direction[row + c] -=
            p0 * values[v] +
            p1 * values[v + vDim] +
            (p2 * values[v + 2 * vDim] + p3 * values[v + 3 * vDim]);
        j += 4;
        continue;
      }
      // Values of keys without weights may be infinities and NaNs.
      if (weights[at] !== 0) {
        mass += weights[at];
        const p = applied[at];
        for (let c = 0; c < vDim; c++) direction[row + c] -= p * values[value + c];
      }
      j++;
    }
    // So may the outputs of rows without weights.
    if (mass !== 0) for (let c = 0; c < vDim; c++) direction[row + c] += mass * out[row + c];
  }
}

/** D of the tiles of a group: Σ_{j in t} (w_j O − w_j D_j v_j), [rows × vDim] each. */
function tileDirections(
  { problem, errors: { reference } }: KeyTileBlock,
  { firstTile, tiles, tileKeys }: KeyTileGroup,
  { firstKey: origin, keys }: TestedRows,
  memories: WorkingMemories | undefined,
): Float64Array[] {
  const { vDim, queries: rows } = reference.shape;
  const directions = Array.from({ length: tiles }, () => new Float64Array(rows * vDim));
  const mask = problemMask(problem, reference.shape);
  const firstKey = origin + firstTile * tileKeys;
  const end = Math.min(origin + keys, firstKey + tiles * tileKeys);
  const decoded = { firstKey, values: decodeTensor(problem.v, firstKey * vDim, end * vDim) };
  const { values: out, magnitude } = reference.quantities.out;
  const visitor = {
    begin: () => undefined,
    visit: (tile: WeightTile) => {
      // What is before the group's first key is masked.
      for (let from = Math.max(0, firstKey - tile.firstKey); from < tile.keys;) {
        const index = Math.floor((tile.firstKey + from - firstKey) / tileKeys);
        if (index >= tiles) break;
        const to = Math.min(tile.keys, firstKey + (index + 1) * tileKeys - tile.firstKey);
        addStretch({ from, to, direction: directions[index] }, tile, out, decoded, vDim);
        from = to;
      }
    },
    end: () => undefined,
  };
  const ofGroup: Mask = {
    ranges: (head, query) => clipRanges(mask.ranges(head, query), firstKey, end),
  };
  forEachWeightTile(problem, reference, [], visitor, { mask: ofGroup, memories });
  for (const direction of directions)
    for (let i = 0; i < rows; i++) clearRoundings(direction, magnitude, i * vDim, vDim);
  return directions;
}

/** Sets a row of D to zero where it is no more than roundings: all that the row sees is in the tile. */
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

/** Adds the result of some rows and a tile of keys, unless nothing is known of it. */
function addResult(
  worst: WorstResults,
  { signed, norm }: Statistic,
  tolerance: number,
  where: Pick<StructureResult, 'scope' | 'head' | 'firstRow' | 'rows' | 'firstKey' | 'keys'>,
): void {
  if (norm === 0) return;
  worst.add({
    test: 'key-tile',
    ...where,
    statistic: signed / norm,
    threshold: tolerance / norm,
  });
}

/** One block of a group: a problem of its own, with its errors. */
export interface KeyTileBlock {
  readonly problem: Problem;
  readonly errors: RowErrors;
}

/** Collects a block's errors, projected on what leaving each tile of a group out would do. */
function collectBlock(
  statistics: readonly Statistic[],
  block: KeyTileBlock,
  group: KeyTileGroup,
  place: TestedRows,
  memories: WorkingMemories | undefined,
): void {
  const { problem, errors } = block;
  const { reference, bound } = errors;
  const { vDim } = reference.shape;
  const directions = tileDirections(block, group, place, memories);
  const toLargest = new Float64Array(walkRows);
  const amplitude = new Float64Array(walkRows);
  const visitor: WeightVisitor = {
    begin: (_, firstRow, rows) => {
      for (let i = 0; i < rows; i++) {
        const row = firstRow + i;
        toLargest[i] = Math.exp(reference.denominator[row] - reference.maximum[row]);
        const { weightRounding, typicalWeight, isCoarse } = bound.row(row);
        amplitude[i] = isCoarse ? 0 : weightRounding + typicalWeight;
      }
    },
    visit: (tile) => collectWeights(statistics, errors.weightGroups, tile, toLargest, amplitude),
    end: (_, firstRow, rows) => {
      for (let row = firstRow; row < firstRow + rows; row++)
        directions.forEach((direction, t) => {
          const ofRow = direction.subarray(row * vDim, (row + 1) * vDim);
          collectRow(statistics[t], errors, row, ofRow);
        });
    },
  };
  forEachWeightTile(problem, reference, directions, visitor, { memories });
}

/**
 * Whether each tile of 128 keys is there: the kernel's error projected on what leaving the tile out
 * would do to O, D = Σ_{j in tile} (w_j O − w_j D_j v_j), pooled over tiles of 128 queries and over heads. A
 * tile that is skipped shows as about 1, one that is counted twice as about −1, whatever the weight
 * it carries; rounding leaves the statistic within its threshold, under the premises of
 * `StructureJudge` and with probability of a false alarm at most that of the plan per scope. Where a tile
 * carries so little weight that rounding hides it, the threshold exceeds 1.
 *
 * @param blocks those of the group, in its order
 * @returns the result that is largest relative to its threshold, per scope; places are those of the group, and the
 * first key of a result about a head with packed sequences is counted within each of them
 */
export function testKeyTiles(
  group: KeyTileGroup,
  blocks: readonly KeyTileBlock[],
  { ofBlock, ofHead, queries }: KeyTileLimits,
  memories?: WorkingMemories,
): StructureResult[] {
  const { head, firstTile, tiles, tileKeys, blocks: places } = group;
  const statistics = () => Array.from({ length: tiles }, () => new Statistic());
  const [blockStatistics, headStatistics] = [statistics(), statistics()];
  const worst = new WorstResults();
  const keysOf = (t: number, keys: number) => {
    const firstKey = (firstTile + t) * tileKeys;
    return { firstKey, keys: Math.min(tileKeys, keys - firstKey) };
  };
  blocks.forEach((block, index) => {
    const place = places[index];
    collectBlock(blockStatistics, block, group, place, memories);
    blockStatistics.forEach((statistic, t) => {
      const { firstKey, keys } = keysOf(t, place.keys);
      const { firstRow, rows } = place;
      const where = { firstRow, rows, firstKey: place.firstKey + firstKey, keys };
      if (keys > 0)
        addResult(worst, statistic, statistic.tolerance(ofBlock), {
          scope: 'tile',
          head,
          ...where,
        });
      headStatistics[t].merge(statistic);
      statistic.clear();
    });
  });
  const longest = places.reduce((most, { keys }) => Math.max(most, keys), 0);
  headStatistics.forEach((statistic, t) => {
    const ofKeys = keysOf(t, longest);
    const where = { scope: 'head', head, firstRow: 0, rows: queries, ...ofKeys } as const;
    if (ofKeys.keys > 0) addResult(worst, statistic, statistic.tolerance(ofHead), where);
  });
  return worst.list();
}
