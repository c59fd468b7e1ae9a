import { maskTile, spanOfRows, type KeyRange } from '../../problem/index.js';
import type { KernelArithmetic } from '../../../kernels/index.js';
import { tileRows } from './memory.js';

/** At most 64 keys of one block. */
export interface KeyTile {
  readonly firstKey: number;
  readonly keys: number;
  /** The kernel's block that it belongs to, counted in the kernel's order. */
  readonly block: number;
  readonly startsBlock: boolean;
  readonly endsBlock: boolean;
  /** [64]: whether the polynomial computes the key's exponential. */
  readonly isPolynomial: readonly boolean[];
}

/**
 * Blocks of `blockKeys` keys in the kernel's order: from the last to the first where it is online.
 * @param origin the first key of the rows' sequence, where a kernel's first block begins
 */
function blocksOf({ maximum }: KernelArithmetic, span: KeyRange, origin: number): KeyRange[] {
  if (span.begin >= span.end) return [];
  if (maximum.kind !== 'online') return [span];
  const { blockKeys } = maximum;
  const blocks: KeyRange[] = [];
  const last = Math.ceil((span.end - origin) / blockKeys) - 1;
  for (let block = last; block >= Math.floor((span.begin - origin) / blockKeys); block--)
    blocks.push({
      begin: origin + block * blockKeys,
      end: Math.min(origin + (block + 1) * blockKeys, span.end),
    });
  return blocks;
}

/** The ranges of keys that each of some rows sees: see `Mask`. */
export type RowRanges = readonly (readonly KeyRange[])[];

/**
 * The tiles of all blocks from the first that any row sees to the last, in the order of the blocks; of a kernel
 * without blocks only those in which a row sees a key.
 * @param rows of one sequence
 * @param origin the first key of that sequence
 */
export function keyTiles(arithmetic: KernelArithmetic, rows: RowRanges, origin = 0): KeyTile[] {
  const { polynomialColumns } = arithmetic.exponential;
  const isOnline = arithmetic.maximum.kind === 'online';
  const low = new Int32Array(rows.length);
  const high = new Int32Array(rows.length);
  return blocksOf(arithmetic, spanOfRows(rows), origin).flatMap(({ begin, end }, block) => {
    const firsts = Array.from(
      { length: Math.ceil((end - begin) / tileRows) },
      (_, i) => begin + i * tileRows,
    );
    const isSeen = (firstKey: number) =>
      isOnline || maskTile(rows, { begin: firstKey, end: firstKey + tileRows }, low, high).isSeen;
    return firsts.filter(isSeen).map((firstKey) => {
      const column = firstKey - begin;
      return {
        firstKey,
        keys: Math.min(tileRows, end - firstKey),
        block,
        startsBlock: column === 0,
        endsBlock: firstKey + tileRows >= end,
        isPolynomial: Array.from(
          { length: tileRows },
          (_, place) => polynomialColumns[column + place] === true,
        ),
      };
    });
  });
}
