import { problemShape, type Problem, type Tensor } from '../../problem/index.js';
import { lazily } from '../../reuse.js';
import type { MeasuringTerms, Stages } from '../conduct/stage.js';
import { multiplyAddsOf } from '../rows/index.js';
import type { GradientPremises } from './bounds/index.js';
import type { JudgedGradientName } from './gradient-quantities.js';
import {
  createGroupMeasure,
  forwardReference,
  gatherGroups,
  measureGradients,
  shareOfForward,
  type GradientMeasure,
  type GroupSettings,
  type MeasuredGradients,
  type MeasuredGroup,
} from './measure-gradients.js';
import {
  measuredNames,
  storedForward,
  type PreparedGradients,
  type PreparedPart,
} from './plan-gradients.js';

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

/** Makes a function that measures the groups of another thread's problem. */
export function createRequestedMeasure({
  problem,
  dout,
  settings,
}: GroupData): (request: GroupRequest) => MeasuredGroup {
  const measure = createGroupMeasure(problem, dout, settings);
  return ({ kvHead }) => measure(kvHead);
}

/** The types of the measurements of gradients. */
export interface GradientMeasurements extends MeasuringTerms {
  readonly request: GroupRequest;
  readonly answer: MeasuredGroup;
  readonly data: GroupData;
  /** Those of each part. */
  readonly measured: readonly MeasuredGradients[];
}

/** Measures the gradients of a part. */
export function measureGradientPart(
  { problem, tensors, given, keys, names }: PreparedPart,
  premises: GradientPremises,
  known: Partial<Pick<GradientMeasure, 'reference' | 'progress' | 'given'>>,
): MeasuredGradients {
  const formatOf = (name: JudgedGradientName) =>
    given.find(({ quantity }) => quantity.name === name)?.format ?? null;
  return measureGradients(problem, tensors.dout, {
    given: storedForward(problem, tensors),
    ...known,
    premises,
    shared: { dbias: formatOf('dbias'), dsink: formatOf('dsink') },
    wanted: measuredNames({ names }),
    keys,
  });
}

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

/** The measurements of planned gradients, part by part: the forward, then the groups of heads; or all in one. */
export function* gradientStages({
  parts,
  premises,
  groupEffort,
}: PreparedGradients): Stages<GradientMeasurements> {
  const measured: MeasuredGradients[] = [];
  for (const [index, part] of parts.entries()) {
    const named = (from: number, to: number) => ({
      name: 'oracle',
      share: [(index + from) / parts.length, (index + to) / parts.length] as const,
    });
    const { problem, tensors, keys } = part;
    const known = { reference: part.reference ?? undefined };
    if (!isDivisible(part, groupEffort)) {
      const work = (progress: (done: number) => void) =>
        void measured.push(measureGradientPart(part, premises, { ...known, progress }));
      yield [{ ...named(0, 1), work }];
      continue;
    }
    yield [
      {
        ...named(0, shareOfForward),
        work: (progress) => (known.reference ??= forwardReference(problem, premises, progress)),
      },
    ];
    const reference = known.reference!;
    const given = storedForward(problem, tensors);
    const settings = { premises, given, wanted: measuredNames(part), keys, reference };
    const data = { problem, dout: tensors.dout, settings };
    const { batch, kvHeads } = reference.shape;
    const here = lazily(() => createRequestedMeasure(data));
    const { add, finish } = gatherGroups(settings);
    yield [
      {
        ...named(shareOfForward, 1),
        requests: Array.from({ length: batch * kvHeads }, (_, kvHead) => ({ kvHead })),
        data,
        isDivided: true,
        measure: (request) => here()(request),
        settle: add,
      },
    ];
    measured.push(finish());
  }
  return measured;
}
