import type { ArrayFunction } from '../simd/index.js';
import type { ErrorPlan, Measure } from './error-plan.js';
import { bitsOfOrdinal, valueOfBits, type Ordinal } from './float32-order.js';
import { references, type CandidateName } from './functions.js';
import { formatRecord, type FormatRecord } from './record.js';

/** 2^e for 2^e ≤ |x| < 2^(e + 1), but at least the smallest normal number and at most 2^127. */
export function binadeOf(x: number, smallestNormal: number): number {
  let power = 2 ** 127;
  while (power > smallestNormal && !(power <= Math.abs(x))) power /= 2;
  return Number.isNaN(x) ? NaN : power;
}

/**
 * An fp64 value rounded to the format, ties to even, subnormals kept; every zero becomes +0.
 * @param power a number whose binade decides the quantum; default the value itself
 */
export function roundTo(format: FormatRecord, x: number, power = x): number {
  const shift = binadeOf(power, format.smallestNormal) * format.toQuantum;
  const rounded = x + shift - shift;
  return Math.abs(rounded) > format.largest ? Math.sign(rounded) * format.beyond : rounded;
}

/** The results of a function at one input. */
export interface InputView {
  readonly inputBits: string;
  readonly input: number;
  readonly resultBits: string;
  /** The fp32 result. */
  readonly result: number;
  /** The result rounded to the measure's format. */
  readonly rounded: number;
  /** The exact value in fp64, or the baseline's rounded result where that is the reference. */
  readonly exact: number;
}

/** A bit pattern as 0x and eight digits. */
export function hexadecimal(bits: number): string {
  return `0x${bits.toString(16).padStart(8, '0')}`;
}

/** Creates a function that evaluates a plan's functions again at single inputs. */
export function createInputView(
  plan: ErrorPlan,
  functions: ReadonlyMap<CandidateName, ArrayFunction>,
): (ordinal: Ordinal, candidate: CandidateName, measure: Measure) => InputView {
  const reference = plan.reference === 'baseline' ? null : references[plan.reference].create();
  const resultOf = (candidate: CandidateName, bits: number): number => {
    const results = new Uint32Array(1);
    functions.get(candidate)!(Uint32Array.of(bits), results);
    return results[0];
  };
  return (ordinal, candidate, { rounding }) => {
    const format = formatRecord(rounding);
    const bits = bitsOfOrdinal(ordinal);
    const result = resultOf(candidate, bits);
    const exact = new Float64Array(1);
    if (reference === null)
      exact[0] = roundTo(format, valueOfBits(resultOf(plan.candidates[0], bits)));
    else reference(Float32Array.of(valueOfBits(bits)), exact, 1);
    return {
      inputBits: hexadecimal(bits),
      input: valueOfBits(bits),
      resultBits: hexadecimal(result),
      result: valueOfBits(result),
      rounded: roundTo(format, valueOfBits(result)),
      exact: exact[0],
    };
  };
}
