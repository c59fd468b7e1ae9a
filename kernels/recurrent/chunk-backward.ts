import { chunkGradients, type ChunkGradients } from './chunk-gradients.js';
import { setEndKeys, setChunkParts } from './chunk-forward.js';
import { setKeyGradients } from './chunk-key-gradients.js';
import { chunkParts, type ChunkParts } from './chunk-parts.js';
import {
  setIntraGradient,
  setInverseGradients,
  setReadGradients,
  setWriteGradients,
} from './chunk-write-gradients.js';
import { stretchesOf, type RunContext } from './context.js';
import type { BackwardPass, OutputGradientReader } from './gradient-rows.js';
import type { InputReader, TokenInputs } from './inputs.js';
import { decayRows, scaleRows } from './matrix/matrices.js';

/** The gradients of the gates' sums G: where a query or a delta write reads, they grow with what is read; where a key is written, they shrink. */
function setGateSums(
  { rows, read, written, triangleColumns, gateSums }: ChunkGradients,
  { q, k, count: n }: TokenInputs,
  { shape, gateCount, isDelta, rounding }: RunContext,
): void {
  if (gateCount === 0) return;
  const { keyDim } = shape;
  gateSums.fill(0);
  for (let i = 0; i < n * keyDim; i++) {
    const ofKey = isDelta ? read[i] - written[i] - triangleColumns[i] : -written[i];
    const gate = gateCount === 1 ? Math.floor(i / keyDim) : i;
    gateSums[gate] += q[i] * rows.dq[i] + k[i] * ofKey;
  }
  rounding.value('sum', gateSums, 0, n * gateCount);
}

/** dg: the gradients of the sums that a gate is part of, from its token to the chunk's end, and of all behind it. */
function setGateGradients({ rows, gateSums, gateCarry }: ChunkGradients, n: number): void {
  const count = gateCarry.length;
  for (let t = n - 1; t >= 0; t--)
    for (let i = 0; i < count; i++) {
      const at = t * count + i;
      rows.dg[at] = gateSums[at] + (t === n - 1 ? gateCarry[i] : rows.dg[at + count]);
    }
}

/** dK and dβ from their parts, which kernels of delta writes store before they add them. */
function addParts(
  { rows, read, written, triangleColumns, strengthOfTriangle }: ChunkGradients,
  n: number,
  { rounding, isDelta, shape }: RunContext,
): void {
  const size = n * shape.keyDim;
  rows.dk.set(written.subarray(0, size));
  if (!isDelta) return;
  for (let i = 0; i < size; i++) read[i] += triangleColumns[i];
  rounding.output('dk', rows.dk, 0, size);
  rounding.output('dk', read, 0, size);
  for (let i = 0; i < size; i++) rows.dk[i] += read[i];
  for (let s = 0; s < n; s++) rows.dbeta[s] += strengthOfTriangle[s];
}

/** dS = E_C dS + scale Σ_s (E_s q_s) dO_sᵀ − Wᵀ dN. */
function stepBack(
  { stateOperand, outputs, writes, scratch }: ChunkGradients,
  { decays, keyFactor }: ChunkParts,
  { q, count: n }: TokenInputs,
  { products, rounding, shape, scale, isDelta }: RunContext,
  stateGradient: Float64Array,
): void {
  const { keyDim, valueDim } = shape;
  const sizes = [keyDim, n, valueDim] as const;
  const { count, fromStart } = decays;
  scratch.set(q.subarray(0, n * keyDim));
  if (count > 0) {
    scaleRows(scratch, scratch, fromStart, [n, keyDim], count === 1);
    rounding.value('operand', scratch, 0, n * keyDim);
    decayRows(stateGradient, fromStart.subarray((n - 1) * count, n * count), valueDim);
    rounding.value('sum', stateGradient, 0, stateGradient.length);
  }
  products.productOfTransposed(stateOperand, scratch, outputs, sizes);
  for (let i = 0; i < stateOperand.length; i++) stateGradient[i] += scale * stateOperand[i];
  if (isDelta) {
    products.productOfTransposed(stateOperand, keyFactor, writes, sizes);
    for (let i = 0; i < stateOperand.length; i++) stateGradient[i] -= stateOperand[i];
  }
  rounding.value('state', stateGradient, 0, stateGradient.length);
}

/** The backward pass of the chunked form; it computes each chunk's parts again, from the state before it. */
export function chunkBackward(
  context: RunContext,
  read: InputReader,
  readOutputGradient: OutputGradientReader,
): BackwardPass {
  const { shape, arithmetic, rounding, gateCount, isDelta } = context;
  const parts = chunkParts(arithmetic.chunk, shape, gateCount);
  const gradients = chunkGradients(arithmetic.chunk, shape, gateCount);
  const { outputs, stateOperand, rows } = gradients;
  return (sequence, head, starts, stateGradient, receive) => {
    const stretches = stretchesOf(shape.sequences[sequence], arithmetic.chunk);
    for (let chunk = stretches.length - 1; chunk >= 0; chunk--) {
      const { first, count } = stretches[chunk];
      const inputs = read(first, count, head);
      const place = { inputs, sequence, chunk, chunks: stretches.length };
      outputs.set(readOutputGradient(first, count, head));
      setChunkParts(parts, place, context, starts[chunk]);
      setEndKeys(parts, inputs, context);
      stateOperand.set(stateGradient);
      rounding.value('state-gradient', stateOperand, 0, stateOperand.length);
      setWriteGradients(gradients, parts, inputs, context);
      setIntraGradient(gradients, parts, inputs, context);
      if (isDelta) setInverseGradients(gradients, parts, inputs, context);
      setKeyGradients(gradients, parts, inputs, context);
      setReadGradients(gradients, parts, inputs, context);
      setGateSums(gradients, inputs, context);
      context.changeGradients?.(gradients, parts, place);
      setGateGradients(gradients, count);
      addParts(gradients, count, context);
      receive(first, count, rows);
      stepBack(gradients, parts, inputs, context, stateGradient);
    }
  };
}
