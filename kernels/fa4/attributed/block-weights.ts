import {
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  patternsOf,
} from '../../../src/formats/index.js';
import type { SummedWeights } from './row-sum.js';

/** The weights P of a tile against one block, with what instructions take of them. */
export interface BlockWeights extends SummedWeights {
  /** p rounded once to the format of the inputs: bit patterns, and values. */
  readonly patterns: Uint16Array;
  readonly rounded: Float64Array;
}

/** The weights [count] in the forms that the forward needs; rounds to nearest even. */
export function blockWeights(weights: Float64Array, format: 'bf16' | 'fp16'): BlockWeights {
  const storage = encodeFromFloat64(formats[format], weights);
  return {
    weights,
    nearest: Float32Array.from(weights),
    patterns: patternsOf(storage, formats[format]) as Uint16Array,
    rounded: decodeToFloat64(storage, formats[format]),
  };
}
