import { doubleDouble, multiplyDoubleDouble, type DoubleDouble } from '../../arith/index.js';
import { ln2Words, log2OfDoubleDouble } from '../../../oracles/index.js';
import { libdeviceBinaryLogarithms, libdeviceLogarithms } from './libdevice-logarithms.js';

/** Values that a function of a number may have: several where a rounding of the number may decide. */
export type ValuesOf<T> = (of: T) => readonly DoubleDouble[];

/** Values times a constant. */
export function times<T>(values: ValuesOf<T>, unit: DoubleDouble): ValuesOf<T> {
  return (of) => values(of).map((value) => multiplyDoubleDouble(value, unit));
}

/** A way in which kernels make the natural logarithm of a positive number. */
export interface NaturalLogarithm {
  readonly name: string;
  readonly of: ValuesOf<DoubleDouble>;
}

const log2: ValuesOf<DoubleDouble> = (sum) => [log2OfDoubleDouble(sum)];

/** The natural logarithms of kernels, the exact one first; `logf` and `log2f` are those of libdevice. */
export function naturalLogarithms(): readonly NaturalLogarithm[] {
  const rounded = doubleDouble(Math.fround(Math.LN2));
  return [
    { name: 'ln', of: times(log2, ln2Words()) },
    { name: 'fp32(ln 2)·log2', of: times(log2, rounded) },
    { name: 'logf', of: libdeviceLogarithms },
    { name: 'ln 2·log2f', of: times(libdeviceBinaryLogarithms, ln2Words()) },
    { name: 'fp32(ln 2)·log2f', of: times(libdeviceBinaryLogarithms, rounded) },
  ];
}
