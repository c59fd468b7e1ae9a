import { doubleDouble } from '../../arith/index.js';
import {
  namedLogarithms,
  naturalLogarithms,
  type NamedFactor,
  type NaturalLogarithm,
} from '../contracts/index.js';
import {
  recurrentFamilies,
  type RecurrentLaw,
  type RecurrentProblem,
} from '../../problem/index.js';

/** What a kernel takes for the constants of a recurrence. */
export interface RecurrentConstants {
  /** The log2 e of decays 2^(g · log2 e), and of all else that is a power of e; null where nothing is. */
  readonly logarithm: NamedFactor | null;
  /** The logarithm of the softplus of gates that the kernel makes; null where it makes none. */
  readonly softplus: NaturalLogarithm | null;
  /** The ε of normalised queries and keys; null where they are not normalised. */
  readonly epsilon: NamedFactor | null;
}

/** Whether decays come from gates. */
export function hasGates({ family }: Pick<RecurrentProblem, 'family'>): boolean {
  const { decay }: RecurrentLaw = recurrentFamilies[family];
  return decay === 'by-head' || decay === 'by-key-dimension';
}

/** Whether a kernel takes powers of e: for decays whose gates are not of base 2, or for write strengths that it makes. */
function hasPowers(problem: RecurrentProblem): boolean {
  return (hasGates(problem) && problem.gateBase !== 2) || problem.strengthLogits !== undefined;
}

function named(name: string, value: number): NamedFactor {
  return { name, value: doubleDouble(value) };
}

/** The constants that a correct kernel may have, the exact ones first. */
export function possibleConstants(problem: RecurrentProblem): readonly RecurrentConstants[] {
  const { normalisation } = problem;
  const logarithms = hasPowers(problem) ? namedLogarithms() : [null];
  const softpluses = problem.gateInputs === undefined ? [null] : naturalLogarithms();
  const epsilons =
    normalisation === undefined
      ? [null]
      : [named('ε', normalisation.epsilon), named('fp32(ε)', Math.fround(normalisation.epsilon))];
  return epsilons.flatMap((epsilon) =>
    logarithms.flatMap((logarithm) =>
      softpluses.map((softplus) => ({ logarithm, softplus, epsilon })),
    ),
  );
}

/** The factors that an output may have, the exact one first. */
export function possibleScales(scale: number): readonly NamedFactor[] {
  return [named('scale', scale), named('fp32(scale)', Math.fround(scale))];
}

/** Constants in words: `2^(fp32(log2 e)·g) and scale`. */
export function constantsText(
  { logarithm, softplus, epsilon }: RecurrentConstants,
  scale: string | null,
): string {
  const parts = [
    ...(logarithm === null ? [] : [`2^(${logarithm.name}·g)`]),
    ...(softplus === null ? [] : [`softplus by ${softplus.name}`]),
    ...(epsilon === null ? [] : [epsilon.name]),
    ...(scale === null ? [] : [scale]),
  ];
  return parts.length === 0 ? 'exact constants' : parts.join(' and ');
}

/** The scale of a problem: 1/√(key dimension), if it has none of its own. */
export function scaleOf({ scale }: RecurrentProblem, keyDim: number): number {
  return scale ?? 1 / Math.sqrt(keyDim);
}
