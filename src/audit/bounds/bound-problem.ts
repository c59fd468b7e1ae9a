import { levels, type AttentionReference, type Progress } from '../../../oracles/index.js';
import type { Problem } from '../../problem/index.js';
import { createRowBounder } from './bound-rows.js';
import { headOperands } from './head-operands.js';
import type { KernelArithmetic } from './kernel-arithmetic.js';
import { tileRows } from './memory.js';
import type { RowsBound } from './rows-bound.js';

/**
 * Visits the bounds of a problem, 64 rows at a time: for every element of the output and every LSE how
 * far a kernel of the given arithmetic may be from the oracle, by technique and in total, and what of
 * it is systematic and what random. Nothing is run: bounds follow from the problem alone. Proofs in
 * docs/bounds.md. Cost is that of about two to three oracles; memory that of a tile, and of at most 64
 * tiles of scores, beyond the inputs of one head.
 *
 * NaN where an input of the row is infinite or NaN (nothing is said), ∞ where the kernel may leave the
 * range of its formats.
 */
export function forEachRowsBound(
  problem: Problem,
  reference: AttentionReference,
  arithmetic: KernelArithmetic,
  visit: (bound: RowsBound) => void,
  progress?: Progress,
): void {
  const { shape } = reference;
  const special = levels.indexOf('special');
  const isSpecial = (row: number) => reference.level[row] === special;
  const boundRows = createRowBounder(problem, reference, arithmetic);
  for (const operands of headOperands(problem, shape, arithmetic)) {
    for (let first = 0; first < shape.queries; first += tileRows) {
      const count = Math.min(tileRows, shape.queries - first);
      visit(boundRows(operands, first, count, isSpecial));
      progress?.((operands.head + (first + count) / shape.queries) / (shape.batch * shape.heads));
    }
  }
}
