import { formats } from '../formats/index.js';
import type { Tensor } from '../formats/index.js';
import { elementsOver } from './element-storage.js';

/** The order of a tensor's dimensions: batch, heads, seqlen, dim or batch, seqlen, heads, dim. */
export const layouts = ['bhsd', 'bshd'] as const;
export type Layout = (typeof layouts)[number];

/**
 * A [batch, seqlen, heads, dim] (or [seqlen, heads, dim]) tensor as [batch, heads, seqlen, dim] (or
 * [heads, seqlen, dim]), copied; a tensor of any other rank is returned as it is.
 */
export function toHeadsFirst(tensor: Tensor): Tensor {
  const { format, shape, data } = tensor;
  if (shape.length !== 3 && shape.length !== 4) return tensor;
  const [seqlen, heads, dim] = shape.slice(-3) as [number, number, number];
  const batch = shape.length === 4 ? shape[0] : 1;
  const rowBytes = (dim * formats[format].storageBits) / 8;
  const source = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const target = new Uint8Array(data.byteLength);
  for (let b = 0; b < batch; b++)
    for (let h = 0; h < heads; h++)
      for (let s = 0; s < seqlen; s++) {
        const from = ((b * seqlen + s) * heads + h) * rowBytes;
        const to = ((b * heads + h) * seqlen + s) * rowBytes;
        target.set(source.subarray(from, from + rowBytes), to);
      }
  return {
    format,
    shape: [...shape.slice(0, -3), heads, seqlen, dim],
    data: elementsOver(format, target.buffer),
  };
}
