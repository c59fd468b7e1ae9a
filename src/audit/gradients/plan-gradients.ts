import type { AttentionReference } from '../../../oracles/index.js';
import { problemShape, quantities, type Problem, type Tensor } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { decodeQuantity } from '../kernel-outputs.js';
import type { KeySampleRequest, RowSampleRequest } from '../rows/index.js';
import { anyGradientPremises, type GradientPremises, type StoredForward } from './bounds/index.js';
import { givenGradients, gradientFormat } from './given-gradients.js';
import { gradientQuantities, type GradientQuantityName } from './gradient-quantities.js';
import { planGradientParts, type GradientPart, type GradientPlan } from './gradient-samples.js';
import type { GradientTensors } from './gradient-tensors.js';
import type { GivenJudged } from './judge-gradient.js';
import {
  declaredGradientPremises,
  type GradientDeclaration,
} from './premises/gradient-declaration.js';

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

/** The gradients to judge, and the premises to judge them by. */
export interface PreparedGradients {
  readonly problem: Problem;
  readonly options: GradientAuditOptions;
  readonly plan: GradientPlan;
  readonly all: readonly GivenJudged[];
  readonly parts: readonly PreparedPart[];
  readonly premises: GradientPremises;
  /** Multiply-adds of the forward from which on the groups of a part are measured apart. */
  readonly groupEffort: number;
}

/** A part with the gradients given for it, and its exact attention where that is known. */
export interface PreparedPart extends Omit<GradientPart, 'takenOf'> {
  readonly given: readonly GivenJudged[];
  readonly reference: AttentionReference | null;
}

/**
 * Plans an audit of gradients.
 * @param groupEffort see `PreparedGradients`; default: none are worth it
 * @throws RequestError as `auditGradients`
 */
export function prepareGradients(
  problem: Problem,
  tensors: GradientTensors,
  options: GradientAuditOptions,
  groupEffort = Infinity,
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
  return { problem, options, plan, all, parts, premises, groupEffort };
}
