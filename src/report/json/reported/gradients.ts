import type {
  ElementTest,
  ErrorProfile,
  Finding,
  GradientAudit,
  GradientDiagnosis,
  GradientRule,
  GradientStatistic,
  GradientTechniqueTable,
  JudgedGradient,
  KeySample,
  SpreadTest,
} from '../../../audit/index.js';
import type { FormatName } from '../../../formats/index.js';
import type { Quantity } from '../../../problem/index.js';
import { reasonClause, stated, type StatedVerdict } from '../../../words/index.js';
import { toReported, type Reported } from '../report-number.js';
import { boundedSample, type BoundedSample } from './sample.js';

/** The comparison of a gradient with a model's, bit for bit: numbers of elements. */
export interface GradientBits {
  readonly name: string;
  readonly label: string;
  readonly elements: number;
  /** Number of elements with the model's bits. */
  readonly equal: number;
  /** Number of elements that another order of the model's additions gives. */
  readonly someOrder: number;
  /** Number of elements for which that was not decided, or not tried since too many differ. */
  readonly undecided: number;
  /** Number of elements that the model does not give. */
  readonly noOrder: number;
  /** Likeness of the other elements; null where the identification of the model was not requested. */
  readonly likeness: {
    /** Number of elements that are not correctly rounded in one of both, and of those of them that are equal. */
    readonly misrounded: number;
    readonly equalMisrounded: number;
    readonly largestDifference: number;
  } | null;
}

/** The comparison of a report's gradients with a kernel model's. */
export interface ModelMatch {
  readonly model: string;
  /** The chosen settings of the model, as text by key. */
  readonly settings: Readonly<Record<string, string>>;
  /** The O and LSE that its backward pass read: the given ones, or its own forward's; null where it was not run. */
  readonly forward: 'given' | 'own' | null;
  /** The reason why there is no comparison; null where there is one. */
  readonly reason: string | null;
  readonly gradients: readonly GradientBits[];
}

/** Sums over all gradients of a comparison. */
export function sumBits({ gradients }: ModelMatch): Omit<GradientBits, 'name' | 'label'> {
  const sum = (of: (bits: GradientBits) => number) => gradients.reduce((n, one) => n + of(one), 0);
  const isLike = gradients.every(({ likeness }) => likeness !== null);
  return {
    elements: sum(({ elements }) => elements),
    equal: sum(({ equal }) => equal),
    someOrder: sum(({ someOrder }) => someOrder),
    undecided: sum(({ undecided }) => undecided),
    noOrder: sum(({ noOrder }) => noOrder),
    likeness: isLike
      ? {
          misrounded: sum(({ likeness }) => likeness?.misrounded ?? 0),
          equalMisrounded: sum(({ likeness }) => likeness?.equalMisrounded ?? 0),
          largestDifference: Math.max(
            0,
            ...gradients.map(({ likeness }) => likeness?.largestDifference ?? 0),
          ),
        }
      : null,
  };
}

/** A judged gradient. */
export interface ReportedGradient extends Pick<
  Quantity,
  'name' | 'prose' | 'label' | 'parts' | 'unit' | 'magnitude'
> {
  /** Number of heads in a batch entry of it. */
  readonly heads: number;
  readonly format: FormatName;
  readonly error: Reported<ErrorProfile>;
  readonly elements: Reported<ElementTest>;
  readonly spread: Reported<SpreadTest>;
  readonly structure: readonly Reported<GradientStatistic>[];
  /** The result of FlashAttention's rule for it; null where the rule does not apply, as `notJudged` tells. */
  readonly flashAttention: Reported<GradientRule> | null;
  /**
   * The error that each technique of the kernel may cause in it, whether or not it did; null where the techniques are
   * not told apart.
   */
  readonly techniques: Reported<GradientTechniqueTable> | null;
}

