import { setOutErrors } from './chunk-outputs.js';
import {
  addCopyErrors,
  addDecayedWrites,
  addStateRounding,
  advance,
  largestWriteErrors,
  setStateErrors,
} from './chunk-states.js';
import { chunkParts, type Work } from './chunk-work.js';
import { additiveWriter, type ChunkWrites, type WriterContext } from './chunk-writes.js';
import { deltaWriter } from './delta-writes.js';
import { addProduct, setColumnNorms, setMagnitudes } from './matrices.js';
import { addWriteNorms, lostByUnderflow, setSpreads, type BlockBounder } from './state-bounds.js';
import type { Step } from './steps.js';
import type { TokenBlock } from './token-blocks.js';

/** Errors of additive writes that outputs later read: of the state's rows by E, or followed back from output to write. */
function additiveStep(
  work: Work,
  n: number,
  writes: ChunkWrites,
  stateError: Float64Array,
  normsBefore: Float64Array,
): Step {
  const { matrices } = work;
  const keyDim = matrices.endDecay.length;
  return {
    count: n,
    keys: matrices.endKeys.slice(0, n * keyDim),
    reads: null,
    inverse: null,
    writeErrorBefore: null,
    decay: matrices.endDecay.slice(),
    writeError: writes.errors.slice(0, n * normsBefore.length),
    stateError,
    stateNorms: new Float64Array(normsBefore.length),
    normsBefore,
  };
}

/**
 * A bounder of additive writes in chunks: errors stay in their rows. Where decays are by head, rounding is that of what is written, and outputs' errors are
 * followed back to it; else that of the state's elements, which outputs' errors are made of.
 */
export function additiveChunks(context: WriterContext, most: number): BlockBounder {
  const { keyDim, valueDim } = context.shape;
  const { work, begin } = chunkParts(context, most);
  const write = additiveWriter(context, most);
  const { decay } = context.inputs;
  const isFollowed = decay === 'by-head' || decay === 'fixed-by-head';
  return (block, state) => {
    const { count: n } = block;
    const { matrices, outErrors, outReads, queries, keyErrors } = work;
    const read = begin(block, state, false);
    const writes = write(block);
    setOutErrors(work, block, writes, read, context);
    const errors = state.errors ?? state.exact;
    const normsBefore = new Float64Array(valueDim);
    if (isFollowed) {
      setColumnNorms(normsBefore, errors);
    } else {
      setMagnitudes(queries, matrices.startQueries, n * keyDim);
      addProduct(outErrors, queries, errors, { rows: n, inner: keyDim, columns: valueDim });
    }
    const lost = lostByUnderflow(block, state.exact, 0, context.roundings.least);
    const stateError = new Float64Array(errors.length);
    setStateErrors(stateError, work, block, writes, context);
    addDecayedWrites(writes, block, context);
    advance(state.exact, work, n, writes.exact);
    setMagnitudes(keyErrors, matrices.endKeys, n * keyDim);
    for (let i = 0; i < errors.length; i++) {
      errors[i] *= matrices.endDecay[Math.floor(i / valueDim)];
      stateError[i] += lost;
    }
    const size = { rows: keyDim, inner: n, columns: valueDim };
    addProduct(errors, keyErrors, writes.errors, size, true);
    addStateRounding(stateError, errors, state.exact, context);
    for (let i = 0; i < errors.length; i++) errors[i] += stateError[i];
    for (let i = 0; i < n * valueDim; i++) outErrors[i] += lost;
    if (!isFollowed) return { outErrors, outReads: null, step: null, normsBefore };
    const step = additiveStep(work, n, writes, stateError, normsBefore);
    return { outErrors, outReads, step, normsBefore };
  };
}

/** A bounder of delta writes in chunks. */
export function deltaChunks(context: WriterContext, most: number): BlockBounder {
  const { keyDim, valueDim } = context.shape;
  const { work, begin } = chunkParts(context, most);
  const write = deltaWriter(context, most);
  const spreads = new Float64Array(most);
  const added = new Float64Array(valueDim);
  const { unit } = context.roundings.of.state;

  /** Moves the columns' norms past a block, and returns what is not in `stateError` of the errors that it adds to the state. */
  function moveNorms(block: TokenBlock, norms: Float64Array): Float64Array {
    setSpreads(spreads, block, keyDim);
    const spread = spreads.subarray(0, block.count).reduce((a, b) => a * b, 1);
    for (let c = 0; c < valueDim; c++) norms[c] = (spread * norms[c] + added[c]) / (1 - unit);
    return norms.map((norm) => unit * norm);
  }

  return (block, state) => {
    const { count: n } = block;
    const { matrices, terms, outErrors, outReads } = work;
    const read = begin(block, state, true);
    const writes = write(block, matrices, terms, read);
    const lost = lostByUnderflow(block, state.exact, 0, context.roundings.least);
    for (let i = 0; i < n * valueDim; i++) writes.errors[i] += lost;
    setOutErrors(work, block, writes, read, context);
    for (let i = 0; i < n * valueDim; i++) outErrors[i] += lost;
    const size = { count: n, dim: keyDim };
    const stateError = new Float64Array(keyDim * valueDim);
    setStateErrors(stateError, work, block, writes, context);
    if (writes.reads) addCopyErrors(stateError, work, writes.reads, read.copyErrors, n);
    addDecayedWrites(writes, block, context);
    advance(state.exact, work, n, writes.exact);
    for (let i = 0; i < stateError.length; i++) stateError[i] += lost;
    addStateRounding(stateError, null, state.exact, context);
    const normsBefore = state.norms.slice();
    setColumnNorms(added, stateError);
    addWriteNorms(
      added,
      matrices.endKeys,
      largestWriteErrors(work, writes, { rows: n, columns: valueDim }),
      size,
      work,
    );
    const stateNorms = moveNorms(block, state.norms);
    const step: Step = {
      ...additiveStep(work, n, writes, stateError, normsBefore),
      reads: writes.reads?.slice(0, n * keyDim) ?? null,
      inverse: matrices.inverse.slice(0, n * n),
      writeErrorBefore: writes.before?.slice(0, n * valueDim) ?? null,
      stateNorms,
    };
    return { outErrors, outReads, step, normsBefore };
  };
}
