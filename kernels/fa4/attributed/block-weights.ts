import {
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  patternsOf,
  type PatternArray,
} from '../../../src/formats/index.js';
import { fa4Formats, type Fa4Format } from '../forward-formats.js';
import type { SummedWeights } from './row-sum.js';

/** The weights P of a tile against one block, with what instructions take of them. */
export interface BlockWeights extends SummedWeights {
  /** p rounded once to the format of the inputs: bit patterns, and values. */
  readonly patterns: PatternArray;
  readonly rounded: Float64Array;
}

/**
 * The weights [count] in the forms that the forward needs; rounds to nearest even. Beyond the largest
 * finite number fp8 saturates, as cvt.rn.satfinite does, and 16-bit formats give ∞.
 */
export function blockWeights(weights: Float64Array, format: Fa4Format): BlockWeights {
  const overflow = fa4Formats[format].bits === 8 ? 'saturate' : 'overflow';
  const storage = encodeFromFloat64(formats[format], weights, { overflow });
  return {
    weights,
    nearest: Float32Array.from(weights),
    patterns: patternsOf(storage, formats[format]),
    rounded: decodeToFloat64(storage, formats[format]),
  };
}
