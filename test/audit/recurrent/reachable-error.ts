import type { RecurrentArithmetic, RecurrentValue } from '../../../kernels/index.js';
import {
  blockMatrices,
  setBlockMatrices,
  type BlockMatrices,
} from '../../../src/audit/recurrent/bounds/block-matrices.js';
import { addProduct } from '../../../src/audit/recurrent/bounds/matrices.js';
import { conversion } from '../../../src/audit/recurrent/bounds/roundings.js';
import { blockReader, type TokenBlock } from '../../../src/audit/recurrent/bounds/token-blocks.js';
import { recurrentShape, type RecurrentProblem } from '../../../src/problem/index.js';

/** The exact parts of one chunk of a delta rule with decays by head, and what its values may be rounded by. */
interface Chunk {
  readonly n: number;
  readonly block: TokenBlock;
  readonly matrices: BlockMatrices;
  /** The state before it. */
  readonly state: Float64Array;
  /** R, N and β v, of [n, value dimension]; W of [n, key dimension]; U. */
  readonly residual: Float64Array;
  readonly writes: Float64Array;
  readonly values: Float64Array;
  readonly reads: Float64Array;
  readonly fresh: Float64Array;
}

/** What half an ulp of a value is. */
type HalfUlp = (of: RecurrentValue, value: number) => number;

/** The chunks of the first sequence and head. */
function chunksOf(problem: RecurrentProblem, { chunk }: RecurrentArithmetic): readonly Chunk[] {
  const shape = recurrentShape(problem);
  const { keyDim, valueDim, tokens } = shape;
  const read = blockReader(problem, shape, chunk);
  const state = new Float64Array(keyDim * valueDim);
  return Array.from({ length: Math.ceil(tokens / chunk) }, (_, at) => {
    const n = Math.min(chunk, tokens - at * chunk);
    const block = structuredClone(read(at * chunk, n, 0));
    const matrices = blockMatrices(n, shape);
    setBlockMatrices(matrices, block, null, { dim: keyDim, isDelta: true });
    const made = (a: Float64Array, b: Float64Array, inner: number, columns: number) => {
      const out = new Float64Array(n * columns);
      addProduct(out, a, b, { rows: n, inner, columns });
      return out;
    };
    const values = block.v
      .slice(0, n * valueDim)
      .map((x, i) => x * block.beta[Math.floor(i / valueDim)]);
    const held = made(matrices.startKeys, state, keyDim, valueDim);
    const residual = values.map((x, i) => x - held[i]);
    const writes = made(matrices.inverse, residual, n, valueDim);
    const reads = made(matrices.inverse, matrices.startKeys, n, keyDim);
    const fresh = made(matrices.inverse, values, n, valueDim);
    const before = state.slice();
    for (let i = 0; i < state.length; i++) state[i] *= matrices.endDecay[Math.floor(i / valueDim)];
    const size = { rows: keyDim, inner: n, columns: valueDim };
    addProduct(state, matrices.endKeys, writes, size, true);
    return { n, block, matrices, state: before, residual, writes, values, reads, fresh };
  });
}

/** What roundings of a chunk's A, T, W, U and their operands add to y N of a column, at most; takes −y W off x, what is read of the state. */
function ofWrites(
  { n, block, matrices, state, residual, writes, values, reads, fresh }: Chunk,
  y: Float64Array,
  x: Float64Array,
  [c, columns]: readonly [column: number, columns: number],
  half: HalfUlp,
): number {
  const dim = x.length;
  const before = new Float64Array(dim);
  const z = new Float64Array(n);
  let sum = 0;
  for (let s = 0; s < n; s++) {
    let own = half('write-factor', fresh[s * columns + c]);
    for (let i = 0; i < dim; i++) {
      own += half('write-factor', reads[s * dim + i]) * Math.abs(state[i * columns + c]);
      x[i] -= y[s] * reads[s * dim + i];
    }
    for (let j = 0; j < s; j++)
      own += half('inverse', matrices.inverse[s * n + j]) * Math.abs(residual[j * columns + c]);
    for (let j = 0; j <= s; j++) z[j] += matrices.inverse[s * n + j] * y[s];
    sum += Math.abs(y[s]) * own;
  }
  for (let s = 0; s < n; s++) {
    let own = half('operand', values[s * columns + c]);
    for (let i = 0; i < dim; i++) {
      const at = s * dim + i;
      own += half('operand', matrices.startKeys[at]) * Math.abs(state[i * columns + c]);
      before[i] *= block.decay[at];
      own += half('operand', block.beta[s] * block.k[at]) * Math.abs(before[i]);
      before[i] += block.k[at] * writes[s * columns + c];
    }
    sum += Math.abs(z[s]) * own;
  }
  return sum;
}

/** What the state's copy adds to x S of a column, at most. */
const ofCopy = (
  x: Float64Array,
  { state }: Chunk,
  [c, columns]: readonly [number, number],
  half: HalfUlp,
) =>
  x.reduce((sum, one, i) => sum + Math.abs(one) * half('state-operand', state[i * columns + c]), 0);

/**
 * What roundings of a kernel in chunks make of elements of its output, [token, value dimension] of the first head, if all go against the element: to first order,
 * Σ |∂o/∂δ| times half an ulp of each value that is kept in a short format. For delta rules without decays or with decays by head.
 */
export function reachableErrors(
  problem: RecurrentProblem,
  arithmetic: RecurrentArithmetic,
  elements: readonly (readonly [token: number, column: number])[],
): readonly number[] {
  const { keyDim: dim, valueDim: columns } = recurrentShape(problem);
  const { formats } = arithmetic;
  const half: HalfUlp = (of, value) => conversion(formats[of], formats.sum).error(Math.abs(value));
  const chunks = chunksOf(problem, arithmetic);
  return elements.map(([token, c]) => {
    const place = [c, columns] as const;
    const at = Math.floor(token / arithmetic.chunk);
    const t = token - at * arithmetic.chunk;
    const own = chunks[at];
    const x = own.matrices.startQueries.slice(t * dim, (t + 1) * dim);
    const y = own.matrices.intra.slice(t * own.n, (t + 1) * own.n);
    let sum = 0;
    for (let j = 0; j <= t; j++) {
      const write = own.writes[j * columns + c];
      sum += half('intra', y[j]) * Math.abs(write) + Math.abs(y[j]) * half('write', write);
    }
    sum += ofWrites(own, y, x, place, half) + ofCopy(x, own, place, half);
    for (const chunk of chunks.slice(0, at).reverse()) {
      const { n, matrices, block, writes } = chunk;
      const back = Float64Array.from({ length: n }, (_, j) =>
        x.reduce((all, one, i) => all + one * matrices.endKeys[j * dim + i], 0),
      );
      let toEnd = 1;
      for (let j = n - 1; j >= 0; j--) {
        const share = toEnd > 0 ? Math.abs(back[j]) / toEnd : 0;
        sum += share * half('write-operand', writes[j * columns + c] * toEnd);
        toEnd *= block.decay[j * dim];
      }
      const read = new Float64Array(dim);
      sum += ofWrites(chunk, back, read, place, half) + ofCopy(read, chunk, place, half);
      for (let i = 0; i < dim; i++) x[i] = x[i] * matrices.endDecay[i] + read[i];
    }
    return sum * Math.abs(problem.scale ?? 1 / Math.sqrt(dim));
  });
}
