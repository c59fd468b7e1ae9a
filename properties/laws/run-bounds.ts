import type { AttentionReference } from '../../oracles/index.js';
import {
  anyKernelArithmetic,
  elementBounds,
  KernelBound,
  outputRounding,
  resolvePremises,
  type KernelArithmetic,
  type Premises,
} from '../../src/audit/index.js';
import type { FormatName } from '../../src/formats/index.js';
import type { ProblemPromises } from './kernel-under-test.js';
import type { KernelRun } from './law.js';

/** What is admitted of any correct kernel on a run's problem, in numbers, with what it promises of itself. */
export function admittedPremises(
  { problem, outputs }: Pick<KernelRun, 'problem' | 'outputs'>,
  { premises }: Pick<ProblemPromises, 'premises'>,
): Premises {
  return resolvePremises(problem, outputs.out.format, premises(problem));
}

/** What is admitted of any correct kernel on a run's problem, as coarse as it is promised to be. */
export function admittedArithmetic(
  run: Pick<KernelRun, 'problem' | 'outputs'>,
  promises: Pick<ProblemPromises, 'premises'>,
): KernelArithmetic {
  const premises = admittedPremises(run, promises);
  return anyKernelArithmetic(run.problem, run.outputs.out.format, premises);
}

/** How far a run of any correct kernel may be from exact attention; ∞ where nothing is known. */
export interface RunBounds {
  /** [batch, heads, queries, vDim] */
  readonly out: Float64Array;
  /** [batch, heads, queries], natural logarithm. */
  readonly lse: Float64Array;
}

/**
 * What storing a number in a format may move it by that is known to within `error`: half an ulp, or a
 * whole one where it is not rounded to nearest; ∞ for NaN.
 */
export function storingError(
  format: FormatName,
  value: number,
  error: number,
  rounding: KernelArithmetic['outputRounding'] = 'nearest',
): number {
  if (Number.isNaN(value) || Number.isNaN(error)) return Infinity;
  return outputRounding(format, value, error, rounding);
}

/**
 * The bounds of a run, the roundings of what it stored and the reference's own radii included.
 * @param reference the exact attention of the run's problem
 */
export function runBounds(
  { problem, outputs }: Pick<KernelRun, 'problem' | 'outputs'>,
  reference: AttentionReference,
  promises: Pick<ProblemPromises, 'premises'>,
): RunBounds {
  const { format } = outputs.out;
  const arithmetic = admittedArithmetic({ problem, outputs }, promises);
  const premises = new KernelBound(
    problem,
    reference,
    format,
    admittedPremises({ problem, outputs }, promises),
  );
  const {
    quantities: {
      out: { total },
      lse,
    },
  } = elementBounds(problem, reference, arithmetic, premises);
  const stored = outputs.lse?.format ?? null;
  return {
    out: total,
    lse: lse.total.map((bound, row) =>
      stored === null
        ? bound
        : bound + storingError(stored, reference.quantities.lse.values[row], bound),
    ),
  };
}
