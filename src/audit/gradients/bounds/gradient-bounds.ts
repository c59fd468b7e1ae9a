import {
  levels,
  type AttentionReference,
  type Gradient,
  type GroupGradients,
  type HeadGradients,
} from '../../../../oracles/index.js';
import { countKeys, type Problem, type Tensor } from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import { tileRows } from '../../bounds/index.js';
import { finishElement, type InnerError } from './finish-gradient.js';
import type { GradientPremises } from './gradient-premises.js';
import {
  emptyGradientBound,
  type GradientBound,
  type GroupBounds,
  type StoredForward,
} from './group-bounds.js';
import { createGroupSums, type GroupSums } from './group-sums.js';
import {
  createPairReader,
  forEachPair,
  loadQueries,
  type KeyTile,
  type PairReader,
  type QueryRows,
} from './head-tiles.js';
import { pairArithmetic, type PairArithmetic } from './pair-arithmetic.js';
import { emptyShares, sharePair, weighPair, type RowErrors, type Share } from './pair-errors.js';
import {
  addPairs,
  createPairMemory,
  emptyPairSums,
  type PairMatrices,
  type PairSums,
} from './pair-sums.js';
import { addToRow, createRowErrors, emptyRowSums, type RowErrorsOf } from './row-errors.js';

/** What gradients are of, and what is known of the kernel that computed them. */
export interface BoundedGradients {
  readonly problem: Problem;
  /** [batch, heads, queries, vDim] */
  readonly dout: Tensor;
  /** Of the same problem. */
  readonly reference: AttentionReference;
  readonly premises: GradientPremises;
  readonly given: StoredForward;
}

/** All that the bounds of a problem's groups share. */
interface BoundContext extends BoundedGradients {
  readonly reader: PairReader;
  readonly arithmetic: PairArithmetic;
  readonly rows: RowErrorsOf;
}

/** The errors that the rows of a block share: the first of two walks over the keys. */
function rowsOfBlock(context: BoundContext, block: QueryRows, head: HeadGradients): RowErrors[] {
  const { arithmetic, reader, rows } = context;
  const { queries, vDim } = reader.shape;
  const begun = block.ranges.map((_, i) =>
    rows.begin(block.head * queries + block.first + i, {
      queryNorm: block.queryNorms[i],
      doutNorm: block.doutNorms[i],
      mean: head.mean.values[block.first + i],
      meanRadius: head.mean.radius[block.first + i],
    }),
  );
  const sums = begun.map(emptyRowSums);
  if (rows.needsSums)
    forEachPair(reader, block, {
      pair: (i, _, pair) => {
        weighPair(arithmetic, begun[i], pair);
        addToRow(sums[i], pair);
      },
    });
  const { values, stride } = reader.memory.dout;
  return begun.map((row, i) =>
    rows.finish(
      block.head * queries + block.first + i,
      row,
      sums[i],
      values.view.subarray(i * stride, i * stride + vDim),
    ),
  );
}

/** Writes a share into the matrices of a gradient. */
function writeShare(matrices: PairMatrices, at: number, share: Share, signed: number): void {
  matrices.worst.view[at] = share.worst;
  matrices.systematic.view[at] = share.systematic;
  matrices.variance.view[at] = share.variance;
  matrices.known.view[at] = share.known;
  matrices.signed.view[at] = signed;
}

function clear(matrices: PairMatrices): void {
  for (const { view } of Object.values(matrices)) view.fill(0);
}

/** Sums the errors of the pairs of a block: the second walk. */
function sumPairs(
  { arithmetic, reader }: BoundContext,
  block: QueryRows,
  rows: readonly RowErrors[],
  queries: PairSums,
  group: GroupSums | null,
): void {
  const { memory } = reader;
  const { dq, dk, dv, derivatives, weights } = memory;
  const shares = emptyShares();
  forEachPair(reader, block, {
    begin: () => {
      for (const matrices of [dq, dk, dv]) clear(matrices);
      derivatives.view.fill(0);
      weights.view.fill(0);
    },
    pair: (i, j, pair) => {
      weighPair(arithmetic, rows[i], pair);
      sharePair(arithmetic, rows[i], pair, shares);
      writeShare(dq, i * tileRows + j, shares.query, shares.sloped);
      const at = j * tileRows + i;
      writeShare(dk, at, shares.key, shares.shift);
      writeShare(dv, at, shares.value, shares.weightShift);
      derivatives.view[at] = shares.derivative;
      weights.view[at] = shares.weight;
    },
    end: ({ firstKey, count }: KeyTile) => {
      addPairs(memory, dq, memory.keys, queries, { first: 0, count: block.count });
      group?.add(memory, { first: firstKey, count });
    },
  });
}

