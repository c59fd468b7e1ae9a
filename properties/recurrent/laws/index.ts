import {
  configurations,
  gradientsDeterminism,
  gradientsWithinBound,
  handedOverState,
  neutralGates,
  overwriting,
  recall,
  sequencesAlone,
  tokenByToken,
  withinBound,
} from './bound-laws.js';
import {
  forgetting,
  gradientsLinear,
  gradientsUnseen,
  keyScaling,
  valueScaling,
  zeroState,
  zeroStrength,
} from './exact-laws.js';
import {
  causality,
  columnsIndependent,
  determinism,
  gradientsHeads,
  headsIndependent,
  nanContainment,
} from './independence-laws.js';
import type { RecurrentLawOfKernels } from './law.js';
import { longStep, skipOfZeros, zeroStep } from './mamba2-laws.js';
import { superposition } from './superposition.js';

export type {
  RecurrentCase,
  RecurrentConfiguration,
  RecurrentKernel,
  RecurrentLawOfKernels,
  RecurrentLawPromises,
  RecurrentLawTools,
  RecurrentNumbers,
  RecurrentRun,
} from './law.js';

/** The laws of recurrences by id, in the order in which they are tried. */
export const recurrentLaws = {
  'within-bound': withinBound,
  determinism,
  causality,
  'heads-independent': headsIndependent,
  'columns-independent': columnsIndependent,
  'nan-containment': nanContainment,
  'value-scaling': valueScaling,
  'key-scaling': keyScaling,
  'zero-strength': zeroStrength,
  forgetting,
  'zero-state': zeroState,
  'handed-over-state': handedOverState,
  'token-by-token': tokenByToken,
  'sequences-alone': sequencesAlone,
  recall,
  overwriting,
  'neutral-gates': neutralGates,
  configurations,
  'gradients-within-bound': gradientsWithinBound,
  'gradients-determinism': gradientsDeterminism,
  'gradients-heads': gradientsHeads,
  'gradients-linear': gradientsLinear,
  'gradients-unseen': gradientsUnseen,
  superposition,
  'zero-step': zeroStep,
  'long-step': longStep,
  'skip-alone': skipOfZeros,
} as const satisfies Readonly<Record<string, RecurrentLawOfKernels>>;

/** The name of a law of recurrences. */
export type RecurrentLawId = keyof typeof recurrentLaws;

/** The names of all laws of recurrences. */
export const recurrentLawIds = Object.keys(recurrentLaws) as RecurrentLawId[];

/** A law by name, with all that it may have. */
export function recurrentLaw(id: RecurrentLawId): RecurrentLawOfKernels {
  return recurrentLaws[id];
}
