import { levels, type Accuracy, type AttentionReference } from '../../oracles/index.js';
import { formats, round, type FormatName } from '../formats/index.js';
import { plainText } from '../words/index.js';
import { problemShape, type Problem, type ProblemShape, type Quantity } from '../problem/index.js';
import { usualChecks, type Baselines } from './baselines.js';
import { anyKernelArithmetic, type KernelArithmetic, KernelBound } from './bounds/index.js';
import { diagnose, type Diagnosis } from './diagnosis/index.js';
import type { ElementBounds, RowsBoundVisitor } from './element-bounds.js';
import { profileError, type ErrorProfile } from './error-profile.js';
import {
  judgedQuantities,
  judgeQuantity,
  type JudgedNumbers,
  type JudgedOutputs,
  type JudgedVectors,
} from './judge-quantity.js';
import {
  compareQuantity,
  decodeOutputs,
  type GivenOutputs,
  type GivenQuantity,
  type KernelOutputs,
} from './kernel-outputs.js';
import type { PremiseDeclaration } from '../../kernels/index.js';
import { failingHead } from './failing-head.js';
import { fitPremise } from './premises/premise-fit.js';
import { createRowLocator, locateOutputs } from './rows/index.js';
import { resolvePremises, type Premises } from './premises/premises.js';
import { auditStages, partShape, type AuditPlan, type Measured } from './parts/audit-stages.js';
import type { PartSettings, PartTensors } from './parts/measure-part.js';
import { referenceRows } from './parts/reference-rows.js';
import { firstRowOf, planParts, type Part } from './parts/part-plan.js';
import { partTensors, visitInWhole } from './parts/part-tensors.js';
import { runStages, runStagesBy, type PartRunner } from './parts/run-stages.js';
import type { RowStatistics } from './row-statistics.js';
import { thinnedReference, thinnedShape, thinnedValues, type Thinning } from './parts/thinning.js';
import { isKeyTileTestLeftOut, planKeyTiles } from './structure/key-tile-test.js';
import { structureLimits } from './structure/structure-entries.js';
import { usageBySequence, type SequenceUsage } from './sequence-usage.js';
import { untestedStructure } from './structure/structure-result.js';
import { reachVerdict, type Explainers, type Verdict } from './verdict.js';

/** All that an output is judged by, element by element and row by row. Arrays are not to be changed. */
export interface JudgedElements {
  readonly reference: AttentionReference;
  readonly outputs: GivenOutputs;
  /** Of the arithmetic in use; `total` is what an element is allowed. */
  readonly bounds: ElementBounds;
  readonly rows: RowStatistics;
}

/** By what an audit judges; without any, by what any correct kernel may do. */
export interface AuditOptions {
  /** How the kernel computes, where that is known; default: as any correct kernel may. */
  readonly arithmetic?: KernelArithmetic;
  /**
   * What the kernel declares of its arithmetic; default nothing, so that the bounds are those of any
   * correct kernel. Beside `arithmetic` it says what the statistical tests are to expect.
   */
  readonly premises?: PremiseDeclaration | undefined;
  /** The problem's exact attention, where it is known already (to `auditAccuracy` or better). */
  readonly reference?: AttentionReference;
  /** Called once with the exact values, before any bounds are. */
  readonly onReference?: (reference: AttentionReference) => void;
  /** Called with the bounds of one part of the rows after the other, of the arithmetic in use. */
  readonly onBounds?: RowsBoundVisitor;
  /**
   * The bounds of this very problem, arithmetic, premises and output format, where an audit of another
   * output has them already (see `onElements`); `onBounds` is not called then.
   */
  readonly bounds?: ElementBounds;
  /** Called once with every element and row, before the verdict is reached. */
  readonly onElements?: (judged: JudgedElements) => void;
  /** What is judged of what the kernel gives; default: the quantities that there are. */
  readonly quantities?: readonly Quantity[];
  /** Probability that the statistical tests fail a correct kernel; default 1e-9 per audit. */
  readonly falseAlarmRate?: number;
  /** Whether a failure's cause is looked for, which takes some audits' time; default true. */
  readonly diagnose?: boolean;
  /** Of which rows of a sample the statistics are made; null, the default, for all, as they are with `onElements`. */
  readonly thinning?: Thinning | null;
  /** Multiply-adds that are measured at once; default: those of about a second. Larger problems are divided. */
  readonly partEffort?: number;
  /** Called with the stage's name and the share of it that is done. */
  readonly progress?: (stage: string, done: number) => void;
}

