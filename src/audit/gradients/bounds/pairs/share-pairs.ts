import { tileRows } from '../../../bounds/index.js';
import {
  addShare,
  pairPlaces,
  placeCount,
  techniquePlaces,
  type TechniqueShares,
} from '../gradient-techniques.js';
import type { PairMemory } from './pair-memory.js';

/** The shares of techniques in rows of dQ, from `firstQuery` on, and of dK and dV, from `firstKey` on; null where they are not asked for. */
export interface ShareTargets {
  readonly queries: TechniqueShares;
  readonly firstQuery: number;
  readonly group: { readonly dk: TechniqueShares; readonly dv: TechniqueShares } | null;
  readonly firstKey: number;
}

/** A bit for each technique that errors of pairs come from. */
const ofKeys = 2 ** pairPlaces - 1;
const ofValues =
  (1 << techniquePlaces.lseInput) |
  (1 << techniquePlaces.pRecompute) |
  (1 << techniquePlaces.pRound);

/** Adds the sums of a tile to the shares of its rows. */
function addShares({ shares }: PairMemory, to: TechniqueShares, firstRow: number): void {
  const rows = Math.min(tileRows, to.worst.length / placeCount - firstRow);
  const variances = pairPlaces * tileRows;
  for (let place = 0; place < pairPlaces; place++)
    for (let i = 0; i < rows; i++) {
      const at = place * tileRows + i;
      addShare(to, firstRow + i, place, shares[at], shares[variances + at]);
    }
}

/**
 * Writes the errors of the pairs of a tile that is weighed into the parts of the gradients, and adds up techniques' shares: those of
 * dQ without the row's errors, and those of dK and dV with them.
 */
export function sharePairs(
  memory: PairMemory,
  { queries, firstQuery, group, firstKey }: ShareTargets,
): void {
  const { tile, gradients } = memory;
  const { kernels, address } = tile;
  if (group !== null) {
    tile.errWeights();
    kernels.collectOfKeys(address, gradients.dv, ofValues, true, tile.segments());
    addShares(memory, group.dv, firstKey);
  }
  tile.errDerivatives();
  if (group !== null) {
    kernels.collectOfKeys(address, gradients.dk, ofKeys, false, tile.segments());
    addShares(memory, group.dk, firstKey);
  }
  kernels.collectOfQueries(address, tile.segments());
  addShares(memory, queries, firstQuery);
}
