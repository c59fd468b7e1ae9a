import {
  divideDoubleDouble,
  divideDoubleDoubleByFloat64,
  doubleDouble,
  multiplyDoubleDoubleByFloat64,
  roundSumToFloat32,
  subtractDoubleDouble,
  type DoubleDouble,
} from '../../arith/index.js';
import { log2eWords } from '../../../oracles/index.js';
import type { RoundingMode } from '../../formats/index.js';
import type { Problem } from '../../problem/index.js';

/** A value of the factor of q·k that a kernel may have, named by how it comes about. */
export interface NamedFactor {
  readonly name: string;
  readonly value: DoubleDouble;
}

/** The relative distance within which a factor has a name. Two fp32 constants are at least 2^-24 apart. */
export const nameTolerance = 1e-25;

/** The log2 e of sources beside the exact one: rounded to fp32, and as literals of double precision. */
const logarithms = [
  ['fp32(log2 e)', Math.fround(Math.LOG2E)],
  ['1.44269504', 1.44269504],
  ['1.4426950408889634', 1.4426950408889634],
] as const;

/** The values that log2 e may have where nothing multiplies it before a power of two is taken, the exact one first. */
export function namedLogarithms(): readonly NamedFactor[] {
  return [
    { name: 'log2 e', value: log2eWords() },
    ...logarithms.map(([name, value]) => ({ name, value: doubleDouble(value) })),
  ];
}

/** The roundings of a product to fp32. */
const roundings = [
  ['fp32', 'nearest-even'],
  ['truncated fp32', 'toward-zero'],
] as const satisfies readonly (readonly [string, RoundingMode])[];

function float32Of({ high, low }: DoubleDouble, rounding: RoundingMode): DoubleDouble {
  return doubleDouble(roundSumToFloat32(high, low, rounding));
}

/**
 * The values that the factor of scores in a base 2 exponent may have for what they are multiplied by last, the scale of q·k or a softcap, the
 * exact one first. Where several are equal (of a scale that is a power of 2), the first one names them all.
 * @param what its name
 */
export function namedFactors(scale: number, what = 'scale'): readonly NamedFactor[] {
  const scales = [
    [what, scale],
    [`fp32(${what})`, Math.fround(scale)],
  ] as const;
  const products = scales.flatMap(([scaleName, one]) => [
    { name: `${scaleName}·log2 e`, value: multiplyDoubleDoubleByFloat64(log2eWords(), one) },
    ...logarithms.map(([name, logarithm]) => ({
      name: `${scaleName}·${name}`,
      value: multiplyDoubleDoubleByFloat64(doubleDouble(logarithm), one),
    })),
  ]);
  const rounded = products.flatMap(({ name, value }) =>
    roundings.map(([format, mode]) => ({
      name: `${format}(${name})`,
      value: float32Of(value, mode),
    })),
  );
  return [...products, ...rounded];
}

/** x / y − 1 to the accuracy of double-double, as fp64. */
export function relativeDistance(x: DoubleDouble, y: DoubleDouble): number {
  return divideDoubleDouble(subtractDoubleDouble(x, y), y).high;
}

/**
 * The named factors of q·k of a problem. Those of a softcap, which multiplies the tanh of what has the scale, count as factors of q·k as well: times
 * scale / softcap.
 */
export function factorsOfProblem({
  scale,
  softcap,
}: Pick<Problem, 'scale' | 'softcap'>): readonly NamedFactor[] {
  if (softcap === null) return namedFactors(scale);
  return namedFactors(softcap, 'softcap').map(({ name, value }) => ({
    name,
    value: divideDoubleDoubleByFloat64(multiplyDoubleDoubleByFloat64(value, scale), softcap),
  }));
}

/** The name of a factor of q·k: that of the first named one within `nameTolerance` of it; null for none. */
export function nameOfFactor(
  factor: DoubleDouble,
  problem: Pick<Problem, 'scale' | 'softcap'>,
): string | null {
  const named = factorsOfProblem(problem).find(
    ({ value }) => Math.abs(relativeDistance(factor, value)) <= nameTolerance,
  );
  return named?.name ?? null;
}
