import { formats, unitRoundoff } from '../../../../formats/index.js';
import type { GivenGradient } from '../../judge-gradient.js';
import type { FailedGradients } from '../failed-gradients.js';
import { isWithinBounds, type PredictedGradients, type Prediction } from '../prediction.js';
import type { Scope } from '../scope.js';
import type { BackwardChange, BackwardOperands } from './backward-row.js';
import { backwardSums, type BackwardSums, type Sums } from './backward-sums.js';
import type { Budget } from './budget.js';
import type { StoredStatistics } from './stored-statistics.js';

/** The ranges of a head of K and V, and of its query heads, in each gradient. */
function partsOfGroup({ measured: { shape } }: FailedGradients, kvHead: number) {
  const { groupSize, queries, keys, qkDim, vDim } = shape;
  const part = (size: number) => [kvHead * size, (kvHead + 1) * size] as const;
  return {
    dq: part(groupSize * queries * qkDim),
    dk: part(keys * qkDim),
    dv: part(keys * vDim),
  };
}

/** The largest error beside its bound of some elements of a gradient. */
function worstOf(
  { measured }: FailedGradients,
  { quantity, values }: GivenGradient,
  [first, end]: readonly [number, number],
): number {
  const { exact, bound } = measured.gradients[quantity.name];
  let most = 0;
  for (let i = first; i < end; i++) {
    const error = Math.abs(values[i] - exact.values[i] - bound.shift[i]);
    if (error > 0) most = Math.max(most, error / bound.total[i]);
  }
  return most;
}

/** The heads of K and V, those first whose gradients err most beside their bounds. */
function groupsByError(failed: FailedGradients): number[] {
  const { measured, given } = failed;
  const { batch, kvHeads } = measured.shape;
  const worst = Array.from({ length: batch * kvHeads }, (_, kvHead) => {
    const parts = partsOfGroup(failed, kvHead);
    return Math.max(...given.map((one) => worstOf(failed, one, parts[one.quantity.name])));
  });
  return worst.map((_, kvHead) => kvHead).sort((a, b) => worst[b] - worst[a]);
}

/** The number of rows of dQ that err most, and of rows at equal distances, that a pass is tried on before all of it. */
const triedRows = 8;

/** The rows of dQ that distinguish most passes. */
function rowsToTry(failed: FailedGradients): readonly number[] {
  const dq = failed.given.find(({ quantity }) => quantity.name === 'dq');
  if (dq === undefined) return [];
  const { qkDim } = failed.measured.shape;
  const rows = dq.values.length / qkDim;
  const worst = Array.from({ length: rows }, (_, row) => row)
    .map((row) => ({ row, by: worstOf(failed, dq, [row * qkDim, (row + 1) * qkDim]) }))
    .sort((a, b) => b.by - a.by)
    .slice(0, triedRows)
    .map(({ row }) => row);
  const apart = Array.from({ length: triedRows }, (_, i) =>
    Math.floor(((i + 0.5) * rows) / triedRows),
  );
  return [...new Set([...worst, ...apart])];
}

/** The data that a backward pass is replayed from. */
export interface Replayed {
  readonly failed: FailedGradients;
  readonly operands: BackwardOperands;
  readonly budget: Budget;
  /** Statistics of the stored forward; null where it is not known. */
  readonly stored: StoredStatistics | null;
  /** The rows that causes are about; null for all. */
  readonly scope: Scope | null;
  /** The order in which groups are replayed, and the rows that come before all. */
  readonly order: ReplayOrder;
}

/** Groups and rows to replay first, since they tell most. */
export interface ReplayOrder {
  readonly groups: readonly number[];
  readonly rows: readonly number[];
}

/** The order in which a failed backward pass is replayed. */
export function replayOrder(failed: FailedGradients): ReplayOrder {
  return { groups: groupsByError(failed), rows: rowsToTry(failed) };
}

/** The gradients of a backward pass, and the sizes that its elements are sums of. */
export type Replay = Required<Pick<Prediction, 'predicted' | 'sizes' | 'wider' | 'isShifted'>>;

/**
 * Whether the dQ of single rows is the given one. Leaves no trace in the sums.
 * @param source the row that is written to a row of dQ
 */
