import { formats } from '../../formats/index.js';
import { problemShape, type Problem } from '../../problem/index.js';
import {
  conduct,
  conductApart,
  usualFalseAlarmRate,
  type Contract,
  type Judged,
} from '../conduct/contract.js';
import type { Crew } from '../conduct/stage.js';
import type { Finding } from '../findings.js';
import { decodeQuantity } from '../kernel-outputs.js';
import type { KeySample, RowSample } from '../rows/index.js';
import type { GradientPremises } from './bounds/index.js';
import type { GradientDiagnosis } from './diagnosis/diagnosis.js';
import { explainGradients } from './explain-gradients.js';
import { isOfTensors, unjudged } from './given-gradients.js';
import { gradientFindings } from './gradient-findings.js';
import { outputGradient } from './gradient-quantities.js';
import { unsampled } from './gradient-samples.js';
import {
  gradientStages,
  measureGradientPart,
  type GradientMeasurements,
} from './gradient-stages.js';
import type { GradientTensors } from './gradient-tensors.js';
import { gradientEvidence, type GradientVerdict } from './gradient-verdict.js';
import { judgeGradients, type JudgedGradient } from './judge-gradient.js';
import { locateGradients } from './locate-gradients.js';
import type { MeasuredGradients } from './measure-gradients.js';
import {
  prepareGradients,
  storedForward,
  type GradientAuditOptions,
  type PreparedGradients,
  type PreparedPart,
} from './plan-gradients.js';
import type { GradientDeclaration } from './premises/gradient-declaration.js';
import { measureMeanErrors, measureWeightErrors, noMeanErrors } from './structure/mean-errors.js';
import { usualRules, type GradientRules } from './usual-rule.js';

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

/** Options of the judgement of a part. */
interface PartOptions extends Pick<GradientAuditOptions, 'strictPremises'> {
  readonly premises: GradientPremises;
  readonly falseAlarmRate: number;
}

/** Whether scores or dP may leave the range of the format that they are written in where those of any correct kernel do not. */
function hasShortRange({ scores, dp }: GradientPremises): boolean {
  return Math.min(formats[scores].maxFinite, formats[dp].maxFinite) < formats.bf16.maxFinite;
}

/** Judges some of a part's gradients by their measurements. */
function judgeSome(
  part: PreparedPart,
  measured: MeasuredGradients,
  { premises, falseAlarmRate }: PartOptions,
) {
  const { problem, tensors, given, keys, names, isSample } = part;
  const { reference } = measured;
  const shape = problemShape(problem);
  const decodedDout = decodeQuantity(outputGradient, tensors.dout, shape).values;
  let ideal: MeasuredGradients | null = null;
  let ofAnyForward: MeasuredGradients | null = null;
  const heads = shape.batch * shape.kvHeads;
  const judgement = {
    problem,
    measured,
    losses: {
      underflow: premises.underflow,
      without: () =>
        (ideal ??= measureGradientPart(part, { ...premises, underflow: 0 }, { reference })),
    },
    // A stored NaN has no bound either, and that is no overflow of these premises.
    overflowing: hasShortRange(premises)
      ? () =>
          (ofAnyForward ??= measureGradientPart(part, premises, {
            reference,
            given: storedForward(problem, { dout: tensors.dout }),
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
  { reference }: MeasuredGradients,
  { premises, falseAlarmRate }: PartOptions,
): Pick<JudgedPart, 'gradients' | 'findings'> | null {
  const given = part.given.filter((one) => !isOfTensors(one));
  const { out } = storedForward(part.problem, part.tensors);
  if (given.length === 0 || premises.delta !== 'any' || out === null) return null;
  const some = { ...part, given, names: [] };
  const judge = (delta: 'stored-output' | 'weights') => {
    const changed = { ...premises, delta };
    return judgeSome(some, measureGradientPart(some, changed, { reference }), {
      premises: changed,
      falseAlarmRate: (falseAlarmRate * given.length) / part.given.length,
    });
  };
  const ofStored = judge('stored-output');
  if (ofStored.findings.length === 0) return ofStored;
  const ofWeights = judge('weights');
  return ofWeights.findings.length < ofStored.findings.length ? ofWeights : ofStored;
}

/** Judges the gradients of a part by their measurements. */
function judgePart(
  part: PreparedPart,
  measured: MeasuredGradients,
  options: PartOptions,
): JudgedPart {
  const { problem, tensors, given, isSample } = part;
  const { premises, falseAlarmRate } = options;
  const { judgement, ...own } = judgeSome(part, measured, options);
  const shared = judgeShared(part, measured, options);
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
  const prepared = prepareGradients(problem, tensors, options);
  return conduct(gradientContract, prepared, (_, done) => options.progress?.(done));
}

/** Multiply-adds of the forward from which on threads are worth their start. */
const worthwhile = 2 ** 25;

/**
 * Judges gradients as `auditGradients`, groups of heads measured somewhere else: the report is the same.
 * @param crew starts runners for the groups of a part
 * @param effort multiply-adds of the forward from which on threads are used; default: those of some tenths of a
 * second
 * @throws RequestError as `auditGradients`
 */
export async function auditGradientsApart(
  problem: Problem,
  tensors: GradientTensors,
  options: GradientAuditOptions,
  crew: Crew<GradientMeasurements>,
  effort = worthwhile,
): Promise<GradientAudit> {
  const prepared = prepareGradients(problem, tensors, options, effort);
  const progress = (_: string, done: number) => options.progress?.(done);
  return conductApart(gradientContract, prepared, crew, progress);
}

/** The types of the contract of gradients. */
interface GradientTerms extends GradientMeasurements {
  readonly plan: PreparedGradients;
  readonly cause: GradientDiagnosis;
  readonly result: GradientAudit;
}

/** Judges gradients by their measurements. */
function judge(
  { problem, options, plan, all, parts, premises }: PreparedGradients,
  measured: readonly MeasuredGradients[],
): Judged<GradientTerms> {
  const { falseAlarmRate = usualFalseAlarmRate, strictPremises = false } = options;
  const judged = parts.map((part, index) =>
    judgePart(part, measured[index], {
      premises,
      strictPremises,
      falseAlarmRate: falseAlarmRate / parts.length,
    }),
  );
  const gradients = judged.flatMap((part) => part.gradients);
  const findings = judged.flatMap((part) => part.findings);
  const failing = judged.find((part) => part.findings.length > 0);
  const skipped = [...new Set(judged.flatMap(({ usual }) => usual.skipped))];
  const left = [...unsampled(plan, all), ...unjudged(problem, all), ...skipped];
  const { evidence, notJudged } = gradientEvidence(gradients, findings, left);
  const { rows, keys } = plan;
  return {
    evidence,
    explainers: options.diagnose === false || failing === undefined ? null : failing,
    result: (reached) => ({
      verdict: { ...reached, notJudged },
      gradients,
      samples: { rows, keys },
      flashAttention: judged.reduce<GradientRules['rules']>(
        (rules, { usual }) => ({ ...rules, ...usual.rules }),
        {},
      ),
      arithmetic: premises.description,
      falseAlarmRate,
    }),
  };
}

/** The contract of the gradients of softmax attention. */
export const gradientContract: Contract<GradientTerms> = { stages: gradientStages, judge };
