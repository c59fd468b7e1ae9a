import { keysOf } from '../../../../problem/index.js';
import type {
  Hypothesis,
  HypothesisContext,
  HypothesisFamily,
  SampleRow,
} from '../../hypothesis.js';
import { predictWeighted, softmaxRow, type RowPrediction } from '../../prediction.js';
import { exactRow } from '../placement-faults.js';

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

/** The flat number of the row that stands in place of another, in a tensor [batch, heads, rows]. */
type MovedRow = (flat: number) => number;

/** Rows of a memory [batch, rows, heads] that is read as [batch, heads, rows], or the reverse. */
function viewedRows(heads: number, rows: number): readonly (readonly [string, MovedRow])[] {
  const size = heads * rows;
  const place = (flat: number) => {
    const inBatch = flat % size;
    return { from: flat - inBatch, head: Math.floor(inBatch / rows), row: inBatch % rows };
  };
  return [
    [
      '[batch, seqlen, heads, dim] as if it were [batch, heads, seqlen, dim]',
      (flat) => {
        const inBatch = flat % size;
        return flat - inBatch + (inBatch % heads) * rows + Math.floor(inBatch / heads);
      },
    ],
    [
      '[batch, heads, seqlen, dim] as if it were [batch, seqlen, heads, dim]',
      (flat) => {
        const { from, head, row } = place(flat);
        return from + row * heads + head;
      },
    ],
  ];
}

const viewed = [
  { names: 'Q, K and V are', q: true, k: true, v: true },
  { names: 'K and V are', q: false, k: true, v: true },
  { names: 'Q is', q: true, k: false, v: false },
  { names: 'K is', q: false, k: true, v: false },
  { names: 'V is', q: false, k: false, v: true },
] as const;

/** A view where a transpose is due: of inputs. */
function* viewedInputs(context: HypothesisContext): Generator<Hypothesis> {
  const { reader, shape } = context;
  const { heads, kvHeads, queries, keys } = shape;
  const ofQueries = viewedRows(heads, queries);
  const ofKeys = viewedRows(kvHeads, keys);
  const key = rowsOfKeys(context, 'k');
  const value = rowsOfKeys(context, 'v');
  for (const { names, q, k, v } of viewed) {
    const isMoved = (q && heads > 1 && queries > 1) || ((k || v) && kvHeads > 1 && keys > 1);
    // A sample of rows lacks those that others were mistaken for.
    if (!isMoved || (q && reader.problem.rows !== undefined)) continue;
    for (const [direction, [how, queryFrom]] of ofQueries.entries()) {
      const keyFrom = ofKeys[direction]?.[1] ?? queryFrom;
      const operands: Operands = {
        ...(q ? { query: (flat: number) => reader.query(queryFrom(flat)) } : {}),
        ...(k ? { key: (flat: number) => key(keyFrom(flat)) } : {}),
        ...(v ? { value: (flat: number) => value(keyFrom(flat)) } : {}),
      };
      yield {
        id: 'view-for-transpose',
        technique: null,
        statement: `${names} read from ${how}: a view in place of a transpose`,
        ofAll: true,
        predict: (row) => predictOperands(context, row, operands),
      };
    }
  }
}

/** A view where a transpose is due: of the output. */
function* viewedOutput(context: HypothesisContext): Generator<Hypothesis> {
  const { reader, shape } = context;
  const { heads, queries } = shape;
  if (heads < 2 || queries < 2 || reader.problem.rows !== undefined) return;
  for (const [how, from] of viewedRows(heads, queries))
    yield {
      id: 'view-for-transpose',
      technique: null,
      statement: `the output is read from ${how}: a view in place of a transpose`,
      ofAll: true,
      predict: ({ row }) => exactRow(context, from(row)),
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
  const names = ['mask', 'bias', 'alibiSlopes', 'sink', 'segments', 'prefix', 'blockMask'] as const;
  const others = [...names, 'dropout', 'sequences', 'rows', 'keyRanges'] as const;
  if (others.some((name) => problem[name] !== undefined)) return;
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

/** Operands that are other tensors, or that have another layout than the kernel reads. */
export const operandHypotheses: HypothesisFamily = function* (context) {
  yield* exchangedTensors(context);
  yield* viewedInputs(context);
  yield* viewedOutput(context);
  yield* exchangedAxes(context);
};
