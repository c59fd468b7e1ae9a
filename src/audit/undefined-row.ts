import { levels, type AttentionReference } from '../../oracles/index.js';

/**
 * Whether a row sees keys, but only such with a score of −∞. Nothing is left for it, as for a row
 * without keys; a kernel that subtracts the maximum gets −∞ − (−∞), NaN, and may.
 * @param row counted over [batch, heads, queries]
 */
export function isUndefinedRow(
  {
    level,
    quantities: {
      lse: { values: lse },
    },
  }: AttentionReference,
  row: number,
): boolean {
  return levels[level[row]] === 'special' && lse[row] === -Infinity;
}
