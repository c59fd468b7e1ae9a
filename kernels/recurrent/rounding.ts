import { formats, round, type FormatName } from '../../src/formats/index.js';
import type { RecurrentArithmetic, RecurrentRounding } from './arithmetic.js';

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
export const unrounded: RecurrentRounding = { value() {}, output() {} };

/** Rounding to the formats of an arithmetic, to nearest, ties to even. */
export function roundingTo({ formats, outputs }: RecurrentArithmetic): RecurrentRounding {
  return {
    value: (of, values, first, end) => roundAll(formats[of], values, first, end),
    output: (name, values, first, end) => roundAll(outputs[name] ?? 'fp32', values, first, end),
  };
}
