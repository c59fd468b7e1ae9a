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
  deltaWriter,
  type ChunkWrites,
  type ReadState,
  type WriterContext,
} from './chunk-writes.js';
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
    terms: { triangle: ofKeys(), intra: ofKeys(), decays: ofKeys() },
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
  const fixed = compose(inputs.normalised, 3 * operation);
  setMagnitudes(queries, matrices.startQueries, n * keyDim);
  for (let i = 0; i < n * keyDim; i++) {
    // A kernel may multiply them by the scale first, so that they lie elsewhere between powers of two.
    queryErrors[i] =
      inputs.decay === 'none'
        ? queries[i] * inputs.query
        : queries[i] * compose(fixed, terms.decays[i], of.operand.unit) + of.operand.least;
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

/** The new state's errors by element but those that its own errors before make, and the relative errors of what stays of it. */
function setStateErrors(
  stateError: Float64Array,
  work: Work,
  { count: n, gateSums }: TokenBlock,
  writes: ChunkWrites,
  context: WriterContext,
): number {
  const { matrices, keyErrors, magnitudes } = work;
  const { roundings, inputs, shape, arithmetic } = context;
  const { keyDim, valueDim } = shape;
  const { of, operation } = roundings;
  const { formats } = arithmetic;
  const sum = roundings.sum(n + 2);
  const again = conversion(formats['write-operand'], formats.write).unit;
  const made = Math.max(of.operand.unit, of['write-operand'].unit);
  const rounded = { 'by-key-dimension': compose(of.operand.unit, again), none: again };
  const relative = inputs.decay in rounded ? rounded[inputs.decay as 'none'] : made;
  let largestShare = 0;
  for (let i = 0; i < keyDim; i++) {
    const ofDecay = inputs.ofDecay(gateSums[(n - 1) * keyDim + i], n);
    const decayed = matrices.endDecay[i] * compose(ofDecay, 2 * operation);
    const share = decayed + sum * (matrices.endDecay[i] + decayed);
    largestShare = Math.max(largestShare, share);
    for (let c = 0; c < valueDim; c++)
      stateError[i * valueDim + c] = share * magnitudes[i * valueDim + c];
    const ofKey =
      inputs.decay === 'none'
        ? compose(inputs.key, relative, sum)
        : compose(inputs.normalised, ofDecay, 2 * operation, relative, sum);
    const least = inputs.decay === 'none' ? 0 : of.operand.least;
    for (let t = 0; t < n; t++)
      keyErrors[t * keyDim + i] = Math.abs(matrices.endKeys[t * keyDim + i]) * ofKey + least;
  }
  const size = { rows: keyDim, inner: n, columns: valueDim };
  addProduct(stateError, keyErrors, writes.largest, size, true);
  return largestShare;
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
  state: Float64Array,
  { roundings }: WriterContext,
): void {
  const { unit, least, largest } = roundings.of.state;
  for (let i = 0; i < state.length; i++) {
    const size = Math.abs(state[i]) + stateError[i];
    stateError[i] += size < Math.min(largest, 2 ** 126) ? unit * size + least : Infinity;
  }
}

/** A bounder of additive writes in chunks: errors stay in their rows. */
export function additiveChunks(context: WriterContext, most: number): BlockBounder {
  const { keyDim, valueDim } = context.shape;
  const { roundings, inputs } = context;
  const work = workFor(most, context);
  const write = additiveWriter(context, most);
  const pair = pairErrors(inputs, roundings, keyDim);
  const share = compose(roundings.of['state-operand'].unit, roundings.sum(keyDim + most + 6));
  const stateError = new Float64Array(keyDim * valueDim);
  return (block, state) => {
    const { count: n } = block;
    const { matrices, terms, outErrors, queries, keyErrors } = work;
    setTermErrors(terms, block, pair, inputs.ofDecay, keyDim);
    setBlockMatrices(matrices, block, terms, { dim: keyDim, isDelta: false });
    const read = readState(work, state, share, context);
    const writes = write(block, matrices, terms.decays, read);
    setOutErrors(work, block, writes, read, context);
    const errors = state.errors ?? state.exact;
    setMagnitudes(queries, matrices.startQueries, n * keyDim);
    addProduct(outErrors, queries, errors, { rows: n, inner: keyDim, columns: valueDim });
    const lost = lostByUnderflow(block, state.exact, 0);
    setStateErrors(stateError, work, block, writes, context);
    advance(state.exact, work, n, writes.exact);
    setMagnitudes(keyErrors, matrices.endKeys, n * keyDim);
    const size = { rows: keyDim, inner: n, columns: valueDim };
    addProduct(stateError, keyErrors, writes.errors, size, true);
    for (let i = 0; i < errors.length; i++)
      stateError[i] += matrices.endDecay[Math.floor(i / valueDim)] * errors[i] + lost;
    addStateRounding(stateError, state.exact, context);
    errors.set(stateError);
    for (let i = 0; i < n * valueDim; i++) outErrors[i] += lost;
    return { outErrors, outReads: null, step: null };
  };
}

/** A bounder of delta writes in chunks. */
export function deltaChunks(context: WriterContext, most: number): BlockBounder {
  const { keyDim, valueDim } = context.shape;
  const { roundings, inputs } = context;
  const work = workFor(most, context);
  const write = deltaWriter(context, most);
  const pair = pairErrors(inputs, roundings, keyDim);
  const share = compose(roundings.of['state-operand'].unit, roundings.sum(keyDim + most + 6));
  const spreads = new Float64Array(most);
  const added = new Float64Array(valueDim);
  const { error: ofTriangle } = roundings.of.triangle;
  return (block, state) => {
    const { count: n } = block;
    const { matrices, terms, outErrors, outReads } = work;
    setTermErrors(terms, block, pair, inputs.ofDecay, keyDim);
    setBlockMatrices(matrices, block, terms, { dim: keyDim, isDelta: true });
    for (let i = 0; i < n * n; i++)
      matrices.triangleError[i] += ofTriangle(
        Math.abs(matrices.triangle[i]) + matrices.triangleError[i],
      );
    const read = readState(work, state, share, context);
    const writes = write(block, matrices, terms.decays, read);
    const lost = lostByUnderflow(block, state.exact, 0);
    for (let i = 0; i < n * valueDim; i++) writes.errors[i] += lost;
    setOutErrors(work, block, writes, read, context);
    for (let i = 0; i < n * valueDim; i++) outErrors[i] += lost;
    const size = { count: n, dim: keyDim };
    setOutputReads(outReads, matrices, matrices.intra, writes.reads, size);
    const stateError = new Float64Array(keyDim * valueDim);
    const kept = setStateErrors(stateError, work, block, writes, context);
    advance(state.exact, work, n, writes.exact);
    for (let i = 0; i < stateError.length; i++) stateError[i] += lost;
    addStateRounding(stateError, state.exact, context);
    const normsBefore = state.norms.slice();
    setSpreads(spreads, block, keyDim);
    const spread = spreads.subarray(0, n).reduce((a, b) => a * b, 1);
    setColumnNorms(added, stateError);
    addWriteNorms(added, matrices.endKeys, writes.errors, size, work);
    const { unit } = roundings.of.state;
    const stateNorms = new Float64Array(valueDim);
    for (let c = 0; c < valueDim; c++) {
      state.norms[c] = (spread * normsBefore[c] + added[c] + kept * normsBefore[c]) / (1 - unit);
      stateNorms[c] = kept * normsBefore[c] + unit * state.norms[c];
    }
    const step = {
      count: n,
      keys: matrices.endKeys.slice(0, n * keyDim),
      reads: writes.reads.slice(0, n * keyDim),
      decay: matrices.endDecay.slice(),
      writeError: writes.errors.slice(0, n * valueDim),
      stateError,
      stateNorms,
      normsBefore,
    };
    return { outErrors, outReads, step };
  };
}
