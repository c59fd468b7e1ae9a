import {
  blockMatrices,
  setBlockMatrices,
  setOutputReads,
  type BlockMatrices,
} from './block-matrices.js';
import { pairErrors, setTermErrors, type OperandErrors } from './chunk-terms.js';
import {
  addByNorms,
  addRead,
  additiveWriter,
  type ChunkWrites,
  type ReadState,
  type WriterContext,
} from './chunk-writes.js';
import { deltaWriter } from './delta-writes.js';
import type { Step } from './steps.js';
import { addProduct, setColumnNorms, setMagnitudes } from './matrices.js';
import { compose, conversion } from './roundings.js';
import {
  addWriteNorms,
  lostByUnderflow,
  setSpreads,
  type BlockBounder,
  type StateBounds,
} from './state-bounds.js';
import type { TokenBlock } from './token-blocks.js';

/** Working memory of a chunk's bounds. */
export interface Work {
  readonly matrices: BlockMatrices;
  readonly terms: OperandErrors;
  readonly magnitudes: Float64Array;
  readonly copyErrors: Float64Array;
  readonly sizes: Float64Array;
  readonly copyNorms: Float64Array;
  readonly spread: Float64Array;
  readonly queries: Float64Array;
  readonly queryErrors: Float64Array;
  readonly keyErrors: Float64Array;
  readonly outErrors: Float64Array;
  readonly outReads: Float64Array;
  readonly norms: Float64Array;
  readonly gram: Float64Array;
  readonly products: Float64Array;
  readonly written: Float64Array;
  readonly through: Float64Array;
}

function workFor(most: number, { shape }: WriterContext): Work {
  const { keyDim, valueDim } = shape;
  const ofKeys = () => new Float64Array(most * keyDim);
  const ofValues = () => new Float64Array(most * valueDim);
  const ofState = () => new Float64Array(keyDim * valueDim);
  return {
    matrices: blockMatrices(most, shape),
    terms: { triangle: ofKeys(), shared: ofKeys(), intra: ofKeys(), decays: ofKeys() },
    magnitudes: ofState(),
    copyErrors: ofState(),
    sizes: new Float64Array(valueDim),
    copyNorms: new Float64Array(valueDim),
    spread: new Float64Array(most * most),
    queries: ofKeys(),
    queryErrors: ofKeys(),
    keyErrors: ofKeys(),
    outErrors: ofValues(),
    outReads: ofKeys(),
    norms: new Float64Array(most),
    gram: new Float64Array(most * most),
    products: ofValues(),
    written: ofValues(),
    through: new Float64Array(keyDim * keyDim),
  };
}

/** What products with the state read, and its copy. */
function readState(
  work: Work,
  { exact, errors, norms }: StateBounds,
  { roundings }: WriterContext,
): ReadState {
  const { magnitudes, copyErrors, sizes, copyNorms } = work;
  const copy = roundings.of['state-operand'];
  const largest = Math.min(copy.largest, roundings.of.state.largest, 2 ** 126);
  const columns = norms.length;
  for (let i = 0; i < exact.length; i++) {
    magnitudes[i] = Math.abs(exact[i]) + (errors ? errors[i] : 0);
    const isHeld = magnitudes[i] + norms[i % columns] < largest;
    copyErrors[i] = isHeld ? copy.unit * magnitudes[i] + copy.least : Infinity;
  }
  setColumnNorms(sizes, magnitudes);
  setColumnNorms(copyNorms, copyErrors);
  for (let c = 0; c < columns; c++) {
    sizes[c] += norms[c];
    copyNorms[c] += copy.unit * norms[c];
  }
  return { exact, magnitudes, norms, copyErrors, copyShare: copy.unit, sizes, copyNorms };
}

