import { blockMatrices, setBlockMatrices, setOutputReads } from './block-matrices.js';
import type { WriterContext } from './chunk-writes.js';
import { addProduct, setColumnNorms, setMagnitudes } from './matrices.js';
import { compose, errorOfEither } from './roundings.js';
import { addWriteNorms, lostByUnderflow, setSpreads, type BlockBounder } from './state-bounds.js';
import type { TokenBlock } from './token-blocks.js';
import {
  decayAndRead,
  setTokenErrors,
  tokenErrors,
  tokenSums,
  writeAndRead,
  writeAndReadByElement,
  type TokenErrors,
} from './token-sums.js';

/** What is stored is below this, or nothing is proven. */
const largestNumber = 2 ** 126;

/** Makes sums ∞ where a state may be too large for its format. */
function refuseOverflow(to: Float64Array, sizes: Float64Array, { roundings }: WriterContext): void {
  const largest = Math.min(roundings.of.state.largest, largestNumber);
  for (let c = 0; c < sizes.length; c++) if (!(Math.sqrt(sizes[c]) < largest)) to[c] = Infinity;
}

/** Sees what each token leaves: the state, and by column w, |ŵ| at most, and what the state errs by in the norm. */
export type TokenObserver = (
  t: number,
  state: Float64Array,
  columns: {
    readonly written: Float64Array;
    readonly largest: Float64Array;
    readonly norms: Float64Array;
  },
) => void;

/** A bounder of additive writes, token by token: errors stay in their rows. */
export function additiveTokens(
  context: WriterContext,
  most: number,
  observe?: TokenObserver,
): BlockBounder {
  const { roundings, inputs, shape } = context;
  const { keyDim, valueDim } = shape;
  const outErrors = new Float64Array(most * valueDim);
  const errors = tokenErrors(keyDim);
  const sums = tokenSums(valueDim);
  const norms = new Float64Array(valueDim);
  const stored = compose(roundings.operation, roundings.of.state.unit);
  return (block, state) => {
    const lost = lostByUnderflow(block, state.exact, 0, roundings.least) + roundings.of.state.least;
    const stateErrors = state.errors ?? state.exact;
    for (let t = 0; t < block.count; t++) {
      setTokenErrors(errors, block, t, context);
      for (let c = 0; c < valueDim; c++) {
        const value = block.v[t * valueDim + c];
        sums.written[c] = value;
        const size = Math.abs(value) * (1 + block.valueErrors[t]);
        sums.largest[c] = size + inputs.value.error(size);
      }
      writeAndReadByElement(state.exact, stateErrors, errors, sums, stored);
      refuseOverflow(sums.out, sums.sizes, context);
      for (let i = 0; i < stateErrors.length; i++) stateErrors[i] += lost;
      for (let c = 0; c < valueDim; c++) outErrors[t * valueDim + c] = sums.out[c] + lost;
      if (!observe) continue;
      setColumnNorms(norms, stateErrors);
      observe(t, state.exact, { ...sums, norms });
    }
    return { outErrors, outReads: null, step: null, normsBefore: state.norms };
  };
}

/** The norms of a token's vectors. */
interface TokenNorms {
  readonly key: number;
  readonly read: number;
  readonly output: number;
  readonly query: number;
  /** The largest share of a state before the token that its decay errs by. */
  readonly decayed: number;
  /** ‖D k‖. */
  readonly decayedKey: number;
}

function normsOf({ decay, decayed, key, read, output, query }: TokenErrors): TokenNorms {
  let [ofKey, ofRead, ofOutput, ofQuery, largest, ofDecayed] = [0, 0, 0, 0, 0, 0];
  for (let i = 0; i < key.length; i++) {
    ofKey += key[i] ** 2;
    ofRead += (read[i] * decay[i]) ** 2;
    ofOutput += output[i] ** 2;
    ofQuery += query[i] ** 2;
    ofDecayed += (key[i] * decay[i]) ** 2;
    largest = Math.max(largest, decayed[i] * decay[i]);
  }
  return {
    key: Math.sqrt(ofKey),
    read: Math.sqrt(ofRead),
    output: Math.sqrt(ofOutput),
    query: Math.sqrt(ofQuery),
    decayed: largest,
    decayedKey: Math.sqrt(ofDecayed),
  };
}

/** What bounds of delta writes, token by token, share. */
function deltaMachine(context: WriterContext, most: number, observe?: TokenObserver) {
  const { roundings, shape } = context;
  const { keyDim, valueDim } = shape;
  const { operation, of } = roundings;
  const matrices = blockMatrices(most, shape);
  const errors = tokenErrors(keyDim);
  const sums = tokenSums(valueDim);
  const ofValues = () => new Float64Array(most * valueDim);
  const ofSquare = () => new Float64Array(most * most);
  const [outErrors, writeErrors, products] = [ofValues(), ofValues(), ofValues()];
  const [gram, intra] = [ofSquare(), ofSquare()];
  const outReads = new Float64Array(most * keyDim);
  const spreads = new Float64Array(most);
  const stored = compose(operation, of.state.unit);
  /** What roundings of the state within the block make of its columns. */
  const within = new Float64Array(valueDim);
  const norms = new Float64Array(valueDim);
  return {
    context,
    observe,
    keyDim,
    valueDim,
    operation,
    of,
    matrices,
    errors,
    sums,
    outErrors,
    writeErrors,
    products,
    gram,
    intra,
    outReads,
    spreads,
    stored,
    within,
    norms,
  };
}

