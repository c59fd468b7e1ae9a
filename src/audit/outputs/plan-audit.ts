import { WorkingMemories, type Accuracy } from '../../../oracles/index.js';
import type { FormatName } from '../../formats/index.js';
import { problemShape, type Problem } from '../../problem/index.js';
import { anyKernelArithmetic, type KernelArithmetic } from '../bounds/index.js';
import { decodeOutputs, type GivenOutputs, type KernelOutputs } from '../kernel-outputs.js';
import type { AuditPlan } from '../parts/audit-plan.js';
import type { PartTensors } from '../parts/measure-part.js';
import { planParts } from '../parts/part-plan.js';
import { thinnedShape } from '../parts/thinning.js';
import type { Premises } from '../premises/premises.js';
import { resolvePremises } from '../premises/resolve-premises.js';
import { planKeyTiles } from '../structure/key-tile-plan.js';
import { structureLimits } from '../structure/structure-entries.js';
import { usualFalseAlarmRate } from '../conduct/contract.js';
import type { AuditOptions } from './audit-options.js';

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

/** A problem whose keys are not in memory, with the means to read a head of it. */
export interface HeadSource {
  /** All rows of a head, counted over [batch, heads], as a problem of their own. */
  readonly readHead: (head: number) => Promise<PartTensors>;
}

/** An audit that is about to be made. */
export interface PreparedAudit {
  readonly problem: Problem;
  readonly given: GivenOutputs;
  /** Names of the kernel's other outputs: names of no quantity that is judged. */
  readonly unjudged: readonly string[];
  readonly options: AuditOptions;
  readonly plan: AuditPlan;
  /** Where the keys are; null where they are in memory. */
  readonly source: HeadSource | null;
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
 * @param source the keys of the problem where they are not in memory
 */
export function planAudit(
  problem: Problem,
  { given, unjudged }: DecodedOutputs,
  options: AuditOptions,
  withYardstick: boolean,
  source: HeadSource | null = null,
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
  // One memory for the measurements and for who explains a failure.
  const { memories = new WorkingMemories() } = options;
  return { problem, given, unjudged, options: { ...options, memories }, plan, source };
}
