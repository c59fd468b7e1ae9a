import { formats, round, type FormatName } from '../../src/formats/index.js';
import { exp2Approx } from '../../src/hardware/index.js';
import { onNumbers } from '../online-softmax/units.js';
import type { RecurrentArithmetic, RecurrentRounding, RecurrentValue } from './arithmetic.js';

/** Rounds elements to a format, to nearest, ties to even. */
function roundAll(name: FormatName, values: Float64Array, first: number, end: number): void {
  if (name === 'fp64') return;
  if (name === 'fp32') for (let i = first; i < end; i++) values[i] = Math.fround(values[i]);
  else {
    const format = formats[name];
    for (let i = first; i < end; i++) values[i] = round(format, values[i]);
  }
}

/** The rounding of a kernel that computes in fp64 and keeps everything so: none. */
export const unrounded: RecurrentRounding = {
  value: () => undefined,
  output: () => undefined,
};

const exp2 = onNumbers(exp2Approx);

/** e^x as Triton compiles it for fp32: ex2.approx of x log2 e, rounded. Tokens that share a gate share its error. */
const exponential32 = (x: number) => exp2(Math.fround(x * Math.fround(Math.LOG2E)));

/**
 * Rounding to the formats of an arithmetic, to nearest, ties to even. Exponentials of single gates are those of the special function unit, if
 * decays are fp32.
 */
export function roundingTo({ formats, outputs }: RecurrentArithmetic): RecurrentRounding {
  return {
    value(of, values, first, end) {
      roundAll(formats[of], values, first, end);
    },
    output(name, values, first, end) {
      roundAll(outputs[name] ?? 'fp32', values, first, end);
    },
    ...(formats.decay === 'fp32' && { exponential: exponential32 }),
  };
}

/** A rounding of values to formats of their own, to nearest, before another. */
export function roundedBefore(
  formats: Readonly<Partial<Record<RecurrentValue, FormatName>>>,
  rounding: RecurrentRounding,
): RecurrentRounding {
  return {
    ...rounding,
    value(of, values, first, end) {
      roundAll(formats[of] ?? 'fp64', values, first, end);
      rounding.value(of, values, first, end);
    },
  };
}
