import type { AttentionReference, GroupGradients } from '../../../../oracles/index.js';
import type { Problem, Tensor } from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import type { GradientPremises } from './gradient-premises.js';
import type { GroupBounds, StoredForward } from './group-bounds.js';

/** What gradients are of, and what is known of the kernel that computed them. */
export interface BoundedGradients {
  readonly problem: Problem;
  /** [batch, heads, queries, vDim] */
  readonly dout: Tensor;
  /** Of the same problem. */
  readonly reference: AttentionReference;
  readonly premises: GradientPremises;
  readonly given: StoredForward;
}

/**
 * Makes a function that bounds what the oracle gave of a group, element by element: docs/bounds-backward.md.
 * The group must have dQ, dK and dV. Memory is that of the group's bounds and O(tile).
 */
export function createGradientBounds(
  gradients: BoundedGradients,
): (group: GroupGradients) => GroupBounds {
  return (group) => {
    throw new RequestError(
      `no bounds of gradients of head ${group.kvHead} with ${gradients.premises.description} yet`,
    );
  };
}