/** Sets what outputs read of the state, and what q e^G errs by; adds what that and the state's copy make of outputs' errors. */
function addStateReads(
  work: Work,
  n: number,
  writes: ChunkWrites,
  state: ReadState,
  { roundings, inputs, shape }: WriterContext,
): void {
  const { matrices, terms, outErrors, outReads, queries, queryErrors, norms } = work;
  const { keyDim } = shape;
  const { of, operation } = roundings;
  const fixed = compose(inputs.normalised, 3 * operation, of.operand.unit);
  const isByKey = inputs.decay === 'by-key-dimension';
  const [share, least] = isByKey ? [fixed, of.operand.least] : [inputs.query, 0];
  setMagnitudes(queries, matrices.startQueries, n * keyDim);
  // A kernel may multiply them by the scale first, so that they lie elsewhere between powers of two.
  for (let i = 0; i < n * keyDim; i++)
    queryErrors[i] = queries[i] * (share + (1 + share) * terms.decays[i]) + least;
  const place = { rows: n, rowNorms: norms };
  addRead(outErrors, queryErrors, state.magnitudes, { norms: state.norms, share: 1 }, place);
  // The copy's errors times those of queries, and the sums, by norms.
  const sum = roundings.sum(keyDim + n + 6);
  for (let i = 0; i < n * keyDim; i++) queries[i] += queryErrors[i];
  addByNorms(outErrors, queryErrors, state.copyNorms, 1, place);
  addByNorms(outErrors, queries, state.sizes, sum, place);
  addByNorms(outErrors, queries, state.copyNorms, sum, place);
  const size = { count: n, dim: keyDim };
  setOutputReads(outReads, matrices, matrices.intra, writes.reads, size);
  setMagnitudes(queries, outReads, n * keyDim);
  addRead(
    outErrors,
    queries,
    state.copyErrors,
    { norms: state.norms, share: state.copyShare },
    place,
  );
}

/** Sets what outputs scale ((q e^G) S + P N) err by, but for the error of the state, and what they read of it. */
function setOutErrors(
  work: Work,
  { count: n }: TokenBlock,
  writes: ChunkWrites,
  state: ReadState,
  context: WriterContext,
): void {
  const { matrices, outErrors, gram, spread } = work;
  const { roundings, shape } = context;
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
    const error = matrices.intraError[i] + of.intra.unit * size + (size > 0 ? of.intra.least : 0);
    gram[i] = size < of.intra.largest ? error + sum * (size + error) : Infinity;
  }
  addProduct(outErrors, gram, writes.largest, columns);
}

/** The share of a state that its decay and the sum with it err by, by key dimension: the largest; and by element, what they and the keys make of it. */
function setStateErrors(
  stateError: Float64Array,
  work: Work,
  { count: n, gateSums, gateErrorSums }: TokenBlock,
  writes: ChunkWrites,
  { roundings, inputs, shape, arithmetic }: WriterContext,
): number {
  const { matrices, keyErrors, magnitudes } = work;
  const { keyDim, valueDim } = shape;
  const { of, operation } = roundings;
  const { formats } = arithmetic;
  const sum = roundings.sum(n + 2);
  const isByKey = inputs.decay === 'by-key-dimension';
  // By head the decay is in what is written, which is rounded once more anyway.
  const again =
    isByKey || inputs.decay === 'none'
      ? conversion(formats['write-operand'], formats.write).unit
      : 0;
  let largestShare = 0;
  for (let i = 0; i < keyDim; i++) {
    const ofDecay = inputs.ofDecay(gateSums[(n - 1) * keyDim + i], n, gateErrorSums[n - 1]);
    const decayed = matrices.endDecay[i] * compose(ofDecay, ofDecay === 0 ? 0 : 2 * operation);
    const share = decayed + sum * (matrices.endDecay[i] + decayed);
    largestShare = Math.max(largestShare, share);
    for (let c = 0; c < valueDim; c++)
      stateError[i * valueDim + c] = share * magnitudes[i * valueDim + c];
    const made = compose(inputs.normalised, ofDecay, 2 * operation, of.operand.unit);
    const ofKey = compose(isByKey ? made : inputs.key, again, sum);
    const least = isByKey ? of.operand.least : 0;
    for (let t = 0; t < n; t++)
      keyErrors[t * keyDim + i] = Math.abs(matrices.endKeys[t * keyDim + i]) * ofKey + least;
  }
  const size = { rows: keyDim, inner: n, columns: valueDim };
  addProduct(stateError, keyErrors, writes.largest, size, true);
  return largestShare;
}

/** Adds what W S makes of the new state by its copy's errors, |Kᵀ W| times them, and returns the share of the state's error in the norm. */
function addCopyErrors(
  stateError: Float64Array,
  { matrices, through }: Work,
  { reads }: ChunkWrites,
  { copyErrors, copyShare }: ReadState,
  n: number,
): number {
  if (reads === null || copyShare === 0) return 0;
  const dim = matrices.endDecay.length;
  through.fill(0);
  addProduct(through, matrices.endKeys, reads, { rows: dim, inner: n, columns: dim }, true);
  setMagnitudes(through, through, dim * dim);
  const columns = copyErrors.length / dim;
  addProduct(stateError, through, copyErrors, { rows: dim, inner: dim, columns });
  let squares = 0;
  for (const x of through) squares += x * x;
  return copyShare * Math.sqrt(squares);
}

