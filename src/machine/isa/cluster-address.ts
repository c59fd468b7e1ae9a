/** Distance between CTAs of adjacent ranks in the addresses of shared memory of a cluster. */
const clusterWindow = 2 ** 24;

/** The cluster address of an offset in the shared memory of a CTA: the result of PTX's `mapa`. */
export function clusterAddress(rank: number, offset: number): number {
  return rank * clusterWindow + offset;
}

/** The CTA and the offset of a cluster address. */
export function splitClusterAddress(address: number): { rank: number; offset: number } {
  return { rank: Math.floor(address / clusterWindow), offset: address % clusterWindow };
}
