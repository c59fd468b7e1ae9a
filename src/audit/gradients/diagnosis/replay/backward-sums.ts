import {
  byGradient,
  type ByGradient,
  type GradientQuantityName,
} from '../../gradient-quantities.js';
import type { FailedGradients } from '../failed-gradients.js';
import type { Scope } from '../scope.js';
import {
  backwardRows,
  type BackwardChange,
  type BackwardOperands,
  type BackwardRow,
} from './backward-row.js';

/** A gradient, the sizes that its elements are sums of, and the sums of the squares of these terms. */
export interface Sums {
  readonly values: Float64Array;
  readonly sizes: Float64Array;
  readonly squares: Float64Array;
}

/** Adds a factor times a row of numbers to a row, and `size` times its sizes to another. */
function addRow(
  { values, sizes, squares }: Sums,
  at: number,
  [factor, size]: readonly [number, number],
  [from, first, columns]: readonly [Float64Array, number, number],
): void {
  for (let c = 0; c < columns; c++) {
    const x = from[first + c];
    const term = size * Math.abs(x);
    values[at + c] += factor * x;
    sizes[at + c] += term;
    squares[at + c] += term * term;
  }
}

/** A change of some rows of a backward pass, and that of all others. */
export interface ScopedChange {
  readonly change: BackwardChange;
  /** Default all rows. */
  readonly scope?: Scope | null;
  /** The change of all rows outside of it. */
  readonly elsewhere?: BackwardChange;
}

/** The gradients of a backward pass, and how the shares of its rows are added to them. */
export interface BackwardSums {
  readonly gradients: ByGradient<Sums>;
  /** All rows of the query heads of a head of K. */
  readonly addGroup: (kvHead: number) => void;
  /** One row's dQ alone. */
  readonly addQuery: (head: number, query: number) => void;
}

/**
 * The gradients of a backward pass with a fault, of zeros, to be filled in group by group of heads.
 * @param names which of them are summed; the others stay 0
 */
export function backwardSums(
  { problem, measured }: Pick<FailedGradients, 'problem' | 'measured'>,
  operands: BackwardOperands,
  { change, scope = null, elsewhere = {} }: ScopedChange,
  names: readonly GradientQuantityName[],
): BackwardSums {
  const { groupSize, queries, qkDim, vDim, keys } = measured.shape;
  const gradients: ByGradient<Sums> = byGradient(({ name }) => {
    const numbers = () => new Float64Array(measured.gradients[name].exact.values.length);
    return { values: numbers(), sizes: numbers(), squares: numbers() };
  });
  const { dq, dk, dv } = gradients;
  const passOf = (of: BackwardChange) => ({
    rowOf: backwardRows(problem, measured, operands, of),
    read: { ...operands, ...of.operands },
    scale: of.outerScale ?? of.law?.scale ?? problem.scale,
    addedTo: of.addedTo ?? ((head: number) => Math.floor(head / groupSize)),
    to: (name: GradientQuantityName, row: number) => of.written?.[name]?.to(row) ?? row,
  });
  const changed = passOf(change);
  const others = scope === null ? changed : passOf(elsewhere);
  const add = (head: number, query: number, isAdded: (name: GradientQuantityName) => boolean) => {
    const row = head * queries + query;
    const pass = scope === null || scope[row] === 1 ? changed : others;
    const { q, k, dout } = pass.read;
    const { firstKey, ranges, weights, scores, sizes }: BackwardRow = pass.rowOf(head, query);
    const to = pass.addedTo(head) * keys;
    const toQuery = pass.to('dq', row);
    const [hasQueries, hasKeys, hasValues] = [isAdded('dq'), isAdded('dk'), isAdded('dv')];
    for (const { begin, end } of ranges)
      for (let key = begin; key < end; key++) {
        const ds = [pass.scale * scores[key], Math.abs(pass.scale) * sizes[key]] as const;
        const p = [weights[key], weights[key]] as const;
        if (hasQueries) addRow(dq, toQuery * qkDim, ds, [k, (firstKey + key) * qkDim, qkDim]);
        if (hasKeys) addRow(dk, pass.to('dk', to + key) * qkDim, ds, [q, row * qkDim, qkDim]);
        if (hasValues) addRow(dv, pass.to('dv', to + key) * vDim, p, [dout, row * vDim, vDim]);
      }
  };
  return {
    gradients,
    addGroup: (kvHead) => {
      for (let head = kvHead * groupSize; head < (kvHead + 1) * groupSize; head++)
        for (let query = 0; query < queries; query++)
          add(head, query, (name) => names.includes(name));
    },
    addQuery: (head, query) => add(head, query, (name) => name === 'dq'),
  };
}
