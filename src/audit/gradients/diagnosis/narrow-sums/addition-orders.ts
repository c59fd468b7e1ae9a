/** Orders of additions that have a name. */
export const namedOrders = {
  ascending: 'from the first to the last',
  descending: 'from the last to the first',
  'heads within tiles': 'tile by tile, of each all query heads',
  'heads apart': 'from the first to the last, each query head by itself',
  'heads apart, descending': 'from the last to the first, each query head by itself',
} as const;

export type NamedOrder = keyof typeof namedOrders;

/** Number of query heads that add, and of tiles of each. */
export interface TileCounts {
  readonly heads: number;
  readonly tiles: number;
}

/** Chunks, numbered head · tiles + tile, in the order in which they are added: one list, or one of each sum by itself. */
export type AdditionOrder = readonly (readonly number[])[];

const ascending = (count: number) => Array.from({ length: count }, (_, i) => i);

/** The named orders that differ for some counts. */
export function ordersOf({
  heads,
  tiles,
}: TileCounts): readonly (readonly [NamedOrder, AdditionOrder])[] {
  const all = ascending(heads * tiles);
  const usual = [
    ['ascending', [all]],
    ['descending', [all.toReversed()]],
  ] as const;
  if (heads === 1) return tiles === 1 ? usual.slice(0, 1) : usual;
  const apart = ascending(heads).map((head) => ascending(tiles).map((tile) => head * tiles + tile));
  return [
    ...usual,
    ['heads within tiles', [ascending(tiles).flatMap((tile) => apart.map((of) => of[tile]))]],
    ['heads apart', apart],
    ['heads apart, descending', apart.map((of) => of.toReversed())],
  ];
}

function permutations(of: readonly number[]): readonly (readonly number[])[] {
  if (of.length <= 1) return [of];
  return of.flatMap((first) =>
    permutations(of.filter((one) => one !== first)).map((rest) => [first, ...rest]),
  );
}

/** Number of chunks of which every order is tried: 120 of them; and of which every rotation is. */
const mostPermuted = 5;
const mostRotated = 64;

/** Orders that atomic adds may come in: all of a few chunks, of more those that begin anywhere and go round; of many none. */
export function anyOrders({ heads, tiles }: TileCounts): readonly AdditionOrder[] {
  const all = ascending(heads * tiles);
  if (all.length <= mostPermuted) return permutations(all).map((one) => [one]);
  if (all.length > mostRotated) return [];
  return [all, all.toReversed()].flatMap((order) =>
    order.map((_, first) => [[...order.slice(first), ...order.slice(0, first)]]),
  );
}
