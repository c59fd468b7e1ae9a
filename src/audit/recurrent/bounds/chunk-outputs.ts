import { setOutputReads } from './block-matrices.js';
import type { Work } from './chunk-work.js';
import {
  addByNorms,
  type ChunkWrites,
  type ReadState,
  type WriterContext,
} from './chunk-writes.js';
import { addProduct, setMagnitudes } from './matrices.js';
import { compose, errorOfEither } from './roundings.js';
import type { TokenBlock } from './token-blocks.js';

/** Sets what outputs read of the state, and what q e^G errs by; adds what that and the state's copy make of outputs' errors. */
function addStateReads(
  work: Work,
  n: number,
  writes: ChunkWrites,
  state: ReadState,
  { roundings, inputs, shape, scale }: WriterContext,
): void {
  const { matrices, terms, outErrors, outReads, queries, queryErrors, norms } = work;
  const { keyDim, valueDim } = shape;
  const { of, operation } = roundings;
  const isByKey = inputs.decay === 'by-key-dimension';
  const share = isByKey ? compose(inputs.normalised, 3 * operation) : inputs.query;
  setMagnitudes(queries, matrices.startQueries, n * keyDim);
  for (let i = 0; i < n * keyDim; i++) {
    const made = queries[i] * (share + (1 + share) * terms.decays[i]);
    queryErrors[i] = made + (isByKey ? errorOfEither(of.operand, queries[i] + made, scale) : 0);
  }
  const place = { rows: n, rowNorms: norms };
  const ofState = { rows: n, inner: keyDim, columns: valueDim };
  addProduct(outErrors, queryErrors, state.magnitudes, ofState);
  // The copy's errors times those of queries, and the sums, by norms.
  const sum = roundings.sum(keyDim + n + 6);
  for (let i = 0; i < n * keyDim; i++) queries[i] += queryErrors[i];
  addByNorms(outErrors, queryErrors, state.copyNorms, 1, place);
  addByNorms(outErrors, queries, state.sizes, sum, place);
  addByNorms(outErrors, queries, state.copyNorms, sum, place);
  const size = { count: n, dim: keyDim };
  setOutputReads(outReads, matrices, matrices.intra, writes.reads, size);
  setMagnitudes(queries, outReads, n * keyDim);
  addProduct(outErrors, queries, state.copyErrors, ofState);
}

/** Sets what outputs scale ((q e^G) S + P N) err by, but for the error of the state, and what they read of it. */
export function setOutErrors(
  work: Work,
  { count: n }: TokenBlock,
  writes: ChunkWrites,
  state: ReadState,
  context: WriterContext,
): void {
  const { matrices, outErrors, gram, spread } = work;
  const { roundings, shape, scale } = context;
  const { of } = roundings;
  const columns = { rows: n, inner: n, columns: shape.valueDim };
  const sum = roundings.sum(shape.keyDim + n + 6);
  outErrors.fill(0);
  addStateReads(work, n, writes, state, context);
  setMagnitudes(gram, matrices.intra, n * n);
  addProduct(outErrors, gram, writes.errors, columns);
  if (writes.before) {
    spread.fill(0);
    addProduct(spread, matrices.intra, matrices.inverse, { rows: n, inner: n, columns: n });
    setMagnitudes(spread, spread, n * n);
    addProduct(outErrors, spread, writes.before, columns);
  }
  for (let i = 0; i < n * n; i++) {
    const size = gram[i] + matrices.intraError[i];
    const error = matrices.intraError[i] + errorOfEither(of.intra, size, scale);
    gram[i] = error + sum * (size + error);
  }
  addProduct(outErrors, gram, writes.largest, columns);
}
