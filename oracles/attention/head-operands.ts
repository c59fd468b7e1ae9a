import type { KeyRange, Problem, ProblemShape } from '../../src/problem/index.js';
import { readOperand, type Operand } from './operand.js';

/** The three operands of one head, decoded. */
export interface HeadOperands {
  /** Counted over [batch, heads]. */
  readonly head: number;
  readonly query: Operand;
  readonly keys: Operand;
  readonly values: Operand;
}

/** Up to 64 query rows of one head, and the keys that each of them sees. */
export interface QueryBlock {
  readonly operands: HeadOperands;
  readonly firstRow: number;
  /** The ranges of keys that each row sees: see `Mask`. */
  readonly ranges: readonly (readonly KeyRange[])[];
}

/** Decodes head by head, keeping K and V while query heads of one group follow each other. */
export function* headOperands(problem: Problem, shape: ProblemShape): Generator<HeadOperands> {
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  for (let b = 0; b < batch; b++) {
    let kvHead = -1;
    let key: Operand | undefined;
    let value: Operand | undefined;
    for (let h = 0; h < heads; h++) {
      if (Math.floor(h / groupSize) !== kvHead) {
        kvHead = Math.floor(h / groupSize);
        const kv = b * kvHeads + kvHead;
        key = readOperand(problem.k, kv * keys * qkDim, keys, qkDim);
        value = readOperand(problem.v, kv * keys * vDim, keys, vDim);
      }
      const first = (b * heads + h) * queries * qkDim;
      const query = readOperand(problem.q, first, queries, qkDim);
      yield { head: b * heads + h, query, keys: key!, values: value! };
    }
  }
}
