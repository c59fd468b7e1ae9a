import { levels, type AttentionReference } from './attention.js';
import {
  maskTile,
  type InterruptedRow,
  problemMask,
  spanOfRows,
  type KeyRange,
  type Mask,
  type Problem,
  type ProblemShape,
} from '../../src/problem/index.js';
import { headOperands, type HeadOperands, type QueryBlock } from './head-operands.js';
import { tileRows } from './operand.js';
import { rulesOf, type Rules } from './rules.js';
import { Projector, projectorLength, type ProjectionFormat } from './projections.js';
import {
  createTileEngine,
  loadTile,
  scoreTile,
  seeingRows,
  type Block,
  type TileEngine,
  type TileKernels,
  weightTile,
} from './tile-engine.js';
import { WorkingMemories } from '../../src/reuse.js';
import { dropWeights, loadAddends } from './tile-features.js';

/** Normalised weights p / Σ p (a sink among Σ p) of 64 rows against one tile of 64 keys, for statistics. */
export interface WeightTile {
  readonly firstRow: number;
  readonly rows: number;
  readonly firstKey: number;
  readonly keys: number;
  /** Elements from one row to the next, in `weights` and `projections`. */
  readonly stride: number;
  /** [rows × stride]; 0 for a masked key. */
  readonly weights: Float64Array;
  /**
   * [rows × stride]: the factors of the values, the weights that dropout keeps over 1 − its probability; the same
   * array as `weights` without dropout.
   */
  readonly applied: Float64Array;
  /** Per projected matrix X: X_i · v_j, [rows × stride]; anything for rows that see no key of the tile. */
  readonly projections: readonly Float64Array[];
}

/** Results of an earlier pass for each row of a block; a row whose sum is not finite gets weight 0. */
interface WeighedRow {
  readonly maximum: number;
  readonly denominator: number;
}

/** Weights that are computed once for all walks over a problem, for a block, by tile of keys. */
interface KeptTiles {
  /** [tiles × rows of the block × 64] */
  readonly weights: Float64Array;
  /** 1 where a tile has been computed. */
  readonly isKnown: Uint8Array;
}

/** The data that walks over one problem share. */
interface KeptWalk {
  /** Null where they are not kept. */
  readonly operands: readonly HeadOperands[] | null;
  readonly ofBlock: (head: number, firstRow: number, rows: number) => KeptTiles;
}

/** The most weights that are kept between walks: 32 MiB in fp64. */
const mostWeights = 2 ** 22;

/** The most numbers, weights included, of a problem whose inputs are kept too: 8 MiB in fp64. */
const mostKept = 2 ** 20;

/** Data to share between walks; null for a problem that has too many weights. */
function createKeptWalk(
  problem: Problem,
  shape: ProblemShape,
  memories: WorkingMemories,
): KeptWalk | null {
  const { batch, heads, kvHeads, queries, keys, qkDim, vDim } = shape;
  const [blocks, tiles] = [queries, keys].map((rows) => Math.ceil(rows / tileRows));
  const perRow = tiles * tileRows;
  const count = batch * heads * queries * perRow;
  if (count > mostWeights) return null;
  const inputs = batch * (heads * queries * qkDim + kvHeads * keys * (qkDim + vDim));
  const weights = new Float64Array(count);
  const isKnown = new Uint8Array(batch * heads * blocks * tiles);
  return {
    operands: count + inputs > mostKept ? null : [...headOperands(problem, shape, memories)],
    ofBlock: (head, firstRow, rows) => {
      const firstWeight = (head * queries + firstRow) * perRow;
      const first = (head * blocks + firstRow / tileRows) * tiles;
      return {
        weights: weights.subarray(firstWeight, firstWeight + rows * perRow),
        isKnown: isKnown.subarray(first, first + tiles),
      };
    },
  };
}

/** The memory of a walk: the tiles of an engine, the factors that normalise its rows, and what projections are computed in. */
interface WalkMemory {
  readonly kernels: TileKernels;
  readonly engine: TileEngine;
  readonly normalise: Block;
  readonly projector: Projector;
}

