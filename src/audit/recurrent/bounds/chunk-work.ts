import { blockMatrices, setBlockMatrices, type BlockMatrices } from './block-matrices.js';
import { pairErrors, setTermErrors, type OperandErrors } from './chunk-terms.js';
import type { ReadState, WriterContext } from './chunk-writes.js';
import { setColumnNorms } from './matrices.js';
import type { StateBounds } from './state-bounds.js';
import type { TokenBlock } from './token-blocks.js';

/** Working memory of a chunk's bounds. */
export interface Work {
  readonly matrices: BlockMatrices;
  readonly terms: OperandErrors;
  readonly stateErrors: Float64Array;
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
    stateErrors: ofState(),
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
  const { stateErrors, magnitudes, copyErrors, sizes, copyNorms } = work;
  const copy = roundings.of['state-operand'];
  const largest = Math.min(roundings.of.state.largest, 2 ** 126);
  const columns = norms.length;
  for (let i = 0; i < exact.length; i++) {
    stateErrors[i] = errors ? errors[i] : norms[i % columns];
    magnitudes[i] = Math.abs(exact[i]) + stateErrors[i];
    copyErrors[i] = magnitudes[i] < largest ? copy.error(magnitudes[i]) : Infinity;
  }
  setColumnNorms(sizes, magnitudes);
  setColumnNorms(copyNorms, copyErrors);
  return { exact, errors: stateErrors, magnitudes, copyErrors, sizes, copyNorms };
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
