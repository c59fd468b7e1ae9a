import {
  levels,
  type AttentionReference,
  type GroupGradients,
  type HeadGradients,
} from '../../../../oracles/index.js';
import type { Problem, Tensor } from '../../../problem/index.js';
import { tileRows } from '../../bounds/index.js';
import { createFinish, type RowFinish } from './finish-gradient.js';
import { finishQueries, giveUp } from './finish-queries.js';
import type { GradientPremises } from './gradient-premises.js';
import { techniquePlaces, type TechniqueShares } from './gradient-techniques.js';
import {
  emptyGradientBound,
  type GroupBounds,
  type HeadBounds,
  type StoredForward,
} from './group-bounds.js';
import { createGroupSums, type GroupSums } from './group-sums.js';
import {
  createPairReader,
  forEachTile,
  loadQueries,
  type KeyTile,
  type PairReader,
  type QueryRows,
} from './head-tiles.js';
import { pairArithmetic, type PairArithmetic } from './pair-arithmetic.js';
import { emptyPairSums, type PairSums } from './pairs/pair-sums.js';
import { createRowErrors, type RowErrorsOf } from './row-errors.js';
import { sharePairs } from './pairs/share-pairs.js';
import type { SharedBounds } from './shared-bounds.js';
import type { RowErrors } from './pairs/weighed-pairs.js';

/** Gradients to bound: their problem, and facts about the kernel that computed them. */
export interface BoundedGradients {
  readonly problem: Problem;
  /** [batch, heads, queries, vDim] */
  readonly dout: Tensor;
  /** The exact attention of the same problem. */
  readonly reference: AttentionReference;
  readonly premises: GradientPremises;
  readonly given: StoredForward;
  /** Bounds of the gradients that groups share, which the pairs are added to. */
  readonly shared?: SharedBounds;
}

/** The context that the bounds of a problem's groups share. */
interface BoundContext extends BoundedGradients {
  readonly reader: PairReader;
  readonly arithmetic: PairArithmetic;
  readonly rows: RowErrorsOf;
  readonly finish: RowFinish;
}

/** The errors that the rows of a block share: the first of two walks over the keys. */
function rowsOfBlock(context: BoundContext, block: QueryRows, head: HeadGradients): RowErrors[] {
  const { reader, rows } = context;
  const { tile } = reader.memory;
  const { queries, vDim } = reader.shape;
  const begun = block.ranges.map((_, i) =>
    rows.begin(block.head * queries + block.first + i, {
      value: head.mean.values[block.first + i],
      radius: head.mean.radius[block.first + i],
    }),
  );
  tile.clearSums();
  if (rows.needsSums) {
    tile.setRows(begun);
    forEachTile(reader, block, () => {
      tile.weigh();
      tile.addToRows();
    });
  }
  const { values, stride } = reader.memory.dout;
  return begun.map((row, i) =>
    rows.finish(
      block.head * queries + block.first + i,
      row,
      tile.sumsOf(i),
      values.view.subarray(i * stride, i * stride + vDim),
    ),
  );
}

/** Sums the errors of the pairs of a block: the second walk. */
function sumPairs(
  { reader, shared }: BoundContext,
  block: QueryRows,
  rows: readonly RowErrors[],
  of: {
    /** Null where dQ is not asked for. */
    readonly sums: PairSums | null;
    readonly shares: TechniqueShares;
    /** Whether any key from this one on, of a tile, is asked for. */
    readonly isWanted: (firstKey: number) => boolean;
  },
  group: GroupSums | null,
): void {
  const { memory } = reader;
  const { tile, sides } = memory;
  const alikeOf = ({ alikeScores, alikeProducts }: (typeof sides)['keys']) => ({
    alikeScores: alikeScores.view,
    alikeProducts: alikeProducts.view,
  });
  const [queries, keys] = [alikeOf(sides.queries), alikeOf(sides.keys)];
  const bias = shared?.bias ?? null;
  bias?.begin(block.head, block.first, rows);
  tile.setRows(rows);
  const visit = ({ firstKey, count, ranges }: KeyTile) => {
    tile.weigh();
    sharePairs(memory, {
      queries: of.shares,
      firstQuery: block.first,
      group: group?.shares ?? null,
      firstKey,
    });
    bias?.add({ weighed: tile.weighed, ranges, queries, keys }, firstKey);
    if (of.sums !== null)
      memory.addPairs('dq', memory.keys, of.sums, { first: 0, count: block.count });
    group?.add(memory, { first: firstKey, count });
  };
  forEachTile(reader, block, visit, of.isWanted);
  bias?.end();
}

