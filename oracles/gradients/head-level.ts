import { keysOf, type KeyRange } from '../../src/problem/index.js';
import { levels } from '../attention/attention.js';
import { tileRows } from '../attention/operand.js';
import type { GradientContext } from './shared-sums.js';
import { preciseQueryRow } from './exact-level.js';
import type { GradientOperands } from './operands.js';
import { leaveOut, rowStatistics, type RowStatistics } from './row-statistics.js';
import {
  addExactKeys,
  addExactShares,
  shareAdder,
  sinkSums,
  type KeyTargets,
} from './row-shares.js';
import {
  specialGradients,
  type FiniteKeys,
  type Poison,
  applyPoison,
  poisonedElements,
  type PoisonedElements,
} from './special-row.js';
import { emptySums, finishSums, type Gradient, type GradientSums } from './sums.js';
import { addGradients } from './tile-level.js';

/** Results of one query head: dQ, and the means of its rows. */
export interface HeadGradients {
  /** Counted over [batch, heads]. */
  readonly head: number;
  /** [queries, qkDim]; null if not wanted. */
  readonly dq: Gradient | null;
  /** [queries]: D = Σ P dP = dO·O with its radius, and the scale of its errors, Σ P|dP|. */
  readonly mean: Gradient;
  /** [queries]: index into `levels`, of P and dS, or of dQ if that needed more. */
  readonly level: Uint8Array;
}

const noPoison: Poison = {
  query: () => undefined,
  key: () => undefined,
  value: () => undefined,
  score: () => undefined,
  mean: () => undefined,
};

/**
 * The keys of a row to compute; null for a row that adds nothing: it sees no key, its dO is 0, or all sums that it adds
 * to are NaN.
 */
export function keysToSolve(
  { rules }: GradientContext,
  operands: GradientOperands,
  row: number,
  ranges: readonly KeyRange[],
  poison: Poison = noPoison,
): FiniteKeys | null {
  if (ranges.length === 0) return null;
  const { query, keys, values, dout, head } = operands;
  const one = new Uint8Array(1);
  const isKept = (key: number) => {
    rules.kept?.fill(head, row, key, one);
    return rules.kept === null || one[0] === 1;
  };
  const anySpecial = query.anySpecial || keys.anySpecial || values.anySpecial || dout.anySpecial;
  const special = anySpecial
    ? specialGradients(operands, row, ranges, { law: rules.law, isKept }, poison)
    : null;
  if (special !== null) return special.visible.length === 0 ? null : special;
  if (dout.largest[row] === 0) return null;
  const visible = Int32Array.from(keysOf(ranges));
  return { visible, infinite: new Int8Array(visible.length), isWhole: true };
}

/** Errors of dT relative to their scale beyond which a row goes to the exact level, by default. */
const trustedError = 2 ** -40;

/** Whether fp64 suffices for a row of a block. */
function isTrusted(
  { isUsable, relative, absolute, meanSize }: RowStatistics,
  i: number,
  fraction: number,
): boolean {
  const limit = Math.max(fraction / 2, trustedError);
  return isUsable[i] === 1 && relative[i] * meanSize[i] + absolute[i] <= limit * meanSize[i];
}

/** Recorder of the elements that a head's special values make NaN or infinite. */
function headPoison(
  context: GradientContext,
  { head, query: { dim } }: GradientOperands,
  row: number,
  { poison }: KeyTargets,
  { dq, mean }: Readonly<Record<'dq' | 'mean', PoisonedElements>>,
): Poison {
  const { bias, shape } = context;
  const place = bias?.placesOf(head, row);
  return {
    ...poison,
    query: (column, kind) => dq.add(row * dim + column, kind),
    score: (key, kind) => {
      if (place !== undefined) bias?.poison(place(key), kind);
    },
    mean: (kind) => {
      mean.add(row, kind);
      sinkSums(context, head)?.poison(head % shape.heads, -kind);
    },
  };
}

/** Solves the rows of a head, and adds their contributions to the gradients of keys. */
export function solveHead(
  context: GradientContext,
  operands: GradientOperands,
  targets: KeyTargets,
  progress: (rows: number) => void,
): HeadGradients {
  const { shape, rules, mask, accuracy, engine, wantsQueries } = context;
  const { queries, qkDim } = shape;
  const { head } = operands;
  const column = () => new Float64Array(queries);
  const level = new Uint8Array(queries);
  const mean = { values: column(), radius: column(), magnitude: column() };
  const sums: GradientSums | null = wantsQueries ? emptySums(queries, qkDim) : null;
  const poisoned = { dq: poisonedElements(), mean: poisonedElements() };
  const exact = new Map<number, Gradient>();
  const settle = (row: number, name: (typeof levels)[number]) =>
    (level[row] = levels.indexOf(name));
  for (let first = 0; first < queries; first += tileRows) {
    const count = Math.min(tileRows, queries - first);
    const seen = Array.from({ length: count }, (_, i) => mask.ranges(head, first + i));
    const keys = seen.map((ranges, i) => {
      const poison = headPoison(context, operands, first + i, targets, poisoned);
      return keysToSolve(context, operands, first + i, ranges, poison);
    });
    const isPlain = (i: number) => keys[i]?.isWhole === true;
    const ranges = seen.map((ofRow, i) => (isPlain(i) ? ofRow : []));
    const block = { operands, firstRow: first, ranges };
    const statistics = rowStatistics(engine, block, rules);
    keys.forEach((ofRow, i) => {
      const row = first + i;
      settle(
        row,
        seen[i].length === 0 ? 'empty' : isPlain(i) || ofRow === null ? 'fp64' : 'special',
      );
      if (isPlain(i) && !isTrusted(statistics, i, accuracy.magnitudeFraction)) {
        leaveOut(statistics, i);
      }
      if (ofRow === null || statistics.isUsable[i] === 1) return;
      const toSolve = { operands, row, keys: ofRow };
      const found = preciseQueryRow(toSolve, rules, accuracy);
      addExactShares(context, toSolve, found, mean);
      addExactKeys(targets, toSolve, found);
      exact.set(row, found.gradient);
      if (isPlain(i)) settle(row, found.level);
    });
    const visit = shareAdder(context, block, statistics, mean);
    addGradients(engine, block, rules, statistics, {
      dq: sums,
      keys: targets.sums,
      placeOf: targets.placeOf,
      visit,
    });
    progress(first + count);
  }
  applyPoison(mean, poisoned.mean);
  for (const row of poisoned.mean.kinds().keys()) settle(row, 'special');
  if (sums === null) return { head, dq: null, mean, level };
  const largest = operands.keys.columnLargest;
  const { gradient, inaccurate } = finishSums(sums, { scale: rules.law.scale, largest, accuracy });
  for (const row of inaccurate) {
    const keys = keysToSolve(context, operands, row, mask.ranges(head, row));
    if (keys === null) continue;
    const found = preciseQueryRow({ operands, row, keys }, rules, accuracy);
    exact.set(row, found.gradient);
    if (level[row] !== levels.indexOf('special')) settle(row, found.level);
  }
  for (const [row, found] of exact)
    for (const name of ['values', 'radius', 'magnitude'] as const)
      gradient[name].set(found[name], row * qkDim);
  applyPoison(gradient, poisoned.dq);
  return { head, dq: gradient, mean, level };
}
