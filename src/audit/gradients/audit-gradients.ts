import type { AttentionReference } from '../../../oracles/index.js';
import { formats } from '../../formats/index.js';
import { problemShape, quantities, type Problem, type Tensor } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { usualFalseAlarmRate } from '../conduct/audit-options.js';
import type { Finding } from '../findings.js';
import { decodeQuantity } from '../kernel-outputs.js';
import type { KeySample, KeySampleRequest, RowSample, RowSampleRequest } from '../rows/index.js';
import { anyGradientPremises, type GradientPremises, type StoredForward } from './bounds/index.js';
import type { GradientDiagnosis } from './diagnosis/diagnosis.js';
import { explainGradients } from './explain-gradients.js';
import { givenGradients, gradientFormat, isOfTensors, unjudged } from './given-gradients.js';
import { gradientFindings } from './gradient-findings.js';
import {
  gradientQuantities,
  outputGradient,
  type GradientQuantityName,
  type JudgedGradientName,
} from './gradient-quantities.js';
import {
  planGradientParts,
  unsampled,
  type GradientPart,
  type GradientPlan,
} from './gradient-samples.js';
import type { GradientTensors } from './gradient-tensors.js';
import { reachGradientVerdict, type GradientVerdict } from './gradient-verdict.js';
import { judgeGradients, type GivenJudged, type JudgedGradient } from './judge-gradient.js';
import { locateGradients } from './locate-gradients.js';
import {
  measureGradients,
  type MeasuredGradients,
  type MeasuredGroup,
} from './measure-gradients.js';
import { usualRules, type GradientRules } from './usual-rule.js';
import {
  declaredGradientPremises,
  type GradientDeclaration,
} from './premises/gradient-declaration.js';
import { measureMeanErrors, measureWeightErrors, noMeanErrors } from './structure/mean-errors.js';

/** Options of an audit of gradients. */
export interface GradientAuditOptions {
  /** The kernel's premises; default: those of any correct kernel. */
  readonly premises?: GradientPremises;
  /** The kernel's declarations beyond these. */
  readonly declared?: GradientDeclaration;
  /** Probability that the statistical tests of all gradients fail a correct kernel; default 1e-9. */
  readonly falseAlarmRate?: number;
  /** Judge dQ of a sample of rows, with all keys and values, and no other gradient but by `keys`. */
  readonly rows?: RowSampleRequest | null;
  /** Judge dK and dV of a sample of keys, with all queries, and no other gradient but by `rows`. */
  readonly keys?: KeySampleRequest | null;
  /** The exact attention of the problem, or of the sample of rows, where it is known already. */
  readonly reference?: AttentionReference;
  /** Whether a failure's cause is looked for, which takes some audits' time; default true. */
  readonly diagnose?: boolean;
  /** Whether a failure is told no premise that it would pass by; default false. */
  readonly strictPremises?: boolean;
  /** Called with the share that is done of exact values and bounds. */
  readonly progress?: (done: number) => void;
}

/** The whole judgement of a kernel's gradients. */
export interface GradientAudit {
  readonly verdict: GradientVerdict;
  /** Judged gradients in the order of their table. */
  readonly gradients: readonly JudgedGradient[];
  /** The rows of dQ and the keys of dK and dV that were judged; null for all, or none. */
  readonly samples: { readonly rows: RowSample | null; readonly keys: KeySample | null };
  /** Results of FlashAttention's rule for dQ, dK and dV, by name, where it applies; no part of the verdict. */
  readonly flashAttention: GradientRules['rules'];
  /** The arithmetic that the bounds are of, in words. */
  readonly arithmetic: string;
  readonly falseAlarmRate: number;
}

/** The results for a part of the judged gradients. */
interface JudgedPart {
  readonly gradients: readonly JudgedGradient[];
  readonly findings: readonly Finding[];
  readonly diagnose: () => GradientDiagnosis;
  readonly usual: GradientRules;
}

const [, logSumExp] = quantities;

/** The stored results of the kernel's own forward, as its backward pass read them. */
export function storedForward(
  problem: Problem,
  { out = null, lse = null }: GradientTensors,
): StoredForward {
  return { out, lse: lse && canonicalLse(problem, lse) };
}

/** The gradients of Q, K and V that a part has. */
export function measuredNames({ names }: Pick<GradientPart, 'names'>): GradientQuantityName[] {
  return gradientQuantities.map(({ name }) => name).filter((name) => names.includes(name));
}

/** The LSE as [batch, heads, queries], from any shape that kernels give it in. */
function canonicalLse(problem: Problem, lse: Tensor): Tensor {
  const shape = problemShape(problem);
  const { batch, heads, queries } = shape;
  const { values } = decodeQuantity(logSumExp, lse, shape);
  return { format: 'fp64', shape: [batch, heads, queries], data: values };
}