function isGivenInRows(
  { failed, order, budget }: Replayed,
  { gradients: { dq }, addQuery }: BackwardSums,
  isShifted: boolean,
  source: (row: number) => number,
): boolean {
  const given = failed.given.find(({ quantity }) => quantity.name === 'dq');
  if (given === undefined) return true;
  const { batch, heads, queries, qkDim } = failed.measured.shape;
  return order.rows.every((row) => {
    if (!budget.takes(1 / (batch * heads * queries))) return false;
    const part = [row * qkDim, (row + 1) * qkDim] as const;
    const from = source(row);
    addQuery(Math.floor(from / queries), from % queries);
    const prediction = { predicted: dq.values, sizes: dq.sizes, isShifted };
    const isGiven = isWithinBounds(failed, given, prediction, part);
    for (const numbers of [dq.values, dq.sizes, dq.squares]) numbers.fill(0, ...part);
    return isGiven;
  });
}

/**
 * Deviations of elements from roundings of P and dS, where their sum is not the exact one: the roundings are known of exact terms only.
 * Uniform, half an ulp at most, of every term.
 */
function spreadOf(
  { measured }: FailedGradients,
  { quantity, format }: GivenGradient,
  { values, squares }: Sums,
) {
  const { exact } = measured.gradients[quantity.name];
  const unit = unitRoundoff(formats[format]) / Math.sqrt(3);
  const isOther = (i: number) =>
    Math.abs(values[i] - exact.values[i]) > 2 ** -20 * Math.abs(exact.values[i]);
  return {
    total: new Float64Array(values.length),
    deviation: squares.map((x, i) => (isOther(i) ? unit * Math.sqrt(x) : 0)),
  };
}

/**
 * The gradients of a backward pass with a fault, group by group of heads; null as soon as those of a row or of a group differ from the
 * given ones, and where the budget is spent. Memory is that of the gradients and some rows of keys.
 * @param way the way in which D and the LSE are made, also outside of the scope
 */
export function replay(
  of: Replayed,
  change: BackwardChange,
  way: BackwardChange = {},
): Replay | null {
  const { failed, operands, budget, scope, order } = of;
  const { measured, given } = failed;
  const { batch, kvHeads } = measured.shape;
  const names = given.map(({ quantity }) => quantity.name);
  const sums = backwardSums(
    failed,
    operands,
    { change: { ...way, ...change }, scope, elsewhere: way },
    names,
  );
  const { gradients, addGroup } = sums;
  // What a pass makes of its own row sums is not shifted by the stored ones.
  const isShifted = way === of.stored || change.logarithm === 'scores';
  const source = change.written?.dq?.from ?? ((row: number) => row);
  if (!isGivenInRows(of, sums, isShifted, source)) return null;
  const isGiven = (kvHead: number) => {
    const parts = partsOfGroup(failed, kvHead);
    return given.every((one) => {
      const { name } = one.quantity;
      const { values, sizes } = gradients[name];
      return isWithinBounds(failed, one, { predicted: values, sizes, isShifted }, parts[name]);
    });
  };
  const isApart = change.addedTo === undefined && change.written === undefined;
  for (const kvHead of order.groups) {
    if (!budget.takes(1 / (batch * kvHeads))) return null;
    addGroup(kvHead);
    if (isApart && !isGiven(kvHead)) return null;
  }
  if (!isApart && !order.groups.every(isGiven)) return null;
  const byName = <T>(make: (one: GivenGradient) => T) =>
    Object.fromEntries(given.map((one) => [one.quantity.name, make(one)] as const));
  return {
    predicted: byName(({ quantity }) => gradients[quantity.name].values) as PredictedGradients,
    isShifted,
    sizes: byName(({ quantity }) => gradients[quantity.name].sizes) as PredictedGradients,
    wider: byName((one) => spreadOf(failed, one, gradients[one.quantity.name])) as NonNullable<
      Prediction['wider']
    >,
  };
}

/** The gradients of a backward pass without a fault, whose D and LSE are made in some way. */
export function replayWay(
  { failed, operands, budget }: Replayed,
  way: BackwardChange,
): PredictedGradients {
  const names = failed.given.map(({ quantity }) => quantity.name);
  const { gradients, addGroup } = backwardSums(failed, operands, { change: way }, names);
  budget.takes(1);
  const { batch, kvHeads } = failed.measured.shape;
  for (let kvHead = 0; kvHead < batch * kvHeads; kvHead++) addGroup(kvHead);
  return Object.fromEntries(
    names.map((name) => [name, gradients[name].values] as const),
  ) as PredictedGradients;
}
