import type { Work } from '../chunk-work.js';
import type { ChunkWrites, ReadState, WriterContext } from '../chunk-writes.js';
import { compose } from '../roundings.js';
import type { TokenBlock } from '../token-blocks.js';
import { erroredProducts } from './errored-products.js';
import { errored, type BlockGradients, type Errored, type StateGradient } from './gradient-rows.js';

/** A chunk's step back. */
export interface ChunkBack {
  readonly block: TokenBlock;
  /** The chunk's forward, computed again. */
  readonly work: Work;
  readonly writes: ChunkWrites;
  readonly read: ReadState;
  /** Behind the chunk; taken to before it. */
  readonly gradient: StateGradient;
  readonly outputs: Float64Array;
  readonly rows: BlockGradients;
  /** ‖Φ‖ of the chunk at most. */
  readonly spread: number;
}

/** The matrices of a chunk's step back. */
function gradientWork(most: number, keyDim: number, valueDim: number) {
  const [ofKeys, ofValues, square] = [most * keyDim, most * valueDim, most * most];
  const state = keyDim * valueDim;
  return {
    outputs: errored(ofValues),
    intra: errored(square),
    writes: errored(ofValues),
    endKeys: errored(ofKeys),
    startQueries: errored(ofKeys),
    startKeys: errored(ofKeys),
    values: errored(ofValues),
    reads: errored(ofKeys),
    inverse: errored(square),
    state: errored(state),
    gradient: errored(state),
    next: errored(state),
    ofWrites: errored(ofValues),
    ownErrors: new Float64Array(ofValues),
    ofIntra: errored(square),
    ofQueries: errored(ofKeys),
    ofKeys: errored(ofKeys),
    ofReads: errored(ofKeys),
    ofStartKeys: errored(ofKeys),
    ofValues: errored(ofValues),
    ofInverse: errored(square),
    half: errored(square),
    ofTriangle: errored(square),
    readPart: errored(ofKeys),
    decays: new Float64Array(ofKeys),
    norms: new Float64Array(most),
    columns: new Float64Array(valueDim),
  };
}

/** to = values, with a relative error and one by element. */
export function set(
  to: Errored,
  values: Float64Array,
  size: number,
  error: (at: number) => number,
): void {
  for (let i = 0; i < size; i++) {
    to.value[i] = values[i];
    to.error[i] = error(i);
  }
}

/** Adds an element times a factor that errs by a share. */
export function addTimes(
  to: Errored,
  at: number,
  from: Errored,
  place: number,
  [factor, share]: readonly [factor: number, share: number],
): void {
  const [value, error] = [from.value[place], from.error[place]];
  to.value[at] += factor * value;
  to.error[at] += Math.abs(factor) * (error + share * (Math.abs(value) + error));
}

/** Zeros above the diagonal, or from it on. */
export function keepTriangle({ value, error }: Errored, n: number, isStrict: boolean): void {
  for (let s = 0; s < n; s++) {
    const from = s * n + s + (isStrict ? 0 : 1);
    value.fill(0, from, (s + 1) * n);
    error.fill(0, from, (s + 1) * n);
  }
}

/** What steps back of a problem share. */
export function chunkMachine(context: WriterContext, most: number) {
  const { roundings, inputs, shape } = context;
  const { keyDim, valueDim } = shape;
  const { of, operation } = roundings;
  const sum = roundings.sum(Math.max(keyDim, valueDim) + most + 6);
  const largest = Math.max(most * most, most * keyDim, most * valueDim, keyDim * valueDim);
  const products = erroredProducts(largest, sum);
  const w = gradientWork(most, keyDim, valueDim);
  const isDecayed = inputs.decay !== 'none';
  const made = compose(inputs.normalised, of.operand.unit, 4 * operation);
  const rawKey = compose(inputs.key, isDecayed ? made : 0);
  const rawQuery = compose(inputs.query, isDecayed ? made : 0);
  const copied = of['state-gradient'];
  return {
    scale: context.scale,
    inputs,
    keyDim,
    valueDim,
    of,
    operation,
    sum,
    products,
    w,
    made,
    rawKey,
    rawQuery,
    copied,
  };
}

/** What {@link chunkMachine} returns. */
export type ChunkMachine = ReturnType<typeof chunkMachine>;

/** Sets what the chunk's forward has, and its errors. */
export function setForward(
  m: ChunkMachine,
  { block, work, writes, read, gradient, outputs }: ChunkBack,
): void {
  const { scale, inputs, keyDim, valueDim, of, operation, w, made, rawKey, rawQuery, copied } = m;
  const { count: n, gateSums, gateErrorSums, beta, v } = block;
  const { matrices, terms } = work;
  const endErrors = (at: number) =>
    inputs.ofDecay(gateSums[(n - 1) * keyDim + (at % keyDim)], n, gateErrorSums[n - 1]);
  const least = of.operand.least;
  for (let i = 0; i < n * valueDim; i++) {
    const value = scale * outputs[i];
    w.outputs.value[i] = value;
    w.outputs.error[i] = 4 * operation * Math.abs(value);
    w.writes.value[i] = writes.exact[i];
    w.writes.error[i] = writes.largest[i] - Math.abs(writes.exact[i]);
    const strengthened = beta[Math.floor(i / valueDim)] * v[i];
    w.values.value[i] = strengthened;
    w.values.error[i] =
      2 * operation * Math.abs(strengthened) + of.operand.error(Math.abs(strengthened));
  }
  set(w.intra, matrices.intra, n * n, (i) => {
    const size = Math.abs(matrices.intra[i]) + matrices.intraError[i];
    return matrices.intraError[i] + of.intra.unit * size + (size > 0 ? of.intra.least : 0);
  });
  set(w.endKeys, matrices.endKeys, n * keyDim, (i) => {
    const share = compose(rawKey, endErrors(i), of['write-operand'].unit);
    return share * Math.abs(matrices.endKeys[i]) + least;
  });
  set(
    w.startQueries,
    matrices.startQueries,
    n * keyDim,
    (i) => compose(rawQuery, terms.decays[i]) * Math.abs(matrices.startQueries[i]) + least,
  );
  set(
    w.startKeys,
    matrices.startKeys,
    n * keyDim,
    (i) => compose(made, terms.decays[i]) * Math.abs(matrices.startKeys[i]) + least,
  );
  set(w.state, read.exact, keyDim * valueDim, (i) => read.errors[i] + read.copyErrors[i]);
  set(
    w.gradient,
    gradient.exact,
    keyDim * valueDim,
    (i) => copied.unit * Math.abs(gradient.exact[i]) + copied.least,
  );
  const { reads, readErrors, inverse } = writes;
  if (!reads || !readErrors || !inverse) return;
  set(w.reads, reads, n * keyDim, (i) => readErrors[i]);
  set(w.inverse, matrices.inverse, n * n, (i) => inverse.error[i] + inverse.rounding[i]);
}