type DeltaMachine = ReturnType<typeof deltaMachine>;

/** w and what it errs by. */
function setWritten(
  m: DeltaMachine,
  { v, beta, strengthErrors }: TokenBlock,
  t: number,
  ofToken: TokenNorms,
  lost: number,
): void {
  const { valueDim, operation, of, sums, writeErrors, norms } = m;
  const strength = beta[t];
  const size = Math.abs(strength);
  for (let c = 0; c < valueDim; c++) {
    const value = v[t * valueDim + c];
    const written = strength * (value - sums.read[c]);
    const ofState = size * ofToken.decayedKey * norms[c];
    const ofTerms =
      size * (sums.readErrors[c] + ofToken.read * norms[c] + 3 * operation * Math.abs(value));
    // A β that errs multiplies all of what a kernel writes.
    const ofStrength = strengthErrors[t] * (Math.abs(written) + ofState + ofTerms);
    const ofSums = ofTerms + ofStrength + lost;
    const most = Math.abs(written) + ofState + ofSums;
    // What a write lacks may be stored before β multiplies it, and lies elsewhere between powers of two then.
    const rounded = size > 0 ? errorOfEither(of.write, most, 1 / size) : of.write.error(most);
    sums.written[c] = written;
    writeErrors[t * valueDim + c] = ofSums + rounded;
    sums.largest[c] = Math.abs(written) + ofState + ofSums + rounded;
  }
}

/** Moves the columns' norms past a token, and sets its output's errors but those of writes. */
function finishToken(m: DeltaMachine, t: number, ofToken: TokenNorms, lost: number): void {
  const { context, valueDim, sums, outErrors, writeErrors, spreads, stored, within, norms } = m;
  refuseOverflow(sums.squares, sums.sizes, context);
  for (let c = 0; c < valueDim; c++) {
    const before = norms[c];
    const local = Math.sqrt(sums.squares[c]) + ofToken.decayed * before + lost;
    const ofWrite = ofToken.key * writeErrors[t * valueDim + c];
    norms[c] = (spreads[t] * before + ofWrite + local) / (1 - stored);
    within[c] = spreads[t] * within[c] + local + stored * norms[c];
    outErrors[t * valueDim + c] =
      sums.out[c] + ofToken.output * norms[c] + ofToken.query * within[c] + lost;
  }
}

/** Goes through a block's tokens, and sets their errors but those that writes make of outputs. */
function runTokens(m: DeltaMachine, block: TokenBlock, state: Float64Array): void {
  const { context, observe, keyDim, of, errors, sums, norms, stored } = m;
  const lost =
    lostByUnderflow(block, state, 0, context.roundings.least) + of.state.least * Math.sqrt(keyDim);
  for (let t = 0; t < block.count; t++) {
    setTokenErrors(errors, block, t, context);
    const ofToken = normsOf(errors);
    decayAndRead(state, errors, sums);
    setWritten(m, block, t, ofToken, lost);
    writeAndRead(state, errors, sums, stored);
    finishToken(m, t, ofToken, lost);
    observe?.(t, state, { ...sums, norms });
  }
}

/** Adds what errors of writes make of later outputs, by P T, and sets what outputs read of the state before the block. */
function addWrites(m: DeltaMachine, n: number): void {
  const { keyDim, valueDim, matrices, intra, outReads, outErrors, writeErrors } = m;
  intra.fill(0);
  addProduct(intra, matrices.intra, matrices.inverse, { rows: n, inner: n, columns: n });
  const size = { count: n, dim: keyDim };
  setOutputReads(outReads, matrices, intra, matrices.startKeys, size);
  setMagnitudes(intra, intra, n * n);
  addProduct(outErrors, intra, writeErrors, { rows: n, inner: n, columns: valueDim });
}

/** A bounder of delta writes, token by token. */
export function deltaTokens(
  context: WriterContext,
  most: number,
  observe?: TokenObserver,
): BlockBounder {
  const m = deltaMachine(context, most, observe);
  const { keyDim, valueDim, matrices, outErrors, writeErrors, outReads, spreads, within, norms } =
    m;
  return (block, state) => {
    const { count: n } = block;
    const size = { count: n, dim: keyDim };
    const normsBefore = state.norms.slice();
    norms.set(normsBefore);
    within.fill(0);
    setSpreads(spreads, block, keyDim);
    setBlockMatrices(matrices, block, null, { dim: keyDim, isDelta: true });
    runTokens(m, block, state.exact);
    addWrites(m, n);
    const keys = new Float64Array(n * keyDim);
    const ofKeys = { rows: n, inner: n, columns: keyDim };
    addProduct(keys, matrices.inverse, matrices.endKeys, ofKeys, true);
    const added = within.slice();
    addWriteNorms(added, keys, writeErrors, size, m);
    const spread = spreads.subarray(0, n).reduce((a, b) => a * b, 1);
    for (let c = 0; c < valueDim; c++)
      state.norms[c] = Math.min(norms[c], spread * normsBefore[c] + added[c]);
    const step = {
      count: n,
      keys,
      reads: matrices.startKeys.slice(0, n * keyDim),
      decay: matrices.endDecay.slice(),
      writeError: writeErrors.slice(0, n * valueDim),
      inverse: null,
      writeErrorBefore: null,
      stateError: null,
      stateNorms: within.slice(),
      normsBefore,
    };
    return { outErrors, outReads, step, normsBefore };
  };
}
