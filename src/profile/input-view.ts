import type { ArrayFunction } from '../simd/index.js';
import { type CandidateName, references } from './functions.js';
import type { ErrorPlan, Measure } from './error-plan.js';
import { bitsOfOrdinal, valueOfBits, type Ordinal } from './float32-order.js';
import { formatRecord } from './record.js';
import { roundTo } from './round-by-adding.js';

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