/** The gradients of a report, and their own verdict. */
export interface ReportedGradients extends StatedVerdict {
  readonly pass: boolean;
  readonly judged: boolean;
  readonly findings: readonly Finding[];
  readonly diagnosis: GradientDiagnosis | null;
  /** Parts of the gradients that the verdict does not cover, a clause each. */
  readonly notJudged: readonly string[];
  readonly gradients: readonly ReportedGradient[];
  /**
   * The rows of dQ and the keys of dK and dV that were judged; null for all, or where these gradients were not judged.
   */
  readonly samples: {
    readonly rows: BoundedSample | null;
    readonly keys: ReportedKeySample | null;
  };
  readonly arithmetic: string;
  readonly falseAlarmRate: number;
  /**
   * Their comparisons with kernel models, bit for bit: a declared one first, then the nearest; none where that was not
   * requested.
   */
  readonly models: readonly ModelMatch[];
  /** Narrower premises that they are consistent with, a sentence each; none where that was not requested. */
  readonly fits: readonly string[];
}

function reportedGradient(
  judged: JudgedGradient,
  rules: GradientAudit['flashAttention'],
): ReportedGradient {
  const { name, prose, label, parts, unit, magnitude } = judged.quantity;
  const rule = name === 'dq' || name === 'dk' || name === 'dv' ? rules[name] : undefined;
  return {
    name,
    prose,
    label,
    parts,
    unit,
    magnitude,
    heads: judged.heads,
    format: judged.format,
    error: toReported(judged.error),
    elements: toReported(judged.elements),
    spread: toReported(judged.spread),
    structure: toReported(judged.structure),
    flashAttention: rule === undefined ? null : toReported(rule),
    techniques: judged.techniques === null ? null : toReported(judged.techniques),
  };
}

/** A sample of keys without the keys' numbers, which follow from the seed. */
type ReportedKeySample = Omit<KeySample, 'selection'>;

function keySample({ seed, keys, of, edges, random }: KeySample): ReportedKeySample {
  return { seed, keys, of, edges, random };
}

/** Describes the rows and keys for which gradients were judged, a sentence each; none where all were. */
export function describeGradientSamples({ samples: { rows, keys } }: ReportedGradients): string[] {
  const chosen = ({ edges, random, seed }: Pick<BoundedSample, 'edges' | 'random' | 'seed'>) =>
    `${edges} for their place and ${random} at random by seed ${seed}`;
  return [
    ...(rows === null
      ? []
      : [`dQ was judged of ${rows.rows} of ${rows.of} rows, ${chosen(rows)}.`]),
    ...(keys === null
      ? []
      : [`dK and dV were judged of ${keys.keys} of ${keys.of} keys, ${chosen(keys)}.`]),
  ];
}

/** The report of judged gradients. */
export function reportedGradients({
  verdict,
  gradients,
  samples,
  flashAttention,
  arithmetic,
  falseAlarmRate,
}: GradientAudit): ReportedGradients {
  const { pass, status, judged, sentence, findings, diagnosis, notJudged } = verdict;
  return {
    pass,
    status,
    judged,
    sentence,
    findings: findings.map((finding) => ({ ...finding })),
    diagnosis:
      diagnosis === null
        ? null
        : {
            ...diagnosis,
            place: structuredClone(diagnosis.place),
            equivalents: [...diagnosis.equivalents],
            evidence: [...diagnosis.evidence],
          },
    notJudged: [...notJudged],
    gradients: gradients.map((judged) => reportedGradient(judged, flashAttention)),
    samples: {
      rows: samples.rows === null ? null : boundedSample(samples.rows),
      keys: samples.keys === null ? null : keySample(samples.keys),
    },
    arithmetic,
    falseAlarmRate,
    models: [],
    fits: [],
  };
}

/** The parts of a verdict that are joined with another. */
interface JoinedVerdict extends StatedVerdict {
  readonly pass: boolean;
  readonly judged: boolean;
}

/** The verdict on a kernel whose two passes are judged: failures come first, then the parts that are not judged. */
export function joinVerdicts(output: JoinedVerdict, gradients: JoinedVerdict): JoinedVerdict {
  const pass = output.pass && gradients.pass;
  const judged = output.judged && gradients.judged;
  const said = { output: reasonClause(output), gradients: reasonClause(gradients) };
  if (pass) return { pass, judged, ...stated('PASS', `${said.output}; ${said.gradients}.`) };
  const isWorse = gradients.status === 'FAIL' || output.status === 'PASS';
  const joined =
    output.status !== 'FAIL' && isWorse
      ? stated(gradients.status, `${said.gradients}; of the output: ${said.output}.`)
      : stated(output.status, `${said.output}; of the gradients: ${said.gradients}.`);
  return { pass, judged, ...joined };
}
