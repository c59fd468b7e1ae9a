import type { AttentionReference } from '../../oracles/index.js';
import { elementBounds, KernelBound } from '../../src/audit/index.js';
import { formats, ulp, type FormatName } from '../../src/formats/index.js';
import type { KernelRun } from '../suite/law.js';
import type { ResolvedPromises } from '../suite/promises.js';
import { admittedArithmetic } from './admitted-arithmetic.js';

/** How far a run of any correct kernel may be from exact attention; ∞ where nothing is known. */
export interface RunBounds {
  /** [batch, heads, queries, vDim] */
  readonly out: Float64Array;
  /** [batch, heads, queries], natural logarithm. */
  readonly lse: Float64Array;
}

/** What storing a number in a format may move it by that is known to within `error`: half an ulp. */
export function storingError(format: FormatName, value: number, error: number): number {
  const table = formats[format];
  const reach = Math.abs(value) + error;
  return Number.isNaN(reach) ? Infinity : ulp(table, Math.min(reach, table.maxFinite)) / 2;
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
  const premises = new KernelBound(problem, reference, format, promises.premises?.(problem));
  const { total, lse } = elementBounds(problem, reference, arithmetic, premises);
  const stored = outputs.lse?.format ?? null;
  return {
    out: total,
    lse: lse.total.map((bound, row) =>
      stored === null ? bound : bound + storingError(stored, reference.lse[row]!, bound),
    ),
  };
}