/** What the tests say of a kernel's outputs, without the profile of their errors and what others would say. */
export interface Judgement {
  readonly verdict: Verdict;
  readonly shape: ProblemShape;
  readonly reference: AttentionReference;
  readonly outputs: JudgedOutputs;
  /** The output, sequence by sequence; null without packed sequences. */
  readonly sequences: readonly SequenceUsage[] | null;
  readonly oracle: {
    /** Rows settled at each level of precision. */
    readonly rows: Readonly<Record<(typeof levels)[number], number>>;
    /** Largest radius relative to Σ p|v| / Σ p. */
    readonly largestRadius: number;
  };
  readonly falseAlarmRate: number;
  /** Of how many rows the statistics are; absent where of all. */
  readonly statistics?: number;
  /** Whose arithmetic the bounds are of, in words. */
  readonly arithmetic: string;
}

/** A judged quantity of vectors, with the profile of its error. */
export interface AuditedVectors extends JudgedVectors {
  readonly error: ErrorProfile;
}

/** All that a kernel gave, judged, by quantity; null for what it does not give. */
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

/** Probability that the statistical tests fail a correct kernel, where no other is asked for. */
const usualFalseAlarmRate = 1e-9;

/** The audit's oracle: a radius of 2^-40 of Σ p|v|, far below any bound it is compared with. */
export function auditAccuracy(outputFormat: FormatName): Accuracy {
  return { outputFormat, ulpFraction: 0, magnitudeFraction: 2 ** -40 };
}

function summariseOracle(reference: AttentionReference): Audit['oracle'] {
  const rows = Object.fromEntries(levels.map((level) => [level, 0])) as Record<
    (typeof levels)[number],
    number
  >;
  for (const level of reference.level) rows[levels[level]]++;
  let largestRadius = 0;
  reference.quantities.out.radius.forEach((radius, i) => {
    const magnitude = reference.quantities.out.magnitude[i];
    if (radius > 0 && magnitude > 0 && magnitude < Infinity)
      largestRadius = Math.max(largestRadius, radius / magnitude);
  });
  return { rows, largestRadius };
}

/** Says so where every output of a long format is a number of a short one. */
function narrowerNotes(out: Float64Array, format: FormatName): string[] {
  if (formats[format].precision < formats.fp32.precision || out.length === 0) return [];
  const narrow = (['bf16', 'fp16'] as const).filter((name) =>
    out.every((x) => Object.is(round(formats[name], x), x)),
  );
  if (narrow.length === 0 || out.every((x) => x === 0)) return [];
  return [
    `every ${format} output is a number of ${narrow.join(' and of ')}: the kernel rounds to that, or something after it does; dump the output in its own format`,
  ];
}

/** How a kernel is taken to compute: as is declared, else as its premises admit. */
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
interface PreparedAudit {
  readonly problem: Problem;
  readonly given: GivenOutputs;
  /** What the kernel gave beside that: names of no quantity that is judged. */
  readonly unjudged: readonly string[];
  readonly options: AuditOptions;
  readonly plan: AuditPlan;
}

/** The probability of a false alarm that each quantity's spread may have: half of all, in equal parts. */
function spreadRate(given: readonly GivenQuantity[], randomRate: number): number {
  return randomRate / given.filter(({ quantity }) => quantity.row === 'vector').length;
}

/** Whether rows are judged by maxima that they have in common with others. */
function sharesMaximum({ maximum }: KernelArithmetic, premises: Premises): boolean {
  return premises.maximum === 'group' || (maximum.kind === 'unknown' && maximum.shared === 'group');
}

/** Says which outputs are not judged, since no quantity has their name. */
function unjudgedNotes(names: readonly string[]): string[] {
  if (names.length === 0) return [];
  return [
    `not judged: ${names.map(plainText).join(', ')}, since no quantity that is judged has ${names.length === 1 ? 'this name' : 'these names'}`,
  ];
}

/** What a kernel gave, decoded, and the names of what is not judged of it. */
type DecodedOutputs = Pick<PreparedAudit, 'given' | 'unjudged'>;

