import type { AttentionReference, WorkingMemories } from '../../../oracles/index.js';
import { gatherListed, problemShape, type Problem } from '../../problem/index.js';
import type { KernelArithmetic } from '../bounds/index.js';

/** Whether a kernel's errors depend on which places its keys have: those of blocks, and columns of a polynomial. */
function goesByPlaces({ maximum, exponential: { polynomialColumns } }: KernelArithmetic): boolean {
  return maximum.kind === 'online' || new Set(polynomialColumns).size > 1;
}

/**
 * The problem of a part whose queries list few keys, with these keys alone: see `gatherListed`. The same where it has no lists.
 * @param memories keep what was gathered last
 */
export function withListedKeys(
  problem: Problem,
  arithmetic: KernelArithmetic,
  memories?: WorkingMemories,
): Problem {
  if (problem.keyLists === undefined || goesByPlaces(arithmetic)) return problem;
  const gather = (): Problem => gatherListed(problem, problemShape(problem)) ?? problem;
  return memories?.keep('listed keys', problem, gather) ?? gather();
}

/** A reference as that of a problem with other keys and the same rows. */
export function referenceOfKeys(
  reference: AttentionReference,
  problem: Problem,
  memories?: WorkingMemories,
): AttentionReference {
  const make = () => ({ ...reference, shape: problemShape(problem) });
  return memories?.keep('reference of listed keys', reference, make) ?? make();
}
