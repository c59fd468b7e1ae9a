import type { Problem, ProblemShape, Tensor } from '../../src/problem/index.js';
import type { HeadOperands } from '../attention/head-operands.js';
import { readOperand, type Operand } from '../attention/operand.js';

/** The operands of one query head, decoded, with the gradient of its output. */
export interface GradientOperands extends HeadOperands {
  /** dO, [queries × vDim]. */
  readonly dout: Operand;
}

/** The query heads that share one head of K and V. */
export interface HeadGroup {
  /** Counted over [batch, kv heads]. */
  readonly kvHead: number;
  /** Its query heads, counted over [batch, heads], in order: decoded one by one on demand. */
  readonly heads: readonly number[];
  readonly operandsOf: (head: number) => GradientOperands;
}

/**
 * Decodes a problem group by group; `operandsOf` keeps its last head.
 * @param wanted the heads of K whose groups are wanted, counted over [batch, kv heads]; default: all
 */
export function* headGroups(
  { q, k, v }: Problem,
  dout: Tensor,
  shape: ProblemShape,
  wanted?: readonly number[],
): Generator<HeadGroup> {
  const { batch, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  for (const kvHead of wanted ?? Array.from({ length: batch * kvHeads }).keys()) {
    const key = readOperand(k, kvHead * keys * qkDim, keys, qkDim);
    const values = readOperand(v, kvHead * keys * vDim, keys, vDim);
    let last: GradientOperands | null = null;
    const operandsOf = (head: number) => {
      if (last?.head === head) return last;
      last = {
        head,
        query: readOperand(q, head * queries * qkDim, queries, qkDim),
        keys: key,
        values,
        dout: readOperand(dout, head * queries * vDim, queries, vDim),
      };
      return last;
    };
    const heads = Array.from({ length: groupSize }, (_, i) => kvHead * groupSize + i);
    yield { kvHead, heads, operandsOf };
  }
}
