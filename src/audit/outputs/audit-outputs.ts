import type { Problem } from '../../problem/index.js';
import { usualChecks, type Baselines } from '../baselines.js';
import { conduct, conductApart, type Contract } from '../conduct/contract.js';
import type { Crew } from '../conduct/stage.js';
import { profileError, type ErrorProfile } from '../error-profile.js';
import type { JudgedNumbers, JudgedVectors } from '../judge-quantity.js';
import { compareQuantity, type KernelOutputs } from '../kernel-outputs.js';
import type { Measured, OutputMeasurements } from '../parts/audit-plan.js';
import { quantisedInputs } from '../premises/quantised-inputs.js';
import { thinnedReference, thinnedValues } from '../parts/thinning.js';
import { createRowLocator, placed } from '../rows/index.js';
import type { AuditOptions } from './audit-options.js';
import { outputContract, type Judgement, type OutputTerms } from './output-contract.js';
import { outputStages } from './output-stages.js';
import { decoded, planAudit, type HeadSource, type PreparedAudit } from './plan-audit.js';

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
 * Plans an audit of the problem that the kernel multiplies: the given one, or where it quantises its inputs itself, as it declares,
 * the quantised one.
 */
function prepare(
  problem: Problem,
  outputs: KernelOutputs,
  options: AuditOptions,
  withYardstick: boolean,
  source: HeadSource | null = null,
): PreparedAudit {
  const multiplied = quantisedInputs(problem, options.premises);
  const { reference, ...others } = options;
  // Exact attention of the given problem is none of the quantised one.
  const isKnown = multiplied === problem && reference !== undefined;
  const own = isKnown ? { ...others, reference } : others;
  return planAudit(multiplied, decoded(multiplied, outputs, own), own, withYardstick, source);
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
  const prepared = prepare(problem, outputs, options, false);
  return conduct(outputContract, prepared, options.progress);
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
  const prepared = prepare(problem, outputs, options, true);
  return conduct(auditContract, prepared, options.progress);
}

/**
 * Judges outputs as `auditOutputs`, its parts measured somewhere else: the report is the same. A problem of one part is
 * measured here, with the help of `crew.beside` where it is given.
 * @throws RequestError when a tensor does not fit the problem.
 */
export async function auditOutputsApart(
  problem: Problem,
  outputs: KernelOutputs,
  options: AuditOptions,
  crew: Crew<OutputMeasurements>,
  source: HeadSource | null = null,
): Promise<Audit> {
  const prepared = prepare(problem, outputs, options, true, source);
  return conductApart(auditContract, prepared, crew, options.progress);
}

/** A judgement with the error profiles and the results of the usual checks. */
function audited(
  { problem, plan }: PreparedAudit,
  measured: Measured,
  { reference, outputs: judged, ...judgement }: Judgement,
): Audit {
  const locator = createRowLocator(problem, reference.shape);
  const profiled = Object.entries(judged).map(([name, one]) => {
    if (one?.row !== 'vector') return [name, one ?? null] as const;
    const error = profileError(compareQuantity(reference, one));
    const worst = locator === null ? error.worst : placed(error.worst, locator);
    return [name, { ...one, error: { ...error, worst } }] as const;
  });
  const { values, format } = judged.out;
  const { thinning } = plan.settings;
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

/** The types of the contract of outputs, with what an audit adds to a judgement. */
interface AuditTerms extends Omit<OutputTerms, 'result'> {
  readonly result: Audit;
}

/** The contract of outputs, with what an audit adds to a judgement. */
const auditContract: Contract<AuditTerms> = {
  stages: outputStages,
  judge: (prepared, measured) => {
    const { result, ...judged } = outputContract.judge(prepared, measured);
    return { ...judged, result: (...of) => audited(prepared, measured, result(...of)) };
  },
};
