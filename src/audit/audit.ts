import type { Problem } from '../problem/index.js';
import { usualChecks, type Baselines } from './baselines.js';
import type { AuditOptions } from './conduct/audit-options.js';
import { conclude, type Judgement, type KnownCause } from './conduct/conclude.js';
import { explainByHead, type HeadSource } from './conduct/explain-by-head.js';
import {
  boundsVisitorOf,
  decoded,
  measureBeside,
  measureHere,
  planAudit,
  type PreparedAudit,
} from './conduct/plan-audit.js';
import { profileError, type ErrorProfile } from './error-profile.js';
import type { JudgedNumbers, JudgedVectors } from './judge-quantity.js';
import { compareQuantity, type KernelOutputs } from './kernel-outputs.js';
import { auditStages, type Measured } from './parts/audit-stages.js';
import type { PartSettings } from './parts/measure-part.js';
import { runStagesBy, type PartRunner } from './parts/run-stages.js';
import { thinnedReference, thinnedValues } from './parts/thinning.js';
import { createRowLocator, placed } from './rows/index.js';

/** A judged quantity of vectors, with the profile of its error. */
export interface AuditedVectors extends JudgedVectors {
  readonly error: ErrorProfile;
}

/** All outputs of a kernel, judged, by quantity; null for those that it does not give. */
export interface AuditedOutputs {
  readonly out: AuditedVectors;
  readonly lse: JudgedNumbers | null;
  readonly [name: string]: AuditedVectors | JudgedNumbers | null | undefined;
}

/** The whole judgement of a kernel's outputs. */
export interface Audit extends Omit<Judgement, 'reference' | 'outputs'> {
  readonly outputs: AuditedOutputs;
  readonly baselines: Baselines;
}

/**
 * Judges the outputs of a kernel, O and the LSE if it gives one, against the oracle: worst-case bound on
 * every element, sums of independent roundings, structure tests, LSE.
 * @throws RequestError when a tensor does not fit the problem.
 */
export function judgeOutputs(
  problem: Problem,
  outputs: KernelOutputs,
  options: AuditOptions = {},
): Judgement {
  const prepared = planAudit(problem, decoded(problem, outputs, options), options, false);
  return conclude(prepared, measureHere(prepared));
}

/**
 * Judges outputs as `judgeOutputs`, and adds the error profiles and the results of the usual checks.
 * @throws RequestError when a tensor does not fit the problem.
 */
export function auditOutputs(
  problem: Problem,
  outputs: KernelOutputs,
  options: AuditOptions = {},
): Audit {
  const prepared = planAudit(problem, decoded(problem, outputs, options), options, true);
  return audited(prepared, measureHere(prepared));
}

/** Starts a runner that measures parts by these settings; null where this thread is to measure them. */
export type StartParts = (
  settings: PartSettings,
  parts: number,
) => (PartRunner & { readonly close: () => Promise<void> }) | null;

/** Other threads that measure parts of an audit. */
export interface AuditThreads {
  /** Starts a runner for problems of several parts. */
  readonly start: StartParts;
  /**
   * Starts a runner for a problem of one part: it measures some of it while this thread measures the rest; null where this thread
   * does all.
   */
  readonly beside?: (settings: PartSettings) => PartRunner | null;
}

/**
 * Judges outputs as `auditOutputs`, its parts measured somewhere else: the report is the same. A problem of one part is
 * measured here, with the help of `beside` where it is given.
 * @throws RequestError when a tensor does not fit the problem.
 */
export async function auditOutputsApart(
  problem: Problem,
  outputs: KernelOutputs,
  options: AuditOptions,
  { start, beside }: AuditThreads,
  source: HeadSource | null = null,
): Promise<Audit> {
  const prepared = planAudit(problem, decoded(problem, outputs, options), options, true);
  const { settings, parts } = prepared.plan;
  const isHere = parts.length === 1 && source === null;
  const helper = isHere ? (beside?.(settings) ?? null) : null;
  if (helper !== null) return audited(prepared, await measureBeside(prepared, helper));
  const runner = isHere ? null : start(settings, parts.length);
  if (runner === null) return audited(prepared, measureHere(prepared));
  const { progress = () => undefined, onReference } = options;
  const stages = auditStages(prepared.plan, onReference);
  try {
    const visitor = boundsVisitorOf(prepared);
    const measured = await runStagesBy(runner, stages, visitor, progress);
    if (source === null || options.diagnose === false) return audited(prepared, measured);
    const unexplained = conclude(prepared, measured, { explainers: null });
    const { pass, judged } = unexplained.verdict;
    return pass || !judged
      ? audited(prepared, measured, { explainers: null })
      : audited(prepared, measured, await explainByHead(prepared, unexplained, source));
  } finally {
    await runner.close();
  }
}

/** A judgement with the error profiles and the results of the usual checks. */
function audited(prepared: PreparedAudit, measured: Measured, known?: KnownCause): Audit {
  const { problem } = prepared;
  const { reference, outputs: judged, ...judgement } = conclude(prepared, measured, known);
  const locator = createRowLocator(problem, reference.shape);
  const profiled = Object.entries(judged).map(([name, one]) => {
    if (one?.row !== 'vector') return [name, one ?? null] as const;
    const error = profileError(compareQuantity(reference, one));
    const worst = locator === null ? error.worst : placed(error.worst, locator);
    return [name, { ...one, error: { ...error, worst } }] as const;
  });
  const { values, format } = judged.out;
  const { thinning } = prepared.plan.settings;
  return {
    ...judgement,
    outputs: Object.fromEntries(profiled) as AuditedOutputs,
    baselines: usualChecks(problem, reference, values, format, {
      lowPrecision: measured.yardstick!,
      ...(thinning !== null && {
        reference: thinnedReference(reference, thinning),
        out: thinnedValues(values, reference.shape, reference.shape.vDim, thinning),
      }),
    }),
  };
}
