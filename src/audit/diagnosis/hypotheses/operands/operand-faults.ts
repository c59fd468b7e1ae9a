import { keysOf, problemFeatures } from '../../../../problem/index.js';
import type {
  Hypothesis,
  HypothesisContext,
  HypothesisFamily,
  SampleRow,
} from '../../hypothesis.js';
import { predictWeighted, softmaxRow, type RowPrediction } from '../../prediction.js';

/** Reads a row of Q, K or V as a faulty kernel does, by that row's flat number over [batch, heads, rows]. */
type ReadRow = (flat: number) => Float64Array;

/** The operands of a faulty kernel; it reads rightly what is left out. */
export interface Operands {
  readonly query?: ReadRow;
  readonly key?: ReadRow;
  readonly value?: ReadRow;
}

/** Reads the rows of K, or of V, by their flat number over [batch, kv heads, keys]. */
export function rowsOfKeys({ reader, shape }: HypothesisContext, which: 'k' | 'v'): ReadRow {
  const { keys } = shape;
  const dim = which === 'k' ? shape.qkDim : shape.vDim;
  return (flat) => {
    const kv = Math.floor(flat / keys);
    const from = (flat - kv * keys) * dim;
    return (which === 'k' ? reader.keys(kv) : reader.values(kv)).subarray(from, from + dim);
  };
}

/** The dot product of two vectors in fp64. */
export function product(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let t = 0; t < a.length; t++) sum += a[t] * b[t];
  return sum;
}

/** A row of the output of a kernel that reads other operands. */
export function predictOperands(
  { reader, shape }: HypothesisContext,
  row: SampleRow,
  { query, key, value }: Operands,
): RowPrediction {
  const { keys, vDim } = shape;
  const first = row.kv * keys;
  const own = reader.values(row.kv);
  let values = own;
  if (value !== undefined) {
    values = own.slice();
    for (const j of keysOf(row.ranges)) values.set(value(first + j), j * vDim);
  }
  let dotOf: (j: number) => number;
  if (query === undefined && key === undefined) {
    const dots = reader.dots(row.row, row.kv);
    dotOf = (j) => dots[j];
  } else {
    const q = query === undefined ? reader.query(row.row) : query(row.row);
    const k = key ?? ((flat: number) => ownKey(reader.keys(row.kv), flat - first, q.length));
    dotOf = (j) => product(q, k(first + j));
  }
  const scores = reader.maskedScores(row.row, row.ranges, (j) =>
    reader.score(dotOf(j), row.row, j),
  );
  return predictWeighted(row, softmaxRow(scores, reader.keptOf(row.row, values)));
}

function ownKey(keys: Float64Array, j: number, dim: number): Float64Array {
  return keys.subarray(j * dim, (j + 1) * dim);
}

/** One tensor in place of another. */
function* exchangedTensors(context: HypothesisContext): Generator<Hypothesis> {
  const { reader, shape } = context;
  const { qkDim, vDim, queries, keys, heads, kvHeads } = shape;
  const isSample = reader.problem.rows !== undefined;
  const faults: (Operands & { readonly statement: string })[] = [];
  const key = rowsOfKeys(context, 'k');
  const value = rowsOfKeys(context, 'v');
  if (qkDim === vDim)
    faults.push(
      { statement: 'K is read in place of V', value: key },
      { statement: 'V is read in place of K', key: value },
      { statement: 'K and V are exchanged', key: value, value: key },
    );
  if (queries === keys && heads === kvHeads && !isSample)
    faults.push(
      { statement: 'Q is read in place of K', key: reader.query },
      { statement: 'K is read in place of Q', query: key },
      ...(qkDim === vDim ? [{ statement: 'Q is read in place of V', value: reader.query }] : []),
    );
  for (const { statement, ...operands } of faults)
    yield {
      id: 'wrong-tensor',
      technique: null,
      statement,
      predict: (row) => predictOperands(context, row, operands),
    };
}

/**
 * Heads and positions exchanged: the row of head h and position s attends to the heads of its own position. A
 * kernel that is given [batch, seqlen, heads, dim] for [batch, heads, seqlen, dim] does so; a correct kernel
 * seems to do so where this audit was given the tensors in that layout.
 */
function* exchangedAxes({ reader, shape }: HypothesisContext): Generator<Hypothesis> {
  const { problem } = reader;
  const { causal, window, scale, softcap } = problem;
  const { heads, kvHeads, queries, keys, qkDim, vDim } = shape;
  if (problemFeatures(problem).some((name) => name !== 'scales')) return;
  if (queries % keys !== 0 || heads * queries < 2) return;
  const groupSize = queries / keys;
  yield {
    id: 'axes-exchanged',
    technique: null,
    statement:
      'heads and positions are exchanged, so that a row attends to the heads of its own position: [batch, seqlen, heads, dim] is taken for [batch, heads, seqlen, dim], by the kernel or in this audit (--layout bshd)',
    ofAll: true,
    predict: (row) => {
      const batch = Math.floor(row.head / heads);
      const position = row.head % heads;
      const at = Math.floor(row.query / groupSize);
      const q = reader.query(row.row);
      const values = new Float64Array(kvHeads * vDim);
      const diagonal = position + kvHeads - heads;
      const scores = Float64Array.from({ length: kvHeads }, (_, key) => {
        const isLate = causal && key > diagonal;
        const isFarLeft = window !== null && window.left >= 0 && key < diagonal - window.left;
        const isFarRight = window !== null && window.right >= 0 && key > diagonal + window.right;
        if (isLate || isFarLeft || isFarRight) return -Infinity;
        const kv = batch * kvHeads + key;
        values.set(reader.values(kv).subarray(at * vDim, (at + 1) * vDim), key * vDim);
        const dot = product(q, reader.keys(kv).subarray(at * qkDim, (at + 1) * qkDim));
        const x = scale * dot;
        return softcap === null ? x : softcap * Math.tanh(x / softcap);
      });
      // The row's own bound does not cover the rounding of an LSE of so few keys.
      return { ...predictWeighted(row, softmaxRow(scores, values)), lse: NaN };
    },
  };
}

/** Operands that are other tensors, or whose heads and positions are exchanged. */
export const operandHypotheses: HypothesisFamily = function* (context) {
  yield* exchangedTensors(context);
  yield* exchangedAxes(context);
};
