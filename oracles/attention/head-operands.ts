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
 * A function that decodes a head, counted over [batch, heads]. K and V of the last head are kept for others of its group.
 * @param memories remember K and V for other queries
 */
export function createHeadReader(
  problem: Problem,
  shape: ProblemShape,
  memories?: WorkingMemories,
): (head: number) => HeadOperands {
  const read = (name: 'keys' | 'values', tensor: Tensor, first: number, rows: number) => {
    const dim = tensor.shape.at(-1) ?? 0;
    const make = () => readOperand(tensor, first, rows, dim);
    // Scales have data of their own.
    const isRemembered = rows * dim <= mostRemembered && tensor.scales === undefined;
    if (memories === undefined || !isRemembered) return make();
    const data = tensor.data.subarray(first, first + rows * dim);
    return memories.remember(`${name} ${tensor.format} ${rows} ${dim}`, [data], make);
  };
  const { heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  let held: { readonly kv: number; readonly keys: Operand; readonly values: Operand } | null = null;
  return (head) => {
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    if (held?.kv !== kv)
      held = {
        kv,
        keys: read('keys', problem.k, kv * keys * qkDim, keys),
        values: read('values', problem.v, kv * keys * vDim, keys),
      };
    const query = readOperand(problem.q, head * queries * qkDim, queries, qkDim);
    return { head, query, keys: held.keys, values: held.values };
  };
}

/**
 * Decodes head by head, keeping K and V while query heads of one group follow each other.
 * @param memories remember K and V for other queries
 */
export function* headOperands(
  problem: Problem,
  shape: ProblemShape,
  memories?: WorkingMemories,
): Generator<HeadOperands> {
  const read = createHeadReader(problem, shape, memories);
  for (let head = 0; head < shape.batch * shape.heads; head++) yield read(head);
}
