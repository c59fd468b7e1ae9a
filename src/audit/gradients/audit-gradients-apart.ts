import { attentionOracle } from '../../../oracles/index.js';
import { problemShape, type Problem, type Tensor } from '../../problem/index.js';
import type { PartRunner } from '../parts/run-stages.js';
import { multiplyAddsOf } from '../rows/index.js';
import {
  judgePrepared,
  measuredNames,
  prepareGradients,
  storedForward,
  type GradientAudit,
  type GradientAuditOptions,
  type PreparedPart,
} from './audit-gradients.js';
import type { GradientTensors } from './gradient-tensors.js';
import { createGroupMeasure, type GroupSettings, type MeasuredGroup } from './measure-gradients.js';

/** A group that is to be measured. */
export interface GroupRequest {
  /** Its head of K, counted over [batch, kv heads]. */
  readonly kvHead: number;
}

/** The data that all groups of a part are measured from: a thread may be sent them. */
export interface GroupData {
  readonly problem: Problem;
  readonly dout: Tensor;
  readonly settings: GroupSettings;
}

/** Measures groups somewhere else, in threads perhaps. To be closed. */
export type GroupRunner = PartRunner<GroupRequest, MeasuredGroup> & {
  readonly close: () => Promise<void>;
};

/** Makes a function that measures the groups of another thread's problem. */
export function createRequestedMeasure({
  problem,
  dout,
  settings,
}: GroupData): (request: GroupRequest) => MeasuredGroup {
  const measure = createGroupMeasure(problem, dout, settings);
  return ({ kvHead }) => measure(kvHead);
}

/** Multiply-adds of the forward from which on threads are worth their start. */
const worthwhile = 2 ** 25;

/**
 * Whether the groups of a part are measured apart: where there are several, they are worth it, and no quantity is a sum over all
 * of them.
 */
function isDivisible({ problem, given }: PreparedPart, effort: number): boolean {
  const shape = problemShape(problem);
  const { batch, kvHeads } = shape;
  const isShared = given.some(({ quantity: { name } }) => name === 'dbias' || name === 'dsink');
  return batch * kvHeads > 1 && !isShared && multiplyAddsOf(problem, shape) >= effort;
}

/** The share of the work of a part that the oracle of the forward pass does, which is not divided. */
const shareOfForward = 0.2;

/**
 * Judges gradients as `auditGradients`, groups of heads measured somewhere else: the report is the same.
 * @param start starts a runner for a part's groups
 * @param effort multiply-adds of the forward from which on threads are used; default: those of some tenths of a
 * second
 * @throws RequestError as `auditGradients`
 */
export async function auditGradientsApart(
  problem: Problem,
  tensors: GradientTensors,
  options: GradientAuditOptions,
  start: (data: GroupData, groups: number) => GroupRunner,
  effort = worthwhile,
): Promise<GradientAudit> {
  const prepared = prepareGradients(problem, tensors, options);
  const { premises } = prepared;
  const parts: PreparedPart[] = [];
  const measured: (MeasuredGroup[] | null)[] = [];
  for (const [index, part] of prepared.parts.entries()) {
    if (!isDivisible(part, effort)) {
      parts.push(part);
      measured.push(null);
      continue;
    }
    const progress = (done: number) => options.progress?.((index + done) / prepared.parts.length);
    const reference =
      part.reference ??
      attentionOracle(part.problem, { progress: (done) => progress(shareOfForward * done) });
    const { batch, kvHeads } = reference.shape;
    const requests = Array.from({ length: batch * kvHeads }, (_, kvHead) => ({ kvHead }));
    const settings = {
      premises,
      given: storedForward(part.problem, part.tensors),
      wanted: measuredNames(part),
      keys: part.keys,
      reference,
    };
    const groups: MeasuredGroup[] = [];
    const data = { problem: part.problem, dout: part.tensors.dout, settings };
    const runner = start(data, requests.length);
    try {
      await runner.run(
        requests,
        (group) => groups.push(group),
        (count) => progress(shareOfForward + ((1 - shareOfForward) * count) / requests.length),
      );
    } finally {
      await runner.close();
    }
    parts.push({ ...part, reference });
    measured.push(groups);
  }
  return judgePrepared({ ...prepared, parts }, problem, options, measured);
}
