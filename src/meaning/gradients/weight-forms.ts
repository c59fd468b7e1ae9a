import {
  addDoubleDouble,
  divideDoubleDouble,
  divideDoubleDoubleByFloat64,
  doubleDouble,
  multiplyDoubleDouble,
  multiplyDoubleDoubleByFloat64,
  subtractDoubleDouble,
  type DoubleDouble,
} from '../../arith/index.js';
import { log2eWords } from '../../../oracles/index.js';
import type { Problem } from '../../problem/index.js';
import { factorRatio, namedFactors, power, scaledExponent, weighRow } from '../contracts/index.js';
import type { GradientRow } from './gradient-row.js';

/** The weights of a row's keys, P before dropout. */
type WeightsOf = (row: GradientRow) => (j: number) => DoubleDouble;

/** A way in which kernels make P of a row. */
export interface WeightForm {
  readonly name: string;
  readonly weightsOf: WeightsOf;
}

const zero = doubleDouble(0);

/** P = 2^(ratio·score·log2 e) over its sum, with the sink. */
function softmaxOf(ratio: DoubleDouble | null): WeightsOf {
  return ({ exponents }) => {
    const { weights, divisor } = weighRow(exponents, ratio);
    if (divisor === null) return () => zero;
    return (j) => divideDoubleDouble(weights[j], divisor);
  };
}

/** P = 2^(ratio·score·log2 e − LSE·unit). */
function ofLse(ratio: DoubleDouble | null, unit: DoubleDouble): WeightsOf {
  return ({ exponents: { exponents, origin }, lse }) => {
    const above = subtractDoubleDouble(
      scaledExponent(multiplyDoubleDouble(origin, log2eWords()), ratio),
      multiplyDoubleDoubleByFloat64(unit, lse ?? NaN),
    );
    return (j) => power(addDoubleDouble(scaledExponent(exponents[j], ratio), above));
  };
}

/** The exact softmax. */
export const idealWeights: WeightForm = { name: 'softmax', weightsOf: softmaxOf(null) };

/** The octaves of a unit of the LSE, by how they are written behind it. */
function lseUnits(): readonly (readonly [string, DoubleDouble])[] {
  return [
    ['lse·log2 e', log2eWords()],
    ['lse·fp32(log2 e)', doubleDouble(Math.fround(Math.LOG2E))],
    ['lse·1.44269504', doubleDouble(1.44269504)],
    ['lse·1.4426950408889634', doubleDouble(1.4426950408889634)],
    ['lse of base 2', doubleDouble(1)],
  ];
}

/** Those of a list whose values are not those of an earlier one. */
function distinct<T extends { readonly value: DoubleDouble }>(list: readonly T[]): readonly T[] {
  return list.filter(
    ({ value }, i) =>
      list.findIndex((one) => one.value.high === value.high && one.value.low === value.low) === i,
  );
}

/**
 * The forms of P that a kernel may have: of a given LSE first, and of sums of its own.
 * @param hasLse whether an LSE is given
 */
export function weightForms(problem: Problem, hasLse: boolean): readonly WeightForm[] {
  const factors = distinct(namedFactors(problem.scale)).map(({ name, value }) => ({
    name,
    ratio: factorRatio(problem, value),
  }));
  const given = factors.flatMap(({ name, ratio }) =>
    lseUnits().map(([unitName, unit]) => ({
      name: `2^(${name}·q·k − ${unitName})`,
      weightsOf: ofLse(ratio, unit),
    })),
  );
  const own = factors.map(({ name, ratio }) => ({
    name: `2^(${name}·q·k) ÷ its sum`,
    weightsOf: softmaxOf(ratio),
  }));
  return hasLse ? [...given, ...own] : own;
}

/** Where the δ of dS = P∘(dP − δ) comes from. */
export const deltaSources = ['delta as given', 'Σ dO·O of the given O', 'Σ P·dP'] as const;

/** One of them. */
export type DeltaSource = (typeof deltaSources)[number];

/** The factor of weights that dropout keeps, by how it is written. */
export interface KeptFactor {
  readonly name: string;
  readonly value: DoubleDouble;
}

/** 1 ÷ (1 − p) exactly and rounded to fp32; one factor of 1 without dropout. */
export function keptFactors({ dropout }: Problem): readonly KeptFactor[] {
  if (dropout === undefined || dropout.probability === 0)
    return [{ name: '', value: doubleDouble(1) }];
  const share = 1 - dropout.probability;
  return [
    { name: 'kept ÷ (1 − p)', value: divideDoubleDoubleByFloat64(doubleDouble(1), share) },
    { name: 'kept·fp32(1 ÷ (1 − p))', value: doubleDouble(Math.fround(1 / share)) },
  ];
}
