import type { AttentionReference } from '../../../oracles/index.js';
import { formats, type FormatName } from '../../formats/index.js';
import { problemShape, type Problem, type Tensor } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { usualFalseAlarmRate } from '../conduct/audit-options.js';
import { decodeQuantity } from '../kernel-outputs.js';
import { anyGradientPremises, type GradientPremises } from './bounds/index.js';
import { diagnoseGradients } from './diagnosis/diagnose.js';
import { gradientFindings } from './gradient-findings.js';
import {
  gradientQuantities,
  judgedGradients,
  outputGradient,
  sharedQuantities,
  type JudgedGradientName,
} from './gradient-quantities.js';
import { listed, reachGradientVerdict, type GradientVerdict } from './gradient-verdict.js';
import { diagnoseShared } from './diagnosis/shared-faults.js';
import type { FailedGradients } from './diagnosis/failed-gradients.js';
import type { GradientDiagnosis } from './diagnosis/diagnosis.js';
import {
  judgeGradients,
  type GivenGradient,
  type GivenJudged,
  type JudgedGradient,
} from './judge-gradient.js';
import { locateGradients } from './locate-gradients.js';
import { measureGradients } from './measure-gradients.js';
import { decodeShared, gradientSource } from './shared-gradients.js';
import { measureMeanErrors } from './structure/mean-errors.js';

/** What a kernel's backward pass gave, and what it was given; null, or left out, for what there is not. */
export interface GradientTensors extends Readonly<
  Partial<Record<JudgedGradientName, Tensor | null>>
> {
  /** The gradient of the output, which was given to the kernel: [batch, heads, seqlen_q, v dim]. */
  readonly dout: Tensor;
  /** The kernel's own output and LSE (natural logarithms), which its backward pass read. */
  readonly out?: Tensor | null;
  readonly lse?: Tensor | null;
}

/** By what gradients are judged. */
export interface GradientAuditOptions {
  /** How the kernel computes; default: as any correct kernel may. */
  readonly premises?: GradientPremises;
  /** Probability that the statistical tests of all gradients fail a correct kernel; default 1e-9. */
  readonly falseAlarmRate?: number;
  /** The problem's exact attention, where it is known already. */
  readonly reference?: AttentionReference;
  /** Whether a failure's cause is looked for, which takes some audits' time; default true. */
  readonly diagnose?: boolean;
  /** Called with the share that is done of exact values and bounds. */
  readonly progress?: (done: number) => void;
}

/** The whole judgement of a kernel's gradients. */
export interface GradientAudit {
  readonly verdict: GradientVerdict;
  /** In the order of their table. */
  readonly gradients: readonly JudgedGradient[];
  /** Whose arithmetic the bounds are of, in words. */
  readonly arithmetic: string;
  readonly falseAlarmRate: number;
}

/**
 * The gradients that were given, decoded.
 * @throws RequestError where there are none, or one does not fit the problem
 */
function givenGradients(problem: Problem, tensors: GradientTensors): readonly GivenJudged[] {
  const shape = problemShape(problem);
  const given = gradientQuantities.flatMap((quantity) => {
    const tensor = tensors[quantity.name];
    return tensor ? [{ ...decodeQuantity(quantity, tensor, shape), quantity }] : [];
  });
  const shared = sharedQuantities.flatMap((quantity) => {
    const tensor = tensors[quantity.name];
    return tensor ? [decodeShared(quantity, tensor, problem, shape)] : [];
  });
  const first = given.at(0);
  const other = given.find(({ format }) => format !== first?.format);
  if (first !== undefined && other !== undefined)
    throw new RequestError(
      `${first.quantity.prose} is stored in ${first.format} and ${other.quantity.prose} in ${other.format}; judge gradients of one format at a time`,
    );
  const all = [...given, ...shared];
  if (all.length === 0)
    throw new RequestError(
      'there is no gradient to judge; give dq, dk, dv, dbias or dsink beside dout',
    );
  return all;
}

/** The format of dQ, dK and dV; where none of them was given, that of the inputs, or what 8 bits come out in. */
function gradientFormat({ q }: Problem, given: readonly GivenJudged[]): FormatName {
  const named = given.find(isOfTensors);
  return named?.format ?? (formats[q.format].storageBits > 8 ? q.format : 'bf16');
}

