import { workerData } from 'piscina';
import { measureApart, type PartAnswer, type PartRequest } from '../../audit/index.js';
import { lazily } from '../../lazily.js';
import { RequestError } from '../../request-error.js';
import type { PartThreadData } from './part-threads.js';
import { readShared } from './part-source.js';
import { withoutViews } from './shared-values.js';

const data = workerData as PartThreadData;
const read = lazily(() => readShared(data.source));

/** What a worker thread of part-threads.ts does: one request. What the user did wrong is an answer too. */
export function measureRequest(request: PartRequest): PartAnswer | { readonly refusal: string } {
  try {
    const tensors = request.parts.map(read());
    return withoutViews(measureApart(request, tensors, data.settings, data.withBounds));
  } catch (error) {
    if (error instanceof RequestError) return { refusal: error.message };
    throw error;
  }
}
