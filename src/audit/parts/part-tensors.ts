import type { Problem, ProblemShape } from '../../problem/index.js';
import type { RowsBoundVisitor } from '../element-bounds.js';
import type { GivenOutputs, GivenQuantity } from '../kernel-outputs.js';
import { headRows } from './head-rows.js';
import type { PartTensors } from './measure-part.js';
import { firstRowOf, type Part } from './part-plan.js';

/** A part of a problem that is in memory, with the kernel's outputs for it. Shares memory with both. */
export function partTensors(
  problem: Problem,
  { out, lse }: Pick<GivenOutputs, 'out' | 'lse'>,
  shape: ProblemShape,
  part: Part,
): PartTensors {
  const { head, firstRow, rows } = part;
  if (head === null) return { problem, out, lse };
  const first = firstRowOf(part, shape);
  const ofRows = (given: GivenQuantity, elements: number): GivenQuantity => ({
    ...given,
    values: given.values.subarray(first * elements, (first + rows) * elements),
  });
  return {
    problem: headRows(problem, shape, head, firstRow, rows),
    out: ofRows(out, shape.vDim),
    lse: lse === null ? null : ofRows(lse, 1),
  };
}

/** Tells of the bounds of a part's rows as those of the whole problem. */
export function visitInWhole(visit: RowsBoundVisitor, firstRow: number): RowsBoundVisitor {
  return (bound) => visit({ ...bound, firstRow: firstRow + bound.firstRow });
}
