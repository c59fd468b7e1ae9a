import { setRowNorms } from '../matrices.js';
import { keepTriangle, type ChunkBack, type ChunkMachine } from './chunk-back.js';
import { clear, roundErrored } from './errored-products.js';

/** dN, dP, and what queries and keys have by the states. */
export function setWriteGradients(
  m: ChunkMachine,
  { gradient, writes }: ChunkBack,
  n: number,
): void {
  const isDelta = writes.reads !== null;
  const { keyDim, valueDim, of, sum, products, w, copied } = m;
  const values = { rows: n, inner: n, columns: valueDim };
  clear(w.ofWrites);
  products.add(w.ofWrites, w.intra, w.outputs, values, { isTransposed: true });
  // A kernel of delta writes may store this part before it has the state's gradient.
  if (isDelta) roundErrored(w.ofWrites, of['write-gradient'], n * valueDim);
  products.add(w.ofWrites, w.endKeys, w.gradient, { rows: n, inner: keyDim, columns: valueDim });
  for (let i = 0; i < n * keyDim; i++)
    w.decays[i] = Math.abs(w.endKeys.value[i]) + w.endKeys.error[i];
  setRowNorms(w.norms, w.decays, keyDim, n);
  const grown = 1 + copied.unit + sum;
  for (let t = 0; t < n; t++)
    for (let c = 0; c < valueDim; c++) {
      const at = t * valueDim + c;
      const moved = w.norms[t] * gradient.norms[c];
      const extra = moved * (grown - 1);
      const size = Math.abs(w.ofWrites.value[at]) + w.ofWrites.error[at] + moved * grown;
      w.ownErrors[at] = w.ofWrites.error[at] + extra + of['write-gradient'].error(size);
      w.ofWrites.error[at] = w.ownErrors[at] + moved;
    }
  clear(w.ofIntra);
  const writesTurned = products.transposed(w.writes, n, valueDim);
  products.add(w.ofIntra, w.outputs, writesTurned, { rows: n, inner: valueDim, columns: n });
  keepTriangle(w.ofIntra, n, false);
  roundErrored(w.ofIntra, of['intra-gradient'], n * n);
  clear(w.ofQueries);
  const toKeys = { rows: n, inner: valueDim, columns: keyDim };
  products.add(w.ofQueries, w.outputs, products.transposed(w.state, keyDim, valueDim), toKeys);
  for (let i = 0; i < keyDim * valueDim; i++)
    w.gradient.error[i] += gradient.norms[i % valueDim] * (1 + copied.unit);
  clear(w.ofKeys);
  products.add(w.ofKeys, w.writes, products.transposed(w.gradient, keyDim, valueDim), toKeys);
}

/** The gradients of W, T, A and of the operands of delta writes. */
export function setDeltaGradients(m: ChunkMachine, n: number): void {
  const { keyDim, valueDim, of, products, w } = m;
  const toKeys = { rows: n, inner: valueDim, columns: keyDim };
  const square = { rows: n, inner: n, columns: n };
  const back = { isTransposed: true };
  clear(w.ofReads);
  products.add(w.ofReads, w.ofWrites, products.transposed(w.state, keyDim, valueDim), toKeys, {
    sign: -1,
  });
  roundErrored(w.ofReads, of['write-gradient'], n * keyDim);
  clear(w.ofStartKeys);
  products.add(w.ofStartKeys, w.inverse, w.ofReads, { ...square, columns: keyDim }, back);
  clear(w.ofValues);
  products.add(w.ofValues, w.inverse, w.ofWrites, { ...square, columns: valueDim }, back);
  clear(w.ofInverse);
  const keysTurned = products.transposed(w.startKeys, n, keyDim);
  products.add(w.ofInverse, w.ofReads, keysTurned, { rows: n, inner: keyDim, columns: n });
  const valuesTurned = products.transposed(w.values, n, valueDim);
  products.add(w.ofInverse, w.ofWrites, valuesTurned, { rows: n, inner: valueDim, columns: n });
  keepTriangle(w.ofInverse, n, false);
  roundErrored(w.ofInverse, of['intra-gradient'], n * n);
  // −Tᵀ dT Tᵀ in either order, the first product stored.
  clear(w.half);
  products.add(w.half, w.inverse, w.ofInverse, square, back);
  roundErrored(w.half, of['intra-gradient'], n * n);
  clear(w.ofTriangle);
  products.add(w.ofTriangle, w.half, products.transposed(w.inverse, n, n), square, { sign: -1 });
  clear(w.half);
  products.add(w.half, w.ofInverse, products.transposed(w.inverse, n, n), square);
  roundErrored(w.half, of['intra-gradient'], n * n);
  clear(w.ofInverse);
  products.add(w.ofInverse, w.inverse, w.half, square, { isTransposed: true, sign: -1 });
  for (let i = 0; i < n * n; i++)
    w.ofTriangle.error[i] = Math.max(w.ofTriangle.error[i], w.ofInverse.error[i]);
  keepTriangle(w.ofTriangle, n, true);
  roundErrored(w.ofTriangle, of['intra-gradient'], n * n);
}
