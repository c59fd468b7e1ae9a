import type { ChunkParts } from './chunk-parts.js';
import type { RunContext } from './context.js';
import type { TokenInputs } from './inputs.js';

/**
 * Receives keys decayed to row s, one after the other for j ≤ s: row j of `decayed` is the key of token j; good until the next row.
 */
export type DecayedRowReceiver = (s: number, decayed: Float64Array) => void;

/**
 * Goes through a chunk's rows with the keys, or other rows, decayed to each. Decays only ever multiply by numbers up to 1, so that nothing overflows
 * where quotients of decays would.
 */
export function eachDecayedRow(
  rows: Float64Array,
  { steps, count }: ChunkParts['decays'],
  tokens: number,
  decayed: Float64Array,
  receive: DecayedRowReceiver,
): void {
  for (let s = 0; s < tokens; s++) {
    const step = s * count;
    for (let j = 0; j < s; j++)
      for (let i = 0; i < count; i++) decayed[j * count + i] *= steps[step + i];
    decayed.set(rows.subarray(step, step + count), step);
    receive(s, decayed);
  }
}

/** Dot products of queries and of keys with keys, decayed: by head afterwards, by key dimension as operands. */
function setDots(parts: ChunkParts, inputs: TokenInputs, context: RunContext): void {
  const { products, rounding, shape, isDelta } = context;
  const { intra, triangle, decays } = parts;
  const { q, k, count: n } = inputs;
  const { keyDim } = shape;
  if (decays.count <= 1) {
    products.productWithTransposed(intra, q, k, [n, keyDim, n]);
    if (isDelta) products.productWithTransposed(triangle, k, k, [n, keyDim, n]);
  } else
    eachDecayedRow(k, decays, n, parts.decayed, (s, decayed) => {
      for (let j = 0; j <= s; j++) {
        intra[s * n + j] = products.dot(q, s * keyDim, decayed, j * keyDim, keyDim);
        if (isDelta) triangle[s * n + j] = products.dot(k, s * keyDim, decayed, j * keyDim, keyDim);
      }
    });
  for (let s = 0; s < n; s++) {
    if (decays.count > 1) {
      rounding.decayedDots?.(intra, s * n, s * n + s + 1);
      if (isDelta) rounding.decayedDots?.(triangle, s * n, s * n + s);
    }
    rounding.value('sum', intra, s * n, s * n + s + 1);
    if (isDelta && s > 0) rounding.value('sum', triangle, s * n, s * n + s);
  }
}

/** Sets P, and A of delta writes. */
export function setChunkProducts(
  parts: ChunkParts,
  inputs: TokenInputs,
  context: RunContext,
): void {
  const { rounding, isDelta } = context;
  const { intra, triangle, decays } = parts;
  const { beta, count: n } = inputs;
  setDots(parts, inputs, context);
  for (let s = 0; s < n; s++) {
    const row = s * n;
    intra.fill(0, row + s + 1, row + n);
    triangle.fill(0, row + s, row + n);
    for (let j = 0; j <= s; j++) {
      const decay = decays.count === 1 ? decays.within[row + j] : 1;
      intra[row + j] *= decay;
      if (j < s && isDelta) triangle[row + j] *= beta[s] * decay;
    }
    rounding.value('intra', intra, row, row + s + 1);
    if (isDelta && s > 0) rounding.value('triangle', triangle, row, row + s);
  }
}