/** Allocates for one pair of head dimensions and a number of projected matrices. */
function createWalkMemory(
  { qkDim, vDim }: Pick<ProblemShape, 'qkDim' | 'vDim'>,
  matrices: number,
  format: ProjectionFormat,
): WalkMemory {
  const vStride = Math.max(4, Math.ceil(vDim / 4) * 4);
  const engine = createTileEngine(qkDim, vDim, tileRows + projectorLength(matrices, vStride));
  return {
    kernels: engine.kernels,
    engine,
    normalise: engine.block(tileRows),
    projector: new Projector(engine, matrices, format),
  };
}

/** Arguments of a visit to a block. */
interface TileVisit {
  /** The kept tiles; null if all is computed anew. */
  readonly tiles: KeptTiles | null;
  /** Whether the projector's matrices are loaded. */
  readonly isProjected: boolean;
  /** Keys whose tiles are visited; null for all. */
  readonly span: KeyRange | null;
  readonly visit: (tile: WeightTile) => void;
}

/**
 * Visits the weights of up to 64 rows tile by tile, to a relative accuracy of about 2^-44 and 2^-52 of the logarithm of
 * the row sum (no radius), with the projections of each key's value. The arrays of a tile are reused from call
 * to call.
 */
function visitWeightTiles(
  { engine, normalise, projector }: WalkMemory,
  block: QueryBlock,
  rows: readonly WeighedRow[],
  { law, constants, kept }: Rules,
  { tiles, isProjected, span, visit }: TileVisit,
): void {
  const { kernels } = engine;
  const { firstRow, ranges } = block;
  const { query, keys, values } = block.operands;
  const isUsable = rows.map(
    ({ maximum, denominator }) => Number.isFinite(maximum) && Number.isFinite(denominator),
  );
  const usable = ranges.map((range, i) => (isUsable[i] ? range : []));
  const reference = Float64Array.from({ length: tileRows }, (_, i) =>
    isUsable[i] ? Math.round(rows[i].maximum / Math.LN2) : 0,
  );
  // ∞ − ∞ times the weights of a row without keys would be NaN.
  rows.forEach(({ denominator }, i) => {
    normalise.view[i] = isUsable[i] ? Math.exp(reference[i] * Math.LN2 - denominator) : 0;
  });
  engine.extent.view.fill(0);
  engine.maximum.view.fill(-Infinity);
  const weights = engine.scores.view;
  const dropped = kept === null ? null : new Float64Array(weights.length);
  const anyKept = new Uint8Array(tileRows);
  const addendError = new Float64Array(tileRows);
  const { low, high } = engine;
  let isLoaded = false;
  const weigh = (firstKey: number, interrupted: readonly InterruptedRow[]) => {
    if (!isLoaded)
      loadTile(engine.queries.view, query.tile(firstRow / tileRows), query.dim, query.dim);
    isLoaded = true;
    scoreTile(engine, keys, firstKey, constants, seeingRows(engine));
    loadAddends(engine, law, block, firstKey, addendError);
    engine.reference.view.set(reference);
    weightTile(engine, { constants, isAdded: law.addend !== null }, interrupted);
    kernels.scaleRows(engine.scores.address, normalise.address, ranges.length);
  };
  const seen = spanOfRows(usable);
  const begin = Math.max(seen.begin, span?.begin ?? 0);
  const end = Math.min(seen.end, span?.end ?? Infinity);
  const first = Math.floor(begin / tileRows) * tileRows;
  for (let firstKey = first; firstKey < end; firstKey += tileRows) {
    const place = { begin: firstKey, end: firstKey + tileRows };
    const { isSeen, interrupted } = maskTile(usable, place, low.view, high.view);
    if (!isSeen) continue;
    const index = firstKey / tileRows;
    const projections = isProjected ? projector.project(values, index, seeingRows(engine)) : [];
    const length = ranges.length * tileRows;
    const known = tiles?.weights.subarray(index * length, (index + 1) * length);
    if (known !== undefined && tiles?.isKnown[index] === 1) {
      weights.set(known);
      weights.fill(0, length);
    } else {
      weigh(firstKey, interrupted);
      known?.set(weights.subarray(0, length));
      if (tiles !== null) tiles.isKnown[index] = 1;
    }
    if (kept !== null && dropped !== null) {
      dropWeights(engine, kept, block, firstKey, { target: dropped, anyKept });
      dropped.forEach((weight, at) => (dropped[at] = weight / kept.share));
    }
    visit({
      firstRow,
      rows: ranges.length,
      firstKey,
      keys: Math.min(tileRows, keys.rows - firstKey),
      stride: tileRows,
      weights,
      applied: dropped ?? weights,
      projections,
    });
  }
}