/** |T| e + ε at most. */
function largestWriteErrors(
  { matrices, spread, written }: Work,
  { before, errors }: ChunkWrites,
  { rows, columns }: { readonly rows: number; readonly columns: number },
): Float64Array {
  written.set(errors);
  if (before === null) return written;
  setMagnitudes(spread, matrices.inverse, rows * rows);
  addProduct(written, spread, before, { rows, inner: rows, columns });
  return written;
}

/** Raises the errors of what is written by those of N e^(G_C − G), where decays are by head. */
function addDecayedWrites(
  writes: ChunkWrites,
  { count: n, gateSums, gateErrorSums }: TokenBlock,
  { roundings, inputs, shape }: WriterContext,
): void {
  if (inputs.decay === 'none' || inputs.decay === 'by-key-dimension') return;
  const { of, operation } = roundings;
  const { unit, least } = of['write-operand'];
  const ofDecay = inputs.ofDecay(gateSums[(n - 1) * shape.keyDim], n, gateErrorSums[n - 1]);
  const share = compose(ofDecay, 2 * operation, unit);
  for (let i = 0; i < n * shape.valueDim; i++)
    writes.errors[i] += share * writes.largest[i] + least;
}

/** S ← e^(G_C) S + Σ_j (k_j e^(G_C − G_j)) N_jᵀ. */
function advance(state: Float64Array, { matrices }: Work, n: number, writes: Float64Array): void {
  const keyDim = matrices.endDecay.length;
  const columns = state.length / keyDim;
  for (let i = 0; i < state.length; i++) state[i] *= matrices.endDecay[Math.floor(i / columns)];
  addProduct(state, matrices.endKeys, writes, { rows: keyDim, inner: n, columns }, true);
}

/** Rounds a new state into its format: raises its errors by that, by element. */
function addStateRounding(
  stateError: Float64Array,
  others: Float64Array | null,
  state: Float64Array,
  { roundings }: WriterContext,
): void {
  const { unit, least, largest } = roundings.of.state;
  for (let i = 0; i < state.length; i++) {
    const size = Math.abs(state[i]) + stateError[i] + (others ? others[i] : 0);
    stateError[i] += size < Math.min(largest, 2 ** 126) ? unit * size + least : Infinity;
  }
}

/** What bounders of chunks are made of. */
export function chunkParts(
  context: WriterContext,
  most: number,
): {
  readonly work: Work;
  readonly begin: (block: TokenBlock, state: StateBounds, isDelta: boolean) => ReadState;
} {
  const { roundings, inputs, shape } = context;
  const { keyDim } = shape;
  const work = workFor(most, context);
  const pair = pairErrors(inputs, roundings, keyDim);
  const { error: ofTriangle } = roundings.of.triangle;
  /** Sets a block's matrices, and what products with the state read. */
  const begin = (block: TokenBlock, state: StateBounds, isDelta: boolean): ReadState => {
    const { matrices, terms } = work;
    setTermErrors(terms, block, pair, inputs.ofDecay, keyDim);
    setBlockMatrices(matrices, block, terms, { dim: keyDim, isDelta });
    if (isDelta)
      for (let i = 0; i < block.count ** 2; i++) {
        const rounded = ofTriangle(Math.abs(matrices.triangle[i]) + matrices.triangleError[i]);
        matrices.triangleError[i] += rounded;
        matrices.ownError[i] += rounded;
      }
    return readState(work, state, context);
  };
  return { work, begin };
}

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
  function moveNorms(block: TokenBlock, norms: Float64Array, kept: number): Float64Array {
    setSpreads(spreads, block, keyDim);
    const spread = spreads.subarray(0, block.count).reduce((a, b) => a * b, 1);
    return norms.map((before, c) => {
      norms[c] = (spread * before + added[c] + kept * before) / (1 - unit);
      return kept * before + unit * norms[c];
    });
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
    const kept =
      setStateErrors(stateError, work, block, writes, context) +
      addCopyErrors(stateError, work, writes, read, n);
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
    const stateNorms = moveNorms(block, state.norms, kept);
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
