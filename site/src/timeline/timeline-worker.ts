import { recordTimeline, RequestError, timelineMutants } from '../../../src/browser/index.js';
import type { TimelineAnswer, TimelineQuestion } from './protocol.js';

function answer(question: TimelineQuestion): TimelineAnswer {
  if (question.kind === 'mutants')
    return { kind: 'mutants', ids: timelineMutants().map(({ id }) => id) };
  try {
    return { kind: 'timeline', timeline: recordTimeline(question.request) };
  } catch (error) {
    const line =
      error instanceof RequestError
        ? error.message
        : `internal error, which is a bug in flashproof: ${String(error)}`;
    return { kind: 'refused', line };
  }
}

self.addEventListener('message', ({ data }: MessageEvent<TimelineQuestion>) =>
  self.postMessage(answer(data)),
);
