import type { ChunkGradients } from './chunk-gradients.js';
import type { ChunkParts } from './chunk-parts.js';
import { eachDecayedRow } from './chunk-products.js';
import type { RunContext } from './context.js';
import type { TokenInputs } from './inputs.js';
import { scaleRows } from './matrix/matrices.js';

/** The shares of dQ and dK by way of the states before and behind the chunk, and dS's part of the gradients of all gates. */
function setStateShares(
  gradients: ChunkGradients,
  parts: ChunkParts,
  { k, count: n }: TokenInputs,
  { products, rounding, shape, scale }: RunContext,
): void {
  const { rows, written, outputs, stateOperand, gateCarry } = gradients;
  const { decays } = parts;
  const { keyDim, valueDim } = shape;
  const { count, fromStart, toEnd } = decays;
  const size = n * keyDim;
  products.productWithTransposed(rows.dq, outputs, parts.stateOperand, [n, valueDim, keyDim]);
  products.productWithTransposed(written, parts.writes, stateOperand, [n, valueDim, keyDim]);
  rounding.value('sum', rows.dq, 0, size);
  rounding.value('sum', written, 0, size);
  for (let i = 0; i < size; i++) rows.dq[i] *= scale;
  if (count === 0) return;
  scaleRows(rows.dq, rows.dq, fromStart, [n, keyDim], count === 1);
  scaleRows(written, written, toEnd, [n, keyDim], count === 1);
  gateCarry.fill(0);
  for (let i = 0; i < keyDim; i++) {
    const gate = count === 1 ? 0 : i;
    const decay = fromStart[(n - 1) * count + gate];
    const row = i * valueDim;
    gateCarry[gate] += decay * products.dot(parts.stateOperand, row, stateOperand, row, valueDim);
    for (let j = i; j < size; j += keyDim) gateCarry[gate] += k[j] * written[j];
  }
}

/** The shares by way of P and A where decays are by head: plain products. */
function addProductsByHead(
  gradients: ChunkGradients,
  { q, k, beta, count: n }: TokenInputs,
  { products, rounding, shape, isDelta }: RunContext,
): void {
  const { rows, written, intra, triangle, triangleRows, triangleColumns, scratch } = gradients;
  const { keyDim } = shape;
  products.product(rows.dq, intra, k, [n, n, keyDim], true);
  products.productOfTransposed(written, intra, q, [n, n, keyDim], true);
  if (!isDelta) return;
  products.product(triangleRows, triangle, k, [n, n, keyDim]);
  scaleRows(scratch, k, beta, [n, keyDim], true);
  rounding.value('operand', scratch, 0, n * keyDim);
  products.productOfTransposed(triangleColumns, triangle, scratch, [n, n, keyDim]);
}

/** The same where decays are by key dimension, row by row with the decays from each token to the row's. */
function addProductsByDimension(
  gradients: ChunkGradients,
  parts: ChunkParts,
  { q, k, beta, count: n }: TokenInputs,
  { rounding, shape, isDelta }: RunContext,
): void {
  const { rows, written, intra, triangle, triangleRows, triangleColumns, scratch } = gradients;
  const { keyDim } = shape;
  const size = n * keyDim;
  const [keys, queries, readers] = [q, q, k].map(() => new Float64Array(size));
  triangleRows.fill(0, 0, size);
  triangleColumns.fill(0, 0, size);
  scratch.fill(1, 0, size);
  eachDecayedRow(scratch, parts.decays, n, parts.decayed, (s, decays) => {
    const row = s * keyDim;
    const end = row + keyDim;
    for (let at = 0, i = row; at < end; at++, i = i + 1 === end ? row : i + 1) {
      keys[at] = k[at] * decays[at];
      queries[at] = q[i] * decays[at];
      readers[at] = k[i] * decays[at];
    }
    for (const operand of isDelta ? [keys, queries, readers] : [keys, queries])
      rounding.value('decayed-operand', operand, 0, end);
    for (let j = 0; j <= s; j++) {
      const ofIntra = intra[s * n + j];
      const ofTriangle = isDelta ? triangle[s * n + j] : 0;
      const strength = ofTriangle * beta[s];
      const column = j * keyDim;
      for (let i = 0; i < keyDim; i++) {
        rows.dq[row + i] += ofIntra * keys[column + i];
        written[column + i] += ofIntra * queries[column + i];
        if (!isDelta) continue;
        triangleRows[row + i] += ofTriangle * keys[column + i];
        triangleColumns[column + i] += strength * readers[column + i];
      }
    }
  });
}

/** Sets dQ, dK as keys are written, and what dA gives rows and columns. */
export function setKeyGradients(
  gradients: ChunkGradients,
  parts: ChunkParts,
  inputs: TokenInputs,
  context: RunContext,
): void {
  const { rounding, shape, isDelta } = context;
  const { rows, written, triangleRows, triangleColumns } = gradients;
  setStateShares(gradients, parts, inputs, context);
  if (parts.decays.count > 1) addProductsByDimension(gradients, parts, inputs, context);
  else addProductsByHead(gradients, inputs, context);
  for (const values of [rows.dq, written, ...(isDelta ? [triangleRows, triangleColumns] : [])])
    rounding.value('sum', values, 0, inputs.count * shape.keyDim);
}