/** Options of the judgement of a part. */
interface PartOptions extends Omit<GradientAuditOptions, 'rows' | 'keys'> {
  readonly groups?: MeasuredGroup[] | undefined;
  readonly premises: GradientPremises;
  readonly falseAlarmRate: number;
}

/** Whether scores or dP may leave the range of the format that they are written in where those of any correct kernel do not. */
function hasShortRange({ scores, dp }: GradientPremises): boolean {
  return Math.min(formats[scores].maxFinite, formats[dp].maxFinite) < formats.bf16.maxFinite;
}

/** Measures and judges some of a part's gradients. */
function judgeSome(
  { problem, tensors, given, keys, names, isSample }: PreparedPart,
  { premises, falseAlarmRate, reference, groups, progress }: PartOptions,
) {
  const shape = problemShape(problem);
  const { dout } = tensors;
  const decodedDout = decodeQuantity(outputGradient, dout, shape).values;
  const formatOf = (name: JudgedGradientName) =>
    given.find(({ quantity }) => quantity.name === name)?.format ?? null;
  const measure = {
    premises,
    given: storedForward(problem, tensors),
    shared: { dbias: formatOf('dbias'), dsink: formatOf('dsink') },
    wanted: measuredNames({ names }),
    keys,
  };
  const measured = measureGradients(problem, dout, { ...measure, reference, groups, progress });
  let ideal: MeasuredGradients | null = null;
  let ofAnyForward: MeasuredGradients | null = null;
  const heads = shape.batch * shape.kvHeads;
  const judgement = {
    problem,
    measured,
    losses: {
      underflow: premises.underflow,
      without: () =>
        (ideal ??= measureGradients(problem, dout, {
          ...measure,
          premises: { ...premises, underflow: 0 },
          reference: measured.reference,
        })),
    },
    // A stored NaN has no bound either, and that is no overflow of these premises.
    overflowing: hasShortRange(premises)
      ? () =>
          (ofAnyForward ??= measureGradients(problem, dout, {
            ...measure,
            given: storedForward(problem, { dout }),
            reference: measured.reference,
          }))
      : undefined,
    together: {
      dk: names.includes('dk')
        ? measureMeanErrors(problem, decodedDout, measured, premises)
        : noMeanErrors(heads, shape.qkDim),
      dv: names.includes('dv')
        ? measureWeightErrors(problem, decodedDout, measured)
        : noMeanErrors(heads, shape.vDim),
    },
    falseAlarmRate,
    isSample,
  };
  const gradients = locateGradients(judgeGradients(given, judgement), problem, shape, keys);
  return { judgement, gradients, findings: gradientFindings(gradients, premises.description) };
}

/**
 * Judges dBias and dSink where a kernel may make D of the stored O or of its weights: it does the same in all rows, so that all is
 * judged as of a kernel that does the one, and where that fails as of one that does the other. Null where there is no such choice, or
 * neither gradient to judge.
 */
function judgeShared(
  part: PreparedPart,
  options: PartOptions,
): Pick<JudgedPart, 'gradients' | 'findings'> | null {
  const { premises, falseAlarmRate, reference } = options;
  const given = part.given.filter((one) => !isOfTensors(one));
  const { out } = storedForward(part.problem, part.tensors);
  if (given.length === 0 || premises.delta !== 'any' || out === null) return null;
  const some = { ...part, given, names: [] };
  const judge = (delta: 'stored-output' | 'weights') =>
    judgeSome(some, {
      premises: { ...premises, delta },
      falseAlarmRate: (falseAlarmRate * given.length) / part.given.length,
      ...(reference !== undefined && { reference }),
    });
  const ofStored = judge('stored-output');
  if (ofStored.findings.length === 0) return ofStored;
  const ofWeights = judge('weights');
  return ofWeights.findings.length < ofStored.findings.length ? ofWeights : ofStored;
}

/** Measures and judges the gradients of a part. */
function judgePart(part: PreparedPart, options: PartOptions): JudgedPart {
  const { problem, tensors, given, isSample } = part;
  const { premises, falseAlarmRate } = options;
  const { judgement, ...own } = judgeSome(part, options);
  const { measured } = judgement;
  const shared = judgeShared(part, { ...options, reference: measured.reference });
  const isOwn = (name: string) =>
    shared?.gradients.every(({ quantity }) => quantity.name !== name) !== false;
  const gradients = own.gradients.map(
    (one) => shared?.gradients.find(({ quantity }) => quantity.name === one.quantity.name) ?? one,
  );
  const findings = [
    ...own.findings.filter(({ quantity }) => isOwn(quantity)),
    ...(shared?.findings ?? []),
  ];
  const usedBy = (declared: GradientDeclaration) => {
    const again = { premises, declared, falseAlarmRate, reference: measured.reference };
    const audit = auditGradients(problem, tensors, { ...again, diagnose: false });
    const used = audit.gradients.map(({ elements }) => elements.worstRatio);
    return audit.verdict.pass ? Math.max(...used) : null;
  };
  return {
    gradients,
    findings,
    usual: usualRules(problem, tensors.dout, given, measured, isSample),
    diagnose: () =>
      explainGradients({
        ...judgement,
        dout: tensors.dout,
        given,
        findings,
        forward: storedForward(problem, tensors),
        premises,
        usedBy: options.strictPremises === true || isSample ? null : usedBy,
      }),
  };
}

