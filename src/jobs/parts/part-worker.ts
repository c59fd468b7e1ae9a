import { workerData } from 'piscina';
import {
  createRequestedMeasure,
  measureApart,
  measureBoundPart,
  type BoundPartAnswer,
  type BoundPartRequest,
  type GroupRequest,
  type MeasuredGroup,
  type PartAnswer,
  type PartRequest,
  type PartTensors,
} from '../../audit/index.js';
import { lazily } from '../../lazily.js';
import { RequestError } from '../../request-error.js';
import { unshareGroups, type GroupThreadData } from './group-threads.js';
import type { BoundThreadData, PartThreadData } from './part-threads.js';
import { readShared } from './part-source.js';
import { unshare, withoutViews } from './shared-values.js';

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

const read = lazily(() => readShared((workerData as PartThreadData).source));

/** What a worker thread of an audit does: one request. */
export function measureRequest(request: PartRequest): Promise<Answer<PartAnswer>> {
  const { settings, withBounds } = workerData as PartThreadData;
  return answered(async () => {
    const tensors: PartTensors[] = [];
    for (const part of request.parts) tensors.push(await read()(part));
    return measureApart(request, tensors, settings, withBounds);
  });
}

const requested = lazily(() =>
  createRequestedMeasure(unshareGroups(workerData as GroupThreadData)),
);

/** What a worker thread does that measures gradients: one group. */
export function measureGroup(request: GroupRequest): Promise<Answer<MeasuredGroup>> {
  return answered(() => requested()(request));
}

const whole = lazily(() => unshare((workerData as BoundThreadData).problem));

/** What a worker thread does that bounds a problem: one request. */
export function boundRequest(request: BoundPartRequest): Promise<Answer<BoundPartAnswer>> {
  const { settings } = workerData as BoundThreadData;
  return answered(() => measureBoundPart(request, whole(), settings));
}
