import type { RecurrentQuantityName } from '../../problem/index.js';
import type { Projection, RowGroup } from './draw-errors.js';
import type { RecurrentRows } from './given-quantities.js';

/** Tokens that are judged together: the chunk of most kernels. */
export const tokensOfGroup = 64;

/** The groups of a quantity's rows: chunks of tokens, and heads; of a state only heads. */
export function groupsOf({ quantity, shape }: RecurrentRows): RowGroup[] {
  const { batch, heads, queries } = shape;
  const groups: RowGroup[] = [];
  for (let head = 0; head < batch * heads; head++) {
    groups.push({ scope: 'head', head, firstRow: 0, rows: queries });
    if (quantity.rowWord !== 'token') continue;
    for (let firstRow = 0; firstRow < queries; firstRow += tokensOfGroup)
      groups.push({
        scope: 'tile',
        head,
        firstRow,
        rows: Math.min(tokensOfGroup, queries - firstRow),
      });
  }
  return groups;
}

/**
 * What the errors of a quantity are projected on: the exact values of each group, which a factor of their own shows by; a constant for each head, which
 * a bias shows by; and for outputs what the state before each chunk of tokens adds.
 * @param fromBefore what the states before chunks add to outputs, in the order of the rows
 */
export function projectionsOf(
  name: RecurrentQuantityName,
  groups: readonly RowGroup[],
  exact: Float64Array,
  fromBefore: Float64Array | null,
): Projection[] {
  const ones = new Float64Array(exact.length).fill(1);
  return groups.flatMap((group) => [
    { test: 'scale' as const, group, direction: exact },
    ...(group.scope === 'head' ? [{ test: 'bias' as const, group, direction: ones }] : []),
    ...(group.scope === 'tile' && name === 'out' && fromBefore !== null
      ? [{ test: 'chunk' as const, group, direction: fromBefore }]
      : []),
  ]);
}
