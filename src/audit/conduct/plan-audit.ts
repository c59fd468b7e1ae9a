import { WorkingMemories, type Accuracy } from '../../../oracles/index.js';
import type { FormatName } from '../../formats/index.js';
import { problemShape, type Problem } from '../../problem/index.js';
import { anyKernelArithmetic, type KernelArithmetic } from '../bounds/index.js';
import { decodeOutputs, type GivenOutputs, type KernelOutputs } from '../kernel-outputs.js';
import { auditStages, type Measured } from '../parts/audit-stages.js';
import type { AuditPlan } from '../parts/audit-plan.js';
import { firstRowOf, planParts, type Part } from '../parts/part-plan.js';
import { partTensors, visitInWhole } from '../parts/part-tensors.js';
import { runStages, type LocalParts, type PartRunner } from '../parts/run-stages.js';
import { runStagesBeside } from '../parts/run-stages-beside.js';
import { thinnedShape } from '../parts/thinning.js';
import type { Premises } from '../premises/premises.js';
import { resolvePremises } from '../premises/resolve-premises.js';
import { planKeyTiles } from '../structure/key-tile-plan.js';
import { structureLimits } from '../structure/structure-entries.js';
import { usualFalseAlarmRate, type AuditOptions } from './audit-options.js';

/** The audit's oracle: a radius of 2^-40 of Σ p|v|, far below any bound it is compared with. */
export function auditAccuracy(outputFormat: FormatName): Accuracy {
  return { outputFormat, ulpFraction: 0, magnitudeFraction: 2 ** -40 };
}

/** The arithmetic that a kernel is taken to have: as declared, else as its premises admit. */
function judgedArithmetic(
  problem: Problem,
  outputFormat: FormatName,
  premises: Premises,
  { arithmetic }: AuditOptions,
): KernelArithmetic {
  const { outputRounding } = premises;
  return arithmetic === undefined
    ? anyKernelArithmetic(problem, outputFormat, premises)
    : { ...arithmetic, outputFormat, outputRounding };
}

/** An audit that is about to be made. */
export interface PreparedAudit {
  readonly problem: Problem;
  readonly given: GivenOutputs;
  /** Names of the kernel's other outputs: names of no quantity that is judged. */
  readonly unjudged: readonly string[];
  readonly options: AuditOptions;
  readonly plan: AuditPlan;
}

/** Whether rows are judged by maxima that they have in common with others. */
function sharesMaximum({ maximum }: KernelArithmetic, premises: Premises): boolean {
  return premises.maximum === 'group' || (maximum.kind === 'unknown' && maximum.shared === 'group');
}

/** Outputs of a kernel, decoded, and the names of those that are not judged. */
type DecodedOutputs = Pick<PreparedAudit, 'given' | 'unjudged'>;

/**
 * Decodes the outputs of a kernel.
 * @throws RequestError as `decodeOutputs`
 */
export function decoded(
  problem: Problem,
  outputs: KernelOutputs,
  { quantities }: AuditOptions,
): DecodedOutputs {
  const given = decodeOutputs(outputs, problemShape(problem), quantities);
  const unjudged = Object.entries(outputs)
    .filter(([name, tensor]) => tensor && !Object.hasOwn(given, name))
    .map(([name]) => name);
  return { given, unjudged };
}

/**
 * Plans the measurements of an audit.
 * @param withYardstick whether the usual checks are made, which need textbook attention
 */
export function planAudit(
  problem: Problem,
  { given, unjudged }: DecodedOutputs,
  options: AuditOptions,
  withYardstick: boolean,
): PreparedAudit {
  const shape = options.reference?.shape ?? problemShape(problem);
  const { format } = given.out;
  const premises = resolvePremises(problem, format, options.premises);
  const arithmetic = judgedArithmetic(problem, format, premises, options);
  const isShared = sharesMaximum(arithmetic, premises);
  const parts = planParts(shape, !isShared, options.partEffort);
  const { reference = null, bounds = null, onElements } = options;
  // Parts of more than one head are not thinned: their rows are needed together.
  const isWhole = onElements !== undefined || parts[0]?.head === null;
  const thinning = isWhole ? null : (options.thinning ?? null);
  const { queries } = thinning === null ? shape : thinnedShape(shape, thinning);
  const extent = { heads: shape.batch * shape.heads, queries };
  // Half of the false alarms for the structure tests, half for the spread.
  const limits = structureLimits(extent, (options.falseAlarmRate ?? usualFalseAlarmRate) / 2);
  const allKeyTiles = planKeyTiles(problem, shape, limits.share);
  // Key tiles are tested in blocks of rows, where the maximum of other rows is not known.
  const keyTiles = premises.maximum === 'group' ? { ...allKeyTiles, groups: [] } : allKeyTiles;
  const plan: AuditPlan = {
    shape,
    parts,
    settings: {
      outputFormat: format,
      accuracy: auditAccuracy(format),
      premises,
      arithmetic,
      limits,
      keyTiles: keyTiles.limits,
      thinning,
      rows: onElements === undefined ? null : { maximum: options.arithmetic?.maximum ?? null },
    },
    keyTiles,
    reference,
    bounds,
    withYardstick,
  };
  return { problem, given, unjudged, options, plan };
}

/** The visitor of the bounds of a part. */
export function boundsVisitorOf({ options: { onBounds }, plan: { shape } }: PreparedAudit) {
  return (part: Part) => onBounds && visitInWhole(onBounds, firstRowOf(part, shape));
}

/** Settings and data by which this thread measures parts. */
function localParts(prepared: PreparedAudit): LocalParts {
  const { problem, given, plan, options } = prepared;
  const { shape, settings } = plan;
  return {
    settings,
    read: (part: Part) => partTensors(problem, given, shape, part),
    boundsVisitor: boundsVisitorOf(prepared),
    memories: options.memories ?? new WorkingMemories(),
  };
}

/** Makes the planned measurements in this thread. */
export function measureHere(prepared: PreparedAudit): Measured {
  const { options, plan } = prepared;
  const { progress = () => undefined, onReference } = options;
  return runStages(auditStages(plan, onReference), localParts(prepared), progress);
}

/** Makes the planned measurements in this thread and by a helper at the same time: the results are those of `measureHere`. */
export function measureBeside(prepared: PreparedAudit, helper: PartRunner): Promise<Measured> {
  const { options, plan } = prepared;
  const { progress = () => undefined, onReference } = options;
  const stages = auditStages(plan, onReference);
  return runStagesBeside(helper, stages, localParts(prepared), progress);
}
