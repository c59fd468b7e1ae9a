import {
  blockMatrices,
  setBlockMatrices,
  setOutputReads,
  type BlockMatrices,
} from './block-matrices.js';
import { pairErrors, setTermErrors, type OperandErrors } from './chunk-terms.js';
import {
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
interface Work {
  readonly matrices: BlockMatrices;
  readonly terms: OperandErrors;
  readonly magnitudes: Float64Array;
  readonly operandErrors: Float64Array;
  readonly queries: Float64Array;
  readonly queryErrors: Float64Array;
  readonly keyErrors: Float64Array;
  readonly outErrors: Float64Array;
  readonly outReads: Float64Array;
  readonly norms: Float64Array;
  readonly gram: Float64Array;
  readonly products: Float64Array;
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
    operandErrors: ofState(),
    queries: ofKeys(),
    queryErrors: ofKeys(),
    keyErrors: ofKeys(),
    outErrors: ofValues(),
    outReads: ofKeys(),
    norms: new Float64Array(most),
    gram: new Float64Array(most * most),
    products: ofValues(),
  };
}

/** What products with the state read: its elements, their errors, and those of its copy. */
function readState(
  work: Work,
  { exact, errors, norms }: StateBounds,
  share: number,
  context: WriterContext,
): ReadState {
  const { magnitudes, operandErrors } = work;
  const { of } = context.roundings;
  const { least } = of['state-operand'];
  const largest = Math.min(of['state-operand'].largest, of.state.largest, 2 ** 126);
  for (let i = 0; i < exact.length; i++) {
    magnitudes[i] = Math.abs(exact[i]) + (errors ? errors[i] : 0);
    const isHeld = magnitudes[i] + norms[i % norms.length] < largest;
    operandErrors[i] = isHeld ? share * magnitudes[i] + least : Infinity;
  }
  return { exact, magnitudes, norms, operandErrors, operandShare: share };
}

/** Adds what the sums of scale ((q e^G) S + P N) err by, and N. */
function setOutErrors(
  work: Work,
  { count: n }: TokenBlock,
  writes: ChunkWrites,
  state: ReadState,
  context: WriterContext,
): void {
  const { matrices, terms, outErrors, queries, queryErrors, gram, norms } = work;
  const { roundings, inputs, shape } = context;
  const { keyDim, valueDim } = shape;
  const { of, operation } = roundings;
  const columns = { rows: n, inner: n, columns: valueDim };
  const sum = roundings.sum(keyDim + n + 6);
  const fixed = compose(inputs.normalised, 3 * operation, of.operand.unit);
  setMagnitudes(queries, matrices.startQueries, n * keyDim);
  for (let i = 0; i < n * keyDim; i++) {
    // A kernel may multiply them by the scale first, so that they lie elsewhere between powers of two.
    queryErrors[i] =
      inputs.decay === 'by-key-dimension'
        ? queries[i] * (fixed + (1 + fixed) * terms.decays[i]) + of.operand.least
        : queries[i] * (inputs.query + (1 + inputs.query) * terms.decays[i]);
    queries[i] += queryErrors[i];
  }
  outErrors.fill(0);
  const place = { rows: n, rowNorms: norms };
  addRead(outErrors, queryErrors, state.magnitudes, { norms: state.norms, share: 1 }, place);
  const operand = { norms: state.norms, share: state.operandShare };
  addRead(outErrors, queries, state.operandErrors, operand, place);
  setMagnitudes(gram, matrices.intra, n * n);
  addProduct(outErrors, gram, writes.errors, columns);
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
  { count: n, gateSums }: TokenBlock,
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
    const ofDecay = inputs.ofDecay(gateSums[(n - 1) * keyDim + i], n);
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

/** Raises the errors of what is written by those of N e^(G_C − G), where decays are by head. */
function addDecayedWrites(
  writes: ChunkWrites,
  { count: n, gateSums }: TokenBlock,
  { roundings, inputs, shape }: WriterContext,
): void {
  if (inputs.decay === 'none' || inputs.decay === 'by-key-dimension') return;
  const { of, operation } = roundings;
  const { unit, least } = of['write-operand'];
  const ofDecay = inputs.ofDecay(gateSums[(n - 1) * shape.keyDim], n);
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

/** What both bounders of chunks are made of. */
function chunkParts(context: WriterContext, most: number) {
  const { roundings, inputs, shape } = context;
  const { keyDim } = shape;
  const work = workFor(most, context);
  const pair = pairErrors(inputs, roundings, keyDim);
  const share = compose(roundings.of['state-operand'].unit, roundings.sum(keyDim + most + 6));
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
    return readState(work, state, share, context);
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
      outReads.set(matrices.startQueries.subarray(0, n * keyDim));
    } else {
      setMagnitudes(queries, matrices.startQueries, n * keyDim);
      addProduct(outErrors, queries, errors, { rows: n, inner: keyDim, columns: valueDim });
    }
    const lost = lostByUnderflow(block, state.exact, 0);
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
    const lost = lostByUnderflow(block, state.exact, 0);
    for (let i = 0; i < n * valueDim; i++) writes.errors[i] += lost;
    setOutErrors(work, block, writes, read, context);
    for (let i = 0; i < n * valueDim; i++) outErrors[i] += lost;
    const size = { count: n, dim: keyDim };
    setOutputReads(outReads, matrices, matrices.intra, writes.reads, size);
    const stateError = new Float64Array(keyDim * valueDim);
    const kept = setStateErrors(stateError, work, block, writes, context);
    addDecayedWrites(writes, block, context);
    advance(state.exact, work, n, writes.exact);
    for (let i = 0; i < stateError.length; i++) stateError[i] += lost;
    addStateRounding(stateError, null, state.exact, context);
    const normsBefore = state.norms.slice();
    setColumnNorms(added, stateError);
    addWriteNorms(added, matrices.endKeys, writes.errors, size, work);
    const stateNorms = moveNorms(block, state.norms, kept);
    const step: Step = {
      ...additiveStep(work, n, writes, stateError, normsBefore),
      reads: writes.reads.slice(0, n * keyDim),
      stateNorms,
    };
    return { outErrors, outReads, step, normsBefore };
  };
}