/** Bounds the rows of dQ of a block, whose sums are those of its first row on. */
function finishQueries(
  { arithmetic, premises, reader }: BoundContext,
  block: QueryRows,
  rows: readonly RowErrors[],
  sums: PairSums,
  { exact, bound }: { readonly exact: Gradient; readonly bound: GradientBound },
): void {
  const { elementwise, overKeys, underflow } = arithmetic;
  const { qkDim } = reader.shape;
  const scale = Math.abs(arithmetic.scale);
  rows.forEach((row, i) => {
    const keys = countKeys(block.ranges[i]);
    // Exact zeros.
    if (keys === 0) return;
    const floor = 3 * keys * underflow * Math.max(1, scale);
    for (let c = 0; c < qkDim; c++) {
      const from = i * qkDim + c;
      const at = (block.first + i) * qkDim + c;
      const value = exact.values[at];
      const shift = row.weightShift * value - arithmetic.scale * row.meanShift * sums.signed[from];
      const size = Math.abs(value + shift);
      const ofMean = Math.abs(sums.signed[from]);
      const finishing = 3 * elementwise * size + floor;
      const error: InnerError = {
        shift,
        worst:
          scale * (sums.worst[from] + row.worstMean * (1 + row.weight) * ofMean) +
          row.weight * size +
          finishing,
        systematic:
          scale * (sums.systematic[from] + row.typicalMean * ofMean) +
          (row.typicalWeight + overKeys) * size +
          finishing,
        variance:
          scale ** 2 *
            (sums.variance[from] + sums.known[from] ** 2 + row.meanVariance * ofMean ** 2) +
          keys * (premises.accumulation * exact.magnitude[at]) ** 2,
      };
      finishElement(bound, at, exact, at, { format: premises.output, error });
    }
  });
}

/** Nothing is known of some rows of a gradient. */
function giveUp(bound: GradientBound, dim: number, row: number): void {
  for (const name of ['total', 'systematic', 'deviation'] as const)
    bound[name].fill(Infinity, row * dim, (row + 1) * dim);
}

/** Bounds dQ of a head, and adds what its pairs do to dK and dV. */
function boundHead(
  context: BoundContext,
  head: HeadGradients,
  group: GroupSums | null,
): GradientBound {
  const { reader } = context;
  const { queries, qkDim } = reader.shape;
  const exact = head.dq;
  if (exact === null)
    throw new RequestError('bounds of gradients need dQ of the oracle; ask it for dq');
  const bound = emptyGradientBound(queries * qkDim);
  const isSpecial = (row: number) => levels[head.level[row]] === 'special';
  for (let first = 0; first < queries; first += tileRows) {
    const block = loadQueries(reader, head.head, first, isSpecial);
    const rows = rowsOfBlock(context, block, head);
    const sums = emptyPairSums(tileRows * qkDim);
    sumPairs(context, block, rows, sums, group);
    finishQueries(context, block, rows, sums, { exact, bound });
    for (let row = first; row < first + block.count; row++)
      if (isSpecial(row)) {
        giveUp(bound, qkDim, row);
        group?.leaveOut(reader.mask.ranges(head.head, row));
      }
  }
  group?.finishHead();
  return bound;
}

/**
 * Makes a function that bounds what the oracle gave of a group, element by element: docs/bounds-backward.md.
 * Where a query, a key that it sees, its dO or a value holds an infinity or a NaN, nothing is known of its row of dQ nor of
 * dK and dV of the keys that it sees: their bounds are infinite.
 * Memory is that of a group's sums and O(tile).
 * @throws RequestError, when a group is bounded, for one without dQ
 */
export function createGradientBounds(
  gradients: BoundedGradients,
): (group: GroupGradients) => GroupBounds {
  const { problem, dout, reference, premises } = gradients;
  const { shape } = reference;
  const arithmetic = pairArithmetic(problem, shape, premises);
  const memory = createPairMemory(shape.qkDim, shape.vDim);
  const context: BoundContext = {
    ...gradients,
    reader: createPairReader(problem, dout, shape, memory),
    arithmetic,
    rows: createRowErrors(gradients, arithmetic),
  };
  return (group) => {
    const { kvHead, dk, dv, keys } = group;
    const sums = dk === null || dv === null ? null : createGroupSums(shape, premises, arithmetic);
    const heads = group.heads.map((head) => ({
      head: head.head,
      dq: boundHead(context, head, sums),
    }));
    if (sums === null || dk === null || dv === null) return { kvHead, heads, dk: null, dv: null };
    return { kvHead, heads, ...sums.finish(keys, { dk, dv }) };
  };
}