/** @throws RequestError as `decodeOutputs` */
function decoded(
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

/** Plans what is measured for an audit. */
function planAudit(
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
  // Key tiles are tested in blocks of rows, which do not know the maximum of others.
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

/** Who sees the bounds of a part. */
function boundsVisitorOf({ options: { onBounds }, plan: { shape } }: PreparedAudit) {
  return (part: Part) => onBounds && visitInWhole(onBounds, firstRowOf(part, shape));
}

/** Measures what is planned, in this thread. */
function measureHere(prepared: PreparedAudit): Measured {
  const { problem, given, options, plan } = prepared;
  const { shape, settings } = plan;
  const { progress = () => undefined } = options;
  const local = {
    settings,
    read: (part: Part) => partTensors(problem, given, shape, part),
    boundsVisitor: boundsVisitorOf(prepared),
  };
  return runStages(auditStages(plan, options.onReference), local, progress);
}

/** What is known of a failure's cause already, and where from. */
interface KnownCause {
  /** Null where no cause is wanted; default: those of the whole problem. */
  readonly explainers?: Explainers | null;
  readonly note?: string;
}

/** Judges what a kernel gave by what was measured. */
function conclude(
  { problem, given, unjudged, options, plan }: PreparedAudit,
  { reference, bounds, structure, rows: statistics }: Measured,
  known: KnownCause = {},
): Judgement {
  const falseAlarmRate = options.falseAlarmRate ?? usualFalseAlarmRate;
  const { shape } = reference;
  const { format } = given.out;
  const { premises, arithmetic } = plan.settings;
  const randomRate = falseAlarmRate / 2;
  if (statistics !== null)
    options.onElements?.({ reference, outputs: given, bounds, rows: statistics });
  const all = Object.values(given).filter((one) => one !== null && one !== undefined);
  const measure = {
    bounds,
    admitsOverflow: premises.isShortRange,
    falseAlarmRate: spreadRate(all, randomRate),
    structure,
  };
  const outputs = Object.fromEntries(
    Object.entries(given).map(([name, one]) => [
      name,
      one === null || one === undefined
        ? null
        : judgeQuantity(compareQuantity(reference, one), measure),
    ]),
  ) as unknown as JudgedOutputs;
  const isFinite = judgedQuantities(outputs).every(
    (judged) => (judged.row === 'vector' ? judged.elements : judged.numbers).nonFinite === 0,
  );
  // Who declares something knows what the kernel does.
  const isDeclared = options.arithmetic !== undefined || !premises.isUsual;
  const passes = (premises: PremiseDeclaration) => {
    const { thinning } = plan.settings;
    const changed = { falseAlarmRate, premises, diagnose: false, reference, thinning };
    const again = planAudit(problem, { given, unjudged: [] }, changed, false);
    return conclude(again, measureHere(again)).verdict.pass;
  };
  const ownExplainers: Explainers = {
    diagnose: () => {
      const bound = new KernelBound(problem, reference, format, premises);
      return diagnose({ problem, reference, outputs, bound });
    },
    fitPremise: (findings) =>
      isDeclared || !isFinite
        ? null
        : fitPremise({
            problem,
            reference,
            outputs: given,
            passes,
            onlyLse: findings.every(({ quantity }) => quantity === 'lse'),
          }),
  };
  const { rows } = problem;
  const locator = createRowLocator(problem, shape);
  const located = locator === null ? outputs : locateOutputs(outputs, locator);
  return {
    verdict: reachVerdict(
      {
        outputs: judgedQuantities(located),
        sample:
          rows === undefined
            ? null
            : { rows: rows.queries.length, of: shape.batch * shape.heads * rows.of },
        heads: shape.heads,
        untested: untestedStructure(structure, shape, premises, {
          hasLse: given.lse !== null,
          isThin: isKeyTileTestLeftOut(problem, shape),
        }),
        arithmetic: arithmetic.description,
        notes: [
          ...narrowerNotes(given.out.values, format),
          ...unjudgedNotes(unjudged),
          ...(known.note === undefined ? [] : [known.note]),
        ],
      },
      options.diagnose === false
        ? null
        : known.explainers === undefined
          ? ownExplainers
          : known.explainers,
    ),
    reference,
    shape,
    outputs: located,
    sequences: usageBySequence(problem, reference, given.out.values, bounds.quantities.out.total),
    arithmetic: arithmetic.description,
    oracle: summariseOracle(reference),
    falseAlarmRate,
    ...(plan.settings.thinning !== null && {
      statistics: plan.settings.limits.extent.heads * plan.settings.limits.extent.queries,
    }),
  };
}

/**
 * Judges what a kernel gives, its output and its LSE if it gives one, against the oracle: worst-case bound on
 * every element, what independent roundings add up to, structure tests, LSE.
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
 * Judges outputs as `judgeOutputs`; beside that the error profiles and what the usual checks say.
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

/** A problem whose keys are not in memory, with the means to read a head of it. */
export interface HeadSource {
  /** All rows of a head, counted over [batch, heads], as a problem of their own. */
  readonly readHead: (head: number) => Promise<PartTensors>;
}

/** What is said of a head that was a problem of its own, for readers of the whole. */
function ofHead(diagnosis: Diagnosis, place: string): Diagnosis {
  return diagnosis.id === 'unexplained'
    ? diagnosis
    : { ...diagnosis, sentence: `taking ${place} alone, ${diagnosis.sentence}` };
}

/** The cause of a failure, looked for in one head alone: the keys of the others are not in memory. */
async function explainByHead(
  { options, plan }: PreparedAudit,
  judgement: Judgement,
  { readHead }: HeadSource,
): Promise<KnownCause> {
  const head = failingHead(judgement.outputs, judgement.shape.heads);
  const { heads, queries } = judgement.shape;
  const { problem, out, lse } = await readHead(head);
  const part = { head, firstRow: 0, rows: queries };
  const alone = planAudit(
    problem,
    { given: { out, lse }, unjudged: [] },
    {
      ...(options.arithmetic !== undefined && { arithmetic: options.arithmetic }),
      ...(options.falseAlarmRate !== undefined && { falseAlarmRate: options.falseAlarmRate }),
      premises: options.premises,
      thinning: plan.settings.thinning,
      reference: referenceRows(
        judgement.reference,
        partShape(judgement.shape, part),
        head * queries,
      ),
    },
    false,
  );
  const { diagnosis, premise } = conclude(alone, measureHere(alone)).verdict;
  const place = `batch ${Math.floor(head / heads)}, head ${head % heads}`;
  return {
    explainers:
      diagnosis === null
        ? null
        : { diagnose: () => ofHead(diagnosis, place), fitPremise: () => premise },
    note:
      diagnosis === null
        ? `the cause was looked for in ${place} alone, which does not fail by itself`
        : `the cause was looked for in ${place} alone, which what is said of it calls head 0`,
  };
}

/** Starts what measures parts by these settings; null where this thread is to measure them. */
export type StartParts = (
  settings: PartSettings,
  parts: number,
) => (PartRunner & { readonly close: () => Promise<void> }) | null;

/**
 * Judges outputs as `auditOutputs`, its parts measured somewhere else: the report is the same. A problem of one part is
 * measured here.
 * @throws RequestError when a tensor does not fit the problem.
 */
export async function auditOutputsApart(
  problem: Problem,
  outputs: KernelOutputs,
  options: AuditOptions,
  start: StartParts,
  source: HeadSource | null = null,
): Promise<Audit> {
  const prepared = planAudit(problem, decoded(problem, outputs, options), options, true);
  const { settings, parts } = prepared.plan;
  const isHere = parts.length === 1 && source === null;
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

/** A judgement with the error profiles and what the usual checks say. */
function audited(prepared: PreparedAudit, measured: Measured, known?: KnownCause): Audit {
  const { problem } = prepared;
  const { reference, outputs: judged, ...judgement } = conclude(prepared, measured, known);
  const locator = createRowLocator(problem, reference.shape);
  const profiled = Object.entries(judged).map(([name, one]) => {
    if (one?.row !== 'vector') return [name, one ?? null] as const;
    const error = profileError(compareQuantity(reference, one));
    const { worst } = error;
    const isLocated = locator === null || worst === null;
    return [
      name,
      {
        ...one,
        error: isLocated ? error : { ...error, worst: { ...worst, at: locator.place(worst.at) } },
      },
    ] as const;
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
