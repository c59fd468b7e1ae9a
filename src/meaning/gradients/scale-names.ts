import {
  divideDoubleDouble,
  doubleDouble,
  multiplyDoubleDouble,
  roundSumToFloat32,
  type DoubleDouble,
} from '../../arith/index.js';
import { ln2Words } from '../../../oracles/index.js';
import {
  namedFactors,
  nameTolerance,
  relativeDistance,
  type NamedFactor,
} from '../contracts/index.js';

/**
 * The values that the factor behind Σ dS·K and Σ dS·Q may have, the exact one first: the scale, and the factor of q·k with a ln 2
 * that takes its log2 e back.
 */
export function namedScales(scale: number): readonly NamedFactor[] {
  const plain = [
    { name: 'scale', value: doubleDouble(scale) },
    { name: 'fp32(scale)', value: doubleDouble(Math.fround(scale)) },
  ];
  const logarithms = [
    ['ln 2', ln2Words()],
    ['fp32(ln 2)', doubleDouble(Math.fround(Math.LN2))],
  ] as const;
  const products = namedFactors(scale).flatMap((factor) =>
    logarithms.map(([name, value]) => ({
      name: `${factor.name}·${name}`,
      value: multiplyDoubleDouble(factor.value, value),
    })),
  );
  const rounded = products.map(({ name, value }) => ({
    name: `fp32(${name})`,
    value: doubleDouble(roundSumToFloat32(value.high, value.low, 'nearest-even')),
  }));
  return [...plain, ...products, ...rounded];
}

/** The factor behind a gradient. */
export interface InferredScale {
  readonly value: DoubleDouble;
  /** How it comes about, by `namedScales`; null for none of these. */
  readonly name: string | null;
  /** value / scale − 1; null for a scale of 0. */
  readonly fromExact: number | null;
}

/** A factor with its name, as its name has it where it has one. */
export function nameScale(value: DoubleDouble, scale: number): InferredScale {
  const named = namedScales(scale).find(
    (one) => Math.abs(relativeDistance(value, one.value)) <= nameTolerance,
  );
  const known = named?.value ?? value;
  const ratio = divideDoubleDouble(known, doubleDouble(scale));
  return {
    value: known,
    name: named?.name ?? null,
    fromExact: scale === 0 ? null : relativeDistance(ratio, doubleDouble(1)),
  };
}