/** Bounds dQ of a head, and adds its pairs to the sums of dK and dV. */
function boundHead(
  context: BoundContext,
  head: HeadGradients,
  group: GroupSums | null,
  isWanted: (firstKey: number) => boolean,
): Omit<HeadBounds, 'head'> {
  const { reader } = context;
  const { queries } = reader.shape;
  const weightVariance = new Float64Array(queries);
  const exact = head.dq;
  const qkDim = exact === null ? 0 : reader.shape.qkDim;
  const bound = emptyGradientBound(queries, qkDim, context.arithmetic.ds.otherUnits.length);
  const isSpecial = (row: number) => levels[head.level[row]] === 'special';
  for (let first = 0; first < queries; first += tileRows) {
    const block = loadQueries(reader, head.head, first, isSpecial);
    const rows = rowsOfBlock(context, block, head);
    const sums = exact === null ? null : emptyPairSums(tileRows * qkDim, reader.memory);
    sumPairs(context, block, rows, { sums, shares: bound.techniques, isWanted }, group);
    if (exact !== null && sums !== null)
      finishQueries(context, block, rows, sums, { exact, bound });
    rows.forEach((errors, i) => {
      const row = first + i;
      weightVariance[row] = errors.weightVariance;
      if (isSpecial(row)) {
        const ranges = reader.mask.ranges(head.head, row);
        giveUp(bound, qkDim, row);
        group?.leaveOut(ranges);
        context.shared?.bias?.giveUp(head.head, row, ranges);
        context.shared?.sink?.giveUp(head.head);
      } else if (block.ranges[i].length > 0) {
        const { scores, products } = reader.alikeQueries(head.head);
        const alike = { scores: scores[row], products: products[row] };
        context.shared?.sink?.add(head.head, errors, alike);
      }
    });
  }
  group?.finishHead(reader.alikeQueries(head.head).most);
  return { dq: exact === null ? null : bound, weightVariance };
}

/**
 * Makes a function that bounds the oracle's gradients of a group, element by element: docs/theory/bounds-backward.md. Where a
 * query, a key that it sees, its dO or a value holds an infinity or a NaN, nothing is known of its row of dQ nor of dK and
 * dV of the keys that it sees: their bounds are infinite. Memory is that of a group's sums and O(tile). Where the oracle
 * has no dQ, tiles without a key of its group are left out.
 */
export function createGradientBounds(
  gradients: BoundedGradients,
): (group: GroupGradients) => GroupBounds {
  const { problem, dout, reference, premises } = gradients;
  const { shape } = reference;
  const arithmetic = pairArithmetic(problem, shape, premises);
  const context: BoundContext = {
    ...gradients,
    reader: createPairReader(problem, dout, shape, arithmetic),
    arithmetic,
    rows: createRowErrors(gradients, arithmetic),
    finish: createFinish(arithmetic, premises.output, {
      sum: arithmetic.overKeys,
      growth: 1,
      columns: shape.qkDim,
      knownOf: techniquePlaces.dsRound,
      ownOthers: arithmetic.ds.otherUnits.length,
    }),
  };
  const { memory } = context.reader;
  return (group) => {
    const { kvHead, dk, dv, keys } = group;
    const sums =
      dk === null || dv === null ? null : createGroupSums(shape, premises, arithmetic, memory);
    const tiles = new Set(Array.from(keys, (key) => Math.floor(key / tileRows)));
    const isOfTile = (firstKey: number) => tiles.has(firstKey / tileRows);
    const everyTile = () => true;
    const heads = group.heads.map((head) => ({
      head: head.head,
      ...boundHead(context, head, sums, head.dq === null ? isOfTile : everyTile),
    }));
    if (sums === null || dk === null || dv === null) return { kvHead, heads, dk: null, dv: null };
    return { kvHead, heads, ...sums.finish(keys, { dk, dv }) };
  };
}
