import {
  createRequestedMeasure,
  measureApart,
  measureBoundPart,
  measureRecurrentPart,
  type BoundPartAnswer,
  type BoundPartRequest,
  type BoundSettings,
  type GroupData,
  type GroupRequest,
  type MeasuredGroup,
  type MeasuredPart,
  type PartAnswer,
  type PartRequest,
  type PartSettings,
  type PartTensors,
  type RecurrentPlan,
  type RecurrentRequest,
} from '../../audit/index.js';
import { WorkingMemories } from '../../../oracles/index.js';
import type { TensorFiles } from '../../io/tensors/index.js';
import { lazily } from '../../reuse.js';
import type { Problem } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { readShared, shareInputs, type SharedProblem } from './part-source.js';
import { share, unshare, withoutViews, type Shared } from './shared-values.js';

/** Data for every thread of an audit. */
export interface PartThreadData {
  readonly source: SharedProblem;
  readonly settings: PartSettings;
  /** Whether to return the bounds too as they are made. */
  readonly withBounds: boolean;
}

/** Data for every thread that bounds a problem. */
export interface BoundThreadData {
  readonly problem: Shared<Problem>;
  readonly settings: BoundSettings;
}

/** Data for every thread that measures groups of gradients. */
export interface GroupThreadData {
  readonly problem: ReturnType<typeof shareInputs>;
  readonly rest: Shared<Omit<GroupData, 'problem'>>;
}

/** Data for every thread that measures key heads of a recurrence. */
export interface RecurrentThreadData {
  readonly plan: Shared<RecurrentPlan>;
}

/** Copies the data that groups are measured from to memory that threads share. */
export function shareGroups({ problem, ...rest }: GroupData): GroupThreadData {
  return { problem: shareInputs(problem), rest: share(rest) };
}

/** The original data of shared groups. */
function unshareGroups({ problem, rest }: GroupThreadData): GroupData {
  return { problem: unshare(problem), ...unshare(rest) };
}

/** An answer, or the message of a user error, which is an answer too. */
type Answer<T> = T | { readonly refusal: string };

async function answered<T>(answer: () => T | Promise<T>): Promise<Answer<T>> {
  try {
    return withoutViews(await answer());
  } catch (error) {
    if (error instanceof RequestError) return { refusal: error.message };
    throw error;
  }
}

/** The functions of a thread, for one request at a time, with the data that all threads are given. */
export interface ThreadWork {
  /** Measures parts of an audit. */
  readonly measureRequest: (request: PartRequest) => Promise<Answer<PartAnswer>>;
  /** Measures a group of gradients. */
  readonly measureGroup: (request: GroupRequest) => Promise<Answer<MeasuredGroup>>;
  /** Bounds a part of a problem. */
  readonly boundRequest: (request: BoundPartRequest) => Promise<Answer<BoundPartAnswer>>;
  /** Measures a key head of a recurrence. */
  readonly measureRecurrence: (request: RecurrentRequest) => Promise<Answer<MeasuredPart>>;
}

/**
 * The functions of a thread; each prepares its data at its first request.
 * @param data the data of the function that is called
 * @param files files to read keys from when they are not in memory
 * @param memories working memory of the parts' loops, for one request after the other
 */
export function threadWork(
  data: unknown,
  files: TensorFiles,
  memories = new WorkingMemories(),
): ThreadWork {
  const read = lazily(() => readShared((data as PartThreadData).source, files));
  const requested = lazily(() => createRequestedMeasure(unshareGroups(data as GroupThreadData)));
  const recurrence = lazily(() => unshare((data as RecurrentThreadData).plan));
  const whole = lazily(() => unshare((data as BoundThreadData).problem));
  return {
    measureRequest: (request) =>
      answered(async () => {
        const { settings, withBounds } = data as PartThreadData;
        const tensors: PartTensors[] = [];
        for (const part of request.parts) tensors.push(await read()(part));
        return measureApart(request, tensors, settings, withBounds, memories);
      }),
    measureGroup: (request) => answered(() => requested()(request)),
    boundRequest: (request) =>
      answered(() => measureBoundPart(request, whole(), (data as BoundThreadData).settings)),
    measureRecurrence: ({ part, index }) =>
      answered(() => measureRecurrentPart(recurrence(), part, index)),
  };
}