/**
 * Judges dQ, dK, dV, dBias and dSink, whichever are given, against exact gradients: worst-case bounds on every element, sums of
 * independent roundings, and sums that roundings leave near zero, among them Σ dV = Σ dO, Σ dS = 0 and ⟨Q, dQ⟩ = ⟨K, dK⟩. Given the
 * kernel's own output and LSE, it tells errors that came in with them from those that the backward pass made.
 * @throws RequestError for tensors that do not fit the problem, without any gradient to judge, for a problem that is a sample of rows,
 * and for samples of fewer rows or keys than heads
 */
export function auditGradients(
  problem: Problem,
  tensors: GradientTensors,
  options: GradientAuditOptions = {},
): GradientAudit {
  return judgePrepared(prepareGradients(problem, tensors, options), problem, options);
}

/** The gradients to judge, and the premises to judge them by. */
export interface PreparedGradients {
  readonly plan: GradientPlan;
  readonly all: readonly GivenJudged[];
  readonly parts: readonly PreparedPart[];
  readonly premises: GradientPremises;
}

/** A part with the gradients given for it, and its exact attention where that is known. */
export interface PreparedPart extends Omit<GradientPart, 'takenOf'> {
  readonly given: readonly GivenJudged[];
  readonly reference: AttentionReference | null;
}

/** Plans an audit of gradients. @throws RequestError as `auditGradients` */
export function prepareGradients(
  problem: Problem,
  tensors: GradientTensors,
  options: GradientAuditOptions,
): PreparedGradients {
  const all = givenGradients(problem, tensors);
  const premises = declaredGradientPremises(
    problem,
    options.premises ?? anyGradientPremises(problem, gradientFormat(problem, all)),
    options.declared ?? {},
  );
  const plan = planGradientParts(problem, tensors, options);
  const { rows, reference = null } = options;
  const parts = plan.parts.flatMap(({ takenOf, ...part }) => {
    const given = takenOf(all);
    // The known reference is of all rows, or of those that are sampled.
    const isKnown = !rows || part.keys === null;
    return given.length === 0 ? [] : [{ ...part, given, reference: isKnown ? reference : null }];
  });
  if (parts.length === 0)
    throw new RequestError(
      'a sample of rows judges dQ, and a sample of keys dK and dV, but of these none was given; judge all rows and keys, or give them',
    );
  return { plan, all, parts, premises };
}

/**
 * Judges a planned audit.
 * @param measured for each part its groups where they are measured already; null, or left out, for the others
 */
export function judgePrepared(
  { plan, all, parts, premises }: PreparedGradients,
  problem: Problem,
  options: GradientAuditOptions,
  measured: readonly (MeasuredGroup[] | null)[] = [],
): GradientAudit {
  const { falseAlarmRate = usualFalseAlarmRate } = options;
  const judged = parts.map((part, index) => {
    const { reference } = part;
    return judgePart(part, {
      premises,
      strictPremises: options.strictPremises ?? false,
      falseAlarmRate: falseAlarmRate / parts.length,
      ...(reference !== null && { reference }),
      groups: measured.at(index) ?? undefined,
      progress: (done) => options.progress?.((index + done) / parts.length),
    });
  });
  const gradients = judged.flatMap((part) => part.gradients);
  const findings = judged.flatMap((part) => part.findings);
  const failing = judged.find((part) => part.findings.length > 0);
  const skipped = [...new Set(judged.flatMap(({ usual }) => usual.skipped))];
  const verdict = reachGradientVerdict(
    gradients,
    findings,
    [...unsampled(plan, all), ...unjudged(problem, all), ...skipped],
    options.diagnose === false || failing === undefined ? null : failing.diagnose,
  );
  const { rows, keys } = plan;
  return {
    verdict,
    gradients,
    samples: { rows, keys },
    flashAttention: judged.reduce<GradientRules['rules']>(
      (rules, { usual }) => ({ ...rules, ...usual.rules }),
      {},
    ),
    arithmetic: premises.description,
    falseAlarmRate,
  };
}
