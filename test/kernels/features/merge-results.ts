import type { AttentionOutputs } from '../../../properties/index.js';
import {
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  type Tensor,
} from '../../../src/formats/index.js';

const decoded = ({ data, format }: Tensor) => decodeToFloat64(data, formats[format]);

/** How results of parts are weighed. */
export interface ResultMerge {
  /** The weight of an LSE, less the largest. */
  readonly exponential: (x: number) => number;
  /** What is subtracted from the LSEs of a row of which every part is −∞. */
  readonly ofNothing: number;
}

/** Puts outputs of parts together by their LSEs, in fp64. */
export const mergeBy =
  ({ exponential, ofNothing }: ResultMerge) =>
  (parts: readonly Required<AttentionOutputs>[]): AttentionOutputs => {
    const outs = parts.map(({ out }) => decoded(out));
    const lses = parts.map(({ lse }) => decoded(lse as Tensor));
    const out = outs[0].slice();
    const rows = lses[0].length;
    const vDim = out.length / Math.max(rows, 1);
    const lse = lses[0].slice();
    for (let row = 0; row < rows; row++) {
      const largest = Math.max(...lses.map((values) => values[row]));
      const base = largest === -Infinity ? ofNothing : largest;
      const weights = lses.map((values) => exponential(values[row] - base));
      const sum = weights.reduce((a, b) => a + b, 0);
      lse[row] = base + Math.log(sum);
      for (let c = row * vDim; c < (row + 1) * vDim; c++) {
        const value = outs.reduce((total, values, i) => total + weights[i] * values[c], 0) / sum;
        out[c] = sum === 0 && ofNothing === 0 ? 0 : value;
      }
    }
    const [first] = parts;
    const encoded = (tensor: Tensor, values: Float64Array) => ({
      ...tensor,
      data: encodeFromFloat64(formats[tensor.format], values),
    });
    return { out: encoded(first.out, out), lse: encoded(first.lse as Tensor, lse) };
  };

/** The merge of a correct kernel. */
export const rightMerge = mergeBy({ exponential: Math.exp, ofNothing: 0 });
