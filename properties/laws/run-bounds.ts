import type { AttentionReference } from '../../oracles/index.js';
import {
  elementBounds,
  KernelBound,
  outputRounding,
  type KernelArithmetic,
} from '../../src/audit/index.js';
import type { FormatName } from '../../src/formats/index.js';
import type { KernelRun } from '../suite/law.js';
import type { ResolvedPromises } from '../suite/promises.js';
import { admittedArithmetic, admittedPremises } from './admitted-arithmetic.js';

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
  promises: Pick<ResolvedPromises, 'premises'>,
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
