import type { KeyRange } from '../../problem/index.js';
import type { KernelArithmetic } from './kernel-arithmetic.js';
import { tileRows } from './memory.js';

/** At most 64 keys of one block, with the order in which the inner loops take them. */
export interface KeyTile {
  readonly firstKey: number;
  readonly keys: number;
  /** Which block of the kernel it belongs to, counted in the kernel's order. */
  readonly block: number;
  readonly startsBlock: boolean;
  readonly endsBlock: boolean;
  /** [64]: for each place the key's place in the tile; those of the polynomial come first. */
  readonly order: Int32Array;
  /** How many are the polynomial's. */
  readonly polynomial: number;
}

/** Blocks of `blockKeys` keys in the kernel's order: from the last to the first where it is online. */
function blocksOf(arithmetic: KernelArithmetic, span: KeyRange): KeyRange[] {
  const { maximum } = arithmetic;
  if (span.begin >= span.end) return [];
  if (maximum.kind !== 'online') return [span];
  const { blockKeys } = maximum;
  const blocks: KeyRange[] = [];
  for (
    let block = Math.ceil(span.end / blockKeys) - 1;
    block >= Math.floor(span.begin / blockKeys);
    block--
  )
    blocks.push({
      begin: block * blockKeys,
      end: Math.min((block + 1) * blockKeys, span.end),
    });
  return blocks;
}

/** The tiles of all blocks that any of the ranges sees, in the order of the blocks. */
export function keyTiles(arithmetic: KernelArithmetic, ranges: readonly KeyRange[]): KeyTile[] {
  const seen = ranges.filter(({ begin, end }) => begin < end);
  const span = {
    begin: seen.reduce((least, { begin }) => Math.min(least, begin), Infinity),
    end: seen.reduce((most, { end }) => Math.max(most, end), 0),
  };
  const { polynomialColumns } = arithmetic.exponential;
  return blocksOf(arithmetic, span).flatMap(({ begin, end }, block) =>
    Array.from({ length: Math.ceil((end - begin) / tileRows) }, (_, i) => {
      const firstKey = begin + i * tileRows;
      const isPolynomial = (place: number) => polynomialColumns[i * tileRows + place] === true;
      const places = Array.from({ length: tileRows }, (_, place) => place);
      const polynomial = places.filter(isPolynomial);
      const order = [...polynomial, ...places.filter((place) => !isPolynomial(place))];
      return {
        firstKey,
        keys: Math.min(tileRows, end - firstKey),
        block,
        startsBlock: i === 0,
        endsBlock: firstKey + tileRows >= end,
        order: Int32Array.from(order),
        polynomial: polynomial.length,
      };
    }),
  );
}
