import { decode, formats } from '../../formats/index.js';
import { createConversionArray } from '../../hardware/index.js';
import type { ArrayFunction } from '../../simd/index.js';
import type { CandidateName } from '../candidates.js';
import { bitsOfOrdinal, ordinalOfValue, valueOfOrdinal } from '../float32-order.js';
import { largestRoundingExcess, weightConversions, type WeightFormat } from './weight-formats.js';

/** The largest exponents x whose weight P = exp2(x) a format still holds; fp32 numbers. */
export interface ExponentLimit {
  readonly format: WeightFormat;
  readonly name: CandidateName;
  /** For this x and all below, P in fp32 is at most the format's largest finite number. */
  readonly largestFinite: number;
  /**
   * For this x and all below, the converted P is off by half an ulp at most: neither infinite nor cut
   * by more than rounding would.
   */
  readonly largestRounded: number;
}

/**
 * How far around a limit is searched, in log2. Every exp2 here has a relative error below 4.1 % (the
 * polynomial of degree 1; `flashproof profile exp2` sweeps all inputs), which is 0.06 in log2: below
 * the window every weight fits, above it none does.
 */
const margin = 1 / 16;

/**
 * The limits for one exp2 and one format, by evaluating the models of exp2 and of the conversion at
 * every fp32 x from 1/16 below log2 of the format's largest finite number to 1/16 above that of what
 * still rounds to it, so that no monotonicity is taken for granted.
 * @param evaluate the exp2 on arrays of fp32 bit patterns
 */
export function exponentLimit(
  format: WeightFormat,
  name: CandidateName,
  evaluate: ArrayFunction,
): ExponentLimit {
  const target = formats[format];
  const excess = largestRoundingExcess(format);
  const first = ordinalOfValue(Math.fround(Math.log2(target.maxFinite) - margin));
  const last = ordinalOfValue(Math.fround(Math.log2(target.maxFinite + excess) + margin));
  const inputs = Uint32Array.from({ length: last - first + 1 }, (_, i) => bitsOfOrdinal(first + i));
  const weightBits = new Uint32Array(inputs.length);
  const weights = new Float32Array(weightBits.buffer);
  const converted = new Uint32Array(inputs.length);
  evaluate(inputs, weightBits);
  createConversionArray(weightConversions[format].instruction)(weightBits, converted);
  const isFinite = (i: number): boolean => weights[i] <= target.maxFinite;
  const isRounded = (i: number): boolean =>
    Math.abs(decode(target, converted[i]) - weights[i]) <= excess;
  const lastThat = (holds: (i: number) => boolean): number => {
    const failure = inputs.findIndex((_, i) => !holds(i));
    return valueOfOrdinal(first + failure - 1);
  };
  return {
    format,
    name,
    largestFinite: lastThat(isFinite),
    largestRounded: lastThat(isRounded),
  };
}