/** What the verdict says nothing about. */
function unjudged(problem: Problem, given: readonly GivenJudged[]): string[] {
  const possible = judgedGradients.filter(
    ({ name }) => (name !== 'dbias' && name !== 'dsink') || gradientSource(problem, name) !== null,
  );
  const missing = possible.filter(
    ({ name }) => !given.some(({ quantity }) => quantity.name === name),
  );
  return [
    ...(missing.length === 0
      ? []
      : [`${listed(missing.map(({ prose }) => prose))}, since none was given`]),
    "FlashAttention's rule for gradients, which needs a run of PyTorch's own",
  ];
}

/** A gradient of Q, K or V. */
function isOfTensors(one: GivenJudged): one is GivenGradient {
  return one.quantity.name !== 'dbias' && one.quantity.name !== 'dsink';
}

/**
 * The cause of what failed of dQ, dK and dV; where they pass, what is known of the others.
 */
function diagnose({
  given,
  findings,
  ...judgement
}: Omit<FailedGradients, 'given'> & { readonly given: readonly GivenJudged[] }): GradientDiagnosis {
  const ofTensors = given.filter(isOfTensors);
  const names = new Set<string>(ofTensors.map(({ quantity }) => quantity.name));
  const failing = findings.filter(({ quantity }) => names.has(quantity));
  if (failing.length === 0) return diagnoseShared(given, findings, judgement);
  const found = diagnoseGradients({ ...judgement, given: ofTensors, findings: failing });
  const others = new Set(
    findings.filter(({ quantity }) => !names.has(quantity)).map(({ quantity }) => quantity),
  );
  if (others.size === 0 || found.id === 'unexplained') return found;
  const left = judgedGradients.filter(({ name }) => others.has(name)).map(({ prose }) => prose);
  const clause = `${listed(left)} ${left.length === 1 ? 'fails' : 'fail'} too, and whether by this is not tried`;
  return { ...found, evidence: [...found.evidence, clause] };
}

/**
 * Judges dQ, dK, dV, dBias and dSink, whichever are given, against exact gradients: worst-case bounds on every element, what
 * independent roundings add up to, and sums that roundings leave near zero, among them Σ dV = Σ dO, Σ dS = 0 and
 * ⟨Q, dQ⟩ = ⟨K, dK⟩. With the kernel's own output and LSE errors that came in with them are told from those that were made.
 * @throws RequestError for tensors that do not fit the problem, without any gradient, and for a sample of rows
 */
export function auditGradients(
  problem: Problem,
  tensors: GradientTensors,
  options: GradientAuditOptions = {},
): GradientAudit {
  if (problem.rows !== undefined)
    throw new RequestError(
      'gradients are judged of all rows, since every row adds to dK and dV; give the whole problem (--rows all)',
    );
  const shape = problemShape(problem);
  const { dout, out = null, lse = null } = tensors;
  const decodedDout = decodeQuantity(outputGradient, dout, shape).values;
  const given = givenGradients(problem, tensors);
  const {
    premises = anyGradientPremises(problem, gradientFormat(problem, given)),
    falseAlarmRate = usualFalseAlarmRate,
    reference,
    progress,
  } = options;
  const formatOf = (name: JudgedGradientName) =>
    given.find(({ quantity }) => quantity.name === name)?.format ?? null;
  const measured = measureGradients(problem, dout, {
    premises,
    given: { out, lse },
    shared: { dbias: formatOf('dbias'), dsink: formatOf('dsink') },
    reference,
    progress,
  });
  const judgement = {
    problem,
    measured,
    meanErrors: measureMeanErrors(problem, decodedDout, measured, premises),
    falseAlarmRate,
  };
  const gradients = locateGradients(judgeGradients(given, judgement), problem, shape);
  const findings = gradientFindings(gradients, premises.description);
  const verdict = reachGradientVerdict(
    gradients,
    findings,
    unjudged(problem, given),
    options.diagnose === false ? null : () => diagnose({ ...judgement, dout, given, findings }),
  );
  return { verdict, gradients, arithmetic: premises.description, falseAlarmRate };
}
