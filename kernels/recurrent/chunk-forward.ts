import { chunkParts, type ChunkParts, type ChunkPlace } from './chunk-parts.js';
import { setChunkProducts } from './chunk-products.js';
import { stretchesOf, type RunContext } from './context.js';
import { setChunkDecays } from './decays.js';
import type { InputReader, TokenInputs } from './inputs.js';
import { invertTriangle } from './matrix/inverse.js';
import { decayRows, scaleRows } from './matrix/matrices.js';
import type { SequencePass } from './token-forward.js';

/** W and U of delta writes, from T and the operands β k E and β v. */
function setWriteFactors(parts: ChunkParts, inputs: TokenInputs, context: RunContext): void {
  const { products, rounding, shape } = context;
  const { decays, inverse, keyOperand, valueOperand, keyFactor, valueFactor } = parts;
  const { k, v, beta, count: n } = inputs;
  const { keyDim, valueDim } = shape;
  scaleRows(keyOperand, k, beta, [n, keyDim], true);
  if (decays.count > 0)
    scaleRows(keyOperand, keyOperand, decays.fromStart, [n, keyDim], decays.count === 1);
  scaleRows(valueOperand, v, beta, [n, valueDim], true);
  rounding.value('operand', keyOperand, 0, n * keyDim);
  rounding.value('operand', valueOperand, 0, n * valueDim);
  products.product(keyFactor, inverse, keyOperand, [n, n, keyDim]);
  products.product(valueFactor, inverse, valueOperand, [n, n, valueDim]);
  for (const [factor, dim] of [
    [keyFactor, keyDim],
    [valueFactor, valueDim],
  ] as const) {
    rounding.value('sum', factor, 0, n * dim);
    rounding.value('write-factor', factor, 0, n * dim);
  }
}

/** N: of additive writes the values, of delta writes U − W S. */
function setWrites(parts: ChunkParts, inputs: TokenInputs, context: RunContext): void {
  const { products, rounding, shape, isDelta } = context;
  const { keyFactor, valueFactor, stateOperand, exactWrites, writes } = parts;
  const { v, count: n } = inputs;
  const size = n * shape.valueDim;
  if (!isDelta) {
    exactWrites.set(v.subarray(0, size));
    writes.set(v.subarray(0, size));
    return;
  }
  products.product(exactWrites, keyFactor, stateOperand, [n, shape.keyDim, shape.valueDim]);
  rounding.value('sum', exactWrites, 0, size);
  for (let i = 0; i < size; i++) exactWrites[i] = valueFactor[i] - exactWrites[i];
  rounding.value('sum', exactWrites, 0, size);
  writes.set(exactWrites.subarray(0, size));
  rounding.value('write', writes, 0, size);
}

/** Queries as operands of products with the state before the chunk: where decays are by key dimension, decayed. */
export function setStartQueries(parts: ChunkParts, inputs: TokenInputs, context: RunContext): void {
  const { decays, startQueries } = parts;
  const { keyDim } = context.shape;
  const size = inputs.count * keyDim;
  startQueries.set(inputs.q.subarray(0, size));
  if (decays.count <= 1) return;
  scaleRows(startQueries, startQueries, decays.fromStart, [inputs.count, keyDim], false);
  context.rounding.value('operand', startQueries, 0, size);
}

/** Keys as operands of products with the state behind the chunk: where decays are by key dimension, decayed. */
export function setEndKeys(parts: ChunkParts, inputs: TokenInputs, context: RunContext): void {
  const { decays, endKeys } = parts;
  const { keyDim } = context.shape;
  const size = inputs.count * keyDim;
  endKeys.set(inputs.k.subarray(0, size));
  if (decays.count <= 1) return;
  scaleRows(endKeys, endKeys, decays.toEnd, [inputs.count, keyDim], false);
  context.rounding.value('operand', endKeys, 0, size);
}

/** O = scale ((q E) S + P N): by head E multiplies the product. */
function setOutput(parts: ChunkParts, inputs: TokenInputs, context: RunContext): void {
  const { products, rounding, shape, scale } = context;
  const { decays, startQueries, stateOperand, intra, writes, out } = parts;
  const n = inputs.count;
  const { keyDim, valueDim } = shape;
  const size = n * valueDim;
  setStartQueries(parts, inputs, context);
  products.product(out, startQueries, stateOperand, [n, keyDim, valueDim]);
  if (decays.count === 1) scaleRows(out, out, decays.fromStart, [n, valueDim], true);
  rounding.value('sum', out, 0, size);
  products.product(out, intra, writes, [n, n, valueDim], true);
  rounding.value('sum', out, 0, size);
  for (let i = 0; i < size; i++) out[i] *= scale;
}

/** S = E_C S + Σ_j (E_{C←j} k_j) N_jᵀ: by head the decay multiplies N. */
function advanceState(
  parts: ChunkParts,
  inputs: TokenInputs,
  context: RunContext,
  state: Float64Array,
): void {
  const { products, rounding, shape } = context;
  const { decays, exactWrites, endKeys, endWrites } = parts;
  const n = inputs.count;
  const { keyDim, valueDim } = shape;
  const { count, toEnd, fromStart } = decays;
  setEndKeys(parts, inputs, context);
  endWrites.set(exactWrites.subarray(0, n * valueDim));
  if (count === 1) scaleRows(endWrites, endWrites, toEnd, [n, valueDim], true);
  if (context.isDelta || count === 1) rounding.value('write-operand', endWrites, 0, n * valueDim);
  if (count > 0) {
    decayRows(state, fromStart.subarray((n - 1) * count, n * count), valueDim);
    rounding.value('sum', state, 0, state.length);
  }
  products.productOfTransposed(state, endKeys, endWrites, [keyDim, n, valueDim], true);
  rounding.value('state', state, 0, state.length);
}

/** Sets all parts of a chunk that do not depend on what comes after it, but the output. */
export function setChunkParts(
  parts: ChunkParts,
  place: ChunkPlace,
  context: RunContext,
  state: Float64Array,
): void {
  const { inputs } = place;
  const { rounding, change, isDelta, arithmetic } = context;
  setChunkDecays(parts.decays, inputs.gates, inputs.count, rounding);
  parts.stateOperand.set(state);
  rounding.value('state-operand', parts.stateOperand, 0, state.length);
  change?.('start', parts, place, state);
  setChunkProducts(parts, inputs, context);
  change?.('products', parts, place, state);
  if (isDelta) {
    const { inverse, triangle } = parts;
    invertTriangle(inverse, triangle, inputs.count, arithmetic.inverse, rounding);
    change?.('inverse', parts, place, state);
    setWriteFactors(parts, inputs, context);
  }
  setWrites(parts, inputs, context);
  change?.('writes', parts, place, state);
}

/** The chunked form. */
export function chunkForward(context: RunContext, read: InputReader): SequencePass {
  const { shape, arithmetic, change } = context;
  const { valueDim } = shape;
  const parts = chunkParts(arithmetic.chunk, shape, context.gateCount);
  return (sequence, head, state, receive, begin) => {
    const stretches = stretchesOf(shape.sequences[sequence], arithmetic.chunk);
    stretches.forEach(({ first, count }, chunk) => {
      begin?.(chunk);
      const inputs = read(first, count, head);
      const place = { inputs, sequence, chunk, chunks: stretches.length };
      setChunkParts(parts, place, context, state);
      setOutput(parts, inputs, context);
      advanceState(parts, inputs, context, state);
      change?.('end', parts, place, state);
      for (let t = 0; t < count; t++)
        receive(first + t, parts.out.subarray(t * valueDim, (t + 1) * valueDim));
    });
  };
}
