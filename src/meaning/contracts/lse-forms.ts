import {
  addDoubleDouble,
  divideDoubleDoubleByFloat64,
  doubleDouble,
  multiplyDoubleDouble,
  type DoubleDouble,
} from '../../arith/index.js';
import { ln2Words } from '../../../oracles/index.js';
import { libdeviceBinaryLogarithms } from './libdevice-logarithms.js';
import { naturalLogarithms, times, type ValuesOf } from './natural-logarithms.js';

/** What the LSE of a row is made of. */
export interface LseParts {
  /** log2 Σ 2^exponent; ±∞ where no sum is behind it. */
  readonly octaves: DoubleDouble;
  /** The largest exponent of a key, in octaves and by the exact scale in natural units; null where the LSE has no finite sum. */
  readonly largest: { readonly octaves: DoubleDouble; readonly natural: DoubleDouble } | null;
  /** Σ 2^(exponent − largest), with the sink where the LSE has it. */
  readonly sum: DoubleDouble;
}

/** A way in which kernels make the LSE of a row: the values that it may have, of which one is near. */
export interface LseForm {
  readonly base: 'e' | '2';
  readonly name: string;
  /** Whether it is the exact LSE, where the factor of q·k is. */
  readonly isIdeal: boolean;
  readonly valuesOf: (parts: LseParts) => readonly DoubleDouble[];
}

/** The logarithm of the sum in octaves times a constant: the row's maximum has the same constants, and cancels. */
function ofOctaves(
  base: LseForm['base'],
  name: string,
  unit: DoubleDouble,
  isIdeal: boolean,
): LseForm {
  const valuesOf = ({ octaves }: LseParts) => [
    Number.isFinite(octaves.high) ? multiplyDoubleDouble(octaves, unit) : octaves,
  ];
  return { base, name, isIdeal, valuesOf };
}

/** A part of an LSE. */
interface Part<T> {
  readonly name: string;
  readonly of: ValuesOf<T>;
}

type Largest = NonNullable<LseParts['largest']>;

/** The row's maximum in natural units, by constants of its own. */
function maxima(scale: number, what: string, rounded: DoubleDouble): readonly Part<Largest>[] {
  const single = Math.fround(scale);
  const ratio = divideDoubleDoubleByFloat64(doubleDouble(single), scale);
  const byScale: ValuesOf<Largest> = ({ natural }) => [natural];
  const byFactor: ValuesOf<Largest> = ({ octaves }) => [octaves];
  return [
    { name: `max·${what}`, of: byScale },
    ...(single === scale ? [] : [{ name: `max·fp32(${what})`, of: times(byScale, ratio) }]),
    { name: 'max·factor·ln 2', of: times(byFactor, ln2Words()) },
    { name: 'max·factor·fp32(ln 2)', of: times(byFactor, rounded) },
  ];
}

/** The sum of a maximum and a logarithm. */
function sumOf(
  base: LseForm['base'],
  maximum: Part<Largest>,
  logarithm: Part<DoubleDouble>,
): LseForm {
  return {
    base,
    name: `${maximum.name} + ${logarithm.name}`,
    isIdeal: false,
    valuesOf: ({ octaves, largest, sum }) =>
      largest === null
        ? [octaves]
        : maximum
            .of(largest)
            .flatMap((part) => logarithm.of(sum).map((other) => addDoubleDouble(part, other))),
  };
}

/**
 * The forms of kernels, simple ones first: a logarithm in octaves times a constant, and a maximum with a logarithm of its own, `logf`
 * and `log2f` those of libdevice.
 * @param scale what scores are multiplied by last: the problem's scale, or its softcap
 * @param what its name
 */
export function lseForms(scale: number, what = 'scale'): readonly LseForm[] {
  const rounded = doubleDouble(Math.fround(Math.LN2));
  const apart = maxima(scale, what, rounded).flatMap((maximum) =>
    naturalLogarithms().map((logarithm) => sumOf('e', maximum, logarithm)),
  );
  const binary = sumOf(
    '2',
    { name: 'max·factor', of: ({ octaves }) => [octaves] },
    { name: 'log2f', of: libdeviceBinaryLogarithms },
  );
  return [
    ofOctaves('e', 'ln 2', ln2Words(), true),
    ofOctaves('2', '1', doubleDouble(1), true),
    ofOctaves('e', 'fp32(ln 2)', rounded, false),
    ...apart,
    binary,
  ];
}