/** The calls of `forEachWeightTile`: for each block of query rows begin, its tiles, end. */
export interface WeightVisitor {
  /** `head` counts over [batch, heads]. */
  readonly begin: (head: number, firstRow: number, rows: number) => void;
  readonly visit: (tile: WeightTile) => void;
  readonly end: (head: number, firstRow: number, rows: number) => void;
}

/** The matrices that the values of keys are projected on. */
export interface ProjectedMatrices {
  readonly count: number;
  readonly format: ProjectionFormat;
  /** Their rows for a block of queries, [rows × vDim] each: asked for once for each block, after its `begin`. */
  readonly ofBlock: (head: number, firstRow: number, rows: number) => readonly Float64Array[];
}

/** Matrices that are held as a whole, [batch, heads, queries, vDim], in fp64. */
export function wholeMatrices(
  matrices: readonly Float64Array[],
  { queries, vDim }: Pick<ProblemShape, 'queries' | 'vDim'>,
): ProjectedMatrices {
  return {
    count: matrices.length,
    format: 'fp64',
    ofBlock: (head, firstRow, rows) => {
      const first = (head * queries + firstRow) * vDim;
      return matrices.map((matrix) => matrix.subarray(first, first + rows * vDim));
    },
  };
}

/** Options of a walk over weights. */
interface WeightWalkOptions {
  /** Default: none. */
  readonly projected?: ProjectedMatrices;
  /** The problem's unless given: that of the reference. */
  readonly mask?: Mask;
  /** Tiles without any of these keys are left out; default: all are visited. */
  readonly span?: KeyRange;
  /**
   * Working memory of the loops; default: memories of this walk's own. They keep the weights of a problem that has
   * not too many, under its own mask, for later walks with the same reference.
   */
  readonly memories?: WorkingMemories | undefined;
}

/**
 * Visits the normalised weights of a problem tile by tile (at most 64 queries × 64 keys), with the inner
 * products X_i · v_j of the rows of the given matrices: enough for a statistic over
 * single weights, without ever holding them all. Not an oracle: no radius (about 2^-44 relative, and see `ProjectionFormat`). Rows
 * with special values or without keys have no weights.
 */
export function forEachWeightTile(
  problem: Problem,
  reference: AttentionReference,
  visitor: WeightVisitor,
  { projected, mask: givenMask, span, memories = new WorkingMemories() }: WeightWalkOptions = {},
): void {
  const { shape } = reference;
  const mask = givenMask ?? problemMask(problem, shape);
  const { queries, qkDim, vDim } = shape;
  const rules = rulesOf(problem, shape);
  const walk =
    givenMask === undefined
      ? memories.keep('weights', reference, () => createKeptWalk(problem, shape, memories))
      : null;
  const { count: matrices = 0, format = 'fp64' } = projected ?? {};
  const create = () => createWalkMemory(shape, matrices, format);
  memories.lend(`weights ${qkDim} ${vDim} ${matrices} ${format}`, create, (memory) => {
    for (const operands of walk?.operands ?? headOperands(problem, shape, memories)) {
      const { head } = operands;
      for (let first = 0; first < queries; first += tileRows) {
        const count = Math.min(tileRows, queries - first);
        const ranges = Array.from({ length: count }, (_, i) => mask.ranges(head, first + i));
        const rows = ranges.map((_, i) => {
          const at = head * queries + first + i;
          const special = levels[reference.level[at]] === 'special';
          return {
            denominator: special ? NaN : reference.denominator[at],
            maximum: reference.maximum[at],
          };
        });
        visitor.begin(head, first, count);
        if (projected !== undefined)
          memory.projector.load(projected.ofBlock(head, first, count), vDim);
        visitWeightTiles(memory, { operands, firstRow: first, ranges }, rows, rules, {
          tiles: walk?.ofBlock(head, first, count) ?? null,
          isProjected: matrices > 0,
          span: span ?? null,
          visit: visitor.visit,
        });
        visitor.end(head, first, count);
      }
    }
  });
}
