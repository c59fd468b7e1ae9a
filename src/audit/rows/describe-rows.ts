import type { Quantity } from '../../problem/index.js';
import type { RowsOfHead } from '../structure/error-statistic.js';

/**
 * "batch 1, head 3, keys 128 to 255" of some rows of a quantity, whose head counts over [batch, heads].
 * @param counted the number of the rows, which is told where they are not all between the first and the last
 */
export function describeRows(
  { scope, head, firstRow, lastRow }: Omit<RowsOfHead, 'rows'>,
  { axes, rowWord }: Pick<Quantity, 'axes' | 'rowWord'>,
  heads: number,
  counted: number | null = null,
): string {
  const batch = Math.floor(head / heads);
  const ofHead = `${batch === 0 ? '' : `batch ${batch}, `}head ${head % heads}`;
  const one = rowWord ?? (axes[2] === 'keys' ? 'key' : 'query');
  const many = one === 'query' ? 'queries' : `${one}s`;
  if (scope === 'row') return `${ofHead}, ${one} ${firstRow}`;
  if (counted !== null && counted !== lastRow - firstRow + 1)
    return `${ofHead}, ${counted} sampled ${many}${scope === 'head' ? '' : ` from ${firstRow} to ${lastRow}`}`;
  return scope === 'head' ? ofHead : `${ofHead}, ${many} ${firstRow} to ${lastRow}`;
}
