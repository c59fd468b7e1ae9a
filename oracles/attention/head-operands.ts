import type { KeyRange, Problem, ProblemShape } from '../../src/problem/index.js';
import type { Tensor } from '../../src/formats/index.js';
import type { WorkingMemories } from '../../src/reuse.js';
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

/** Operands of so many elements are remembered for other parts of a problem: 8 MiB in fp64, and their columns as much. */
const mostRemembered = 2 ** 20;

/**
 * Decodes head by head, keeping K and V while query heads of one group follow each other.
 * @param memories remember K and V for other queries
 */
export function* headOperands(
  problem: Problem,
  shape: ProblemShape,
  memories?: WorkingMemories,
): Generator<HeadOperands> {
  const read = (name: 'keys' | 'values', tensor: Tensor, first: number, rows: number) => {
    const dim = tensor.shape.at(-1) ?? 0;
    const make = () => readOperand(tensor, first, rows, dim);
    // Scales have data of their own.
    const isRemembered = rows * dim <= mostRemembered && tensor.scales === undefined;
    if (memories === undefined || !isRemembered) return make();
    const data = tensor.data.subarray(first, first + rows * dim);
    return memories.remember(`${name} ${tensor.format} ${rows} ${dim}`, [data], make);
  };
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  for (let b = 0; b < batch; b++) {
    let kvHead = -1;
    let key: Operand | undefined;
    let value: Operand | undefined;
    for (let h = 0; h < heads; h++) {
      if (Math.floor(h / groupSize) !== kvHead) {
        kvHead = Math.floor(h / groupSize);
        const kv = b * kvHeads + kvHead;
        key = read('keys', problem.k, kv * keys * qkDim, keys);
        value = read('values', problem.v, kv * keys * vDim, keys);
      }
      const first = (b * heads + h) * queries * qkDim;
      const query = readOperand(problem.q, first, queries, qkDim);
      yield { head: b * heads + h, query, keys: key!, values: value! };
    }
  }
}
