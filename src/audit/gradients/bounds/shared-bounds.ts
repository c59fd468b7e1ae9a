import type { SharedGradients } from '../../../../oracles/index.js';
import type { FormatName } from '../../../formats/index.js';
import type { Problem, ProblemShape } from '../../../problem/index.js';
import { createBiasBound, type BiasBound } from './bias-bound.js';
import type { GradientPremises } from './gradient-premises.js';
import type { GradientTechniqueBound } from './group-bounds.js';
import { pairArithmetic } from './pair-arithmetic.js';
import { createSinkBound, type SinkBound } from './sink-bound.js';

/** Formats that the gradients of a bias and of sinks are stored in; null for those that are not judged. */
export interface SharedFormats {
  readonly dbias: FormatName | null;
  readonly dsink: FormatName | null;
}

/** Bounds of the gradients that the heads of all groups add to, while the groups are bounded. */
export interface SharedBounds {
  readonly sink: SinkBound | null;
  readonly bias: BiasBound | null;
  /** The bounds of the oracle's gradients, once all groups are bounded. */
  readonly finish: (
    exact: SharedGradients,
  ) => Readonly<Record<'dbias' | 'dsink', GradientTechniqueBound | null>>;
}

/** Starts the bounds of those of these gradients that a problem has. */
export function createSharedBounds(
  problem: Problem,
  shape: ProblemShape,
  premises: GradientPremises,
  { dbias, dsink }: SharedFormats,
): SharedBounds {
  const arithmetic = pairArithmetic(problem, shape, premises);
  const made = { premises, arithmetic };
  const sink =
    dsink === null || problem.sink === undefined
      ? null
      : createSinkBound(problem, problem.sink.logits, shape, made, dsink);
  const bias =
    dbias === null || problem.bias === undefined
      ? null
      : createBiasBound(problem, problem.bias, shape, made, dbias);
  return {
    sink,
    bias,
    finish: (exact) => ({
      dbias: exact.dbias === null ? null : (bias?.finish(exact.dbias) ?? null),
      dsink: exact.dsink === null ? null : (sink?.finish(exact.dsink) ?? null),
    }),
  };
}
