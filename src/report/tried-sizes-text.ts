import type { TriedSizes } from '../../properties/index.js';

/** What `describeTriedSizes` writes, for the head of a column. */
export const triedSizesHeading = 'queries×keys, dim, heads/group, batch';

/**
 * The largest sizes that a kernel was tried at, in a few characters, as in "129×257 d32/16 h6/3 b2": queries
 * and keys, dimensions of Q·K and of V, query heads and those of a group, batch.
 */
export function describeTriedSizes(sizes: TriedSizes): string {
  const { batch, heads, groupSize, queries, keys, qkDim, vDim } = sizes;
  const dims = vDim === qkDim ? `${qkDim}` : `${qkDim}/${vDim}`;
  return `${queries}×${keys} d${dims} h${heads}/${groupSize} b${batch}`;
}
