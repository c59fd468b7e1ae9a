import {
  createRequestedMeasure,
  measureApart,
  measureBoundPart,
  type BoundPartAnswer,
  type BoundPartRequest,
  type BoundSettings,
  type GroupData,
  type GroupRequest,
  type MeasuredGroup,
  type PartAnswer,
  type PartRequest,
  type PartSettings,
  type PartTensors,
} from '../../audit/index.js';
import { WorkingMemories } from '../../../oracles/index.js';
import type { TensorFiles } from '../../io/tensors/index.js';
import { lazily } from '../../lazily.js';
import type { Problem } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { readShared, shareInputs, type SharedProblem } from './part-source.js';
import { share, unshare, withoutViews, type Shared } from './shared-values.js';

/** What every thread of an audit is given. */
export interface PartThreadData {
  readonly source: SharedProblem;
  readonly settings: PartSettings;
  /** Whether the bounds are wanted as they are made. */
  readonly withBounds: boolean;
}

/** What every thread is given that bounds a problem. */
export interface BoundThreadData {
  readonly problem: Shared<Problem>;
  readonly settings: BoundSettings;
}

/** What every thread is given that measures groups of gradients. */
export interface GroupThreadData {
  readonly problem: ReturnType<typeof shareInputs>;
  readonly rest: Shared<Omit<GroupData, 'problem'>>;
}

/** Copies what groups are measured from to memory that threads share. */
export function shareGroups({ problem, ...rest }: GroupData): GroupThreadData {
  return { problem: shareInputs(problem), rest: share(rest) };
}

/** What was shared. */
function unshareGroups({ problem, rest }: GroupThreadData): GroupData {
  return { problem: unshare(problem), ...unshare(rest) };
}

/** An answer, or what the user did wrong, which is an answer too. */
type Answer<T> = T | { readonly refusal: string };

async function answered<T>(answer: () => T | Promise<T>): Promise<Answer<T>> {
  try {
    return withoutViews(await answer());
  } catch (error) {
    if (error instanceof RequestError) return { refusal: error.message };
    throw error;
  }
}

/** What a thread does, a request at a time, with the data that all of them are given. */
export interface ThreadWork {
  /** Measures parts of an audit. */
  readonly measureRequest: (request: PartRequest) => Promise<Answer<PartAnswer>>;
  /** Measures a group of gradients. */
  readonly measureGroup: (request: GroupRequest) => Promise<Answer<MeasuredGroup>>;
  /** Bounds a part of a problem. */
  readonly boundRequest: (request: BoundPartRequest) => Promise<Answer<BoundPartAnswer>>;
}

/**
 * The functions of a thread; each makes its data ready at its first request.
 * @param data that of the function that is called
 * @param files that keys are read from which are not in memory
 * @param memories what the loops of parts work in, one request after the other
 */
export function threadWork(
  data: unknown,
  files: TensorFiles,
  memories = new WorkingMemories(),
): ThreadWork {
  const read = lazily(() => readShared((data as PartThreadData).source, files));
  const requested = lazily(() => createRequestedMeasure(unshareGroups(data as GroupThreadData)));
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
  };
}
