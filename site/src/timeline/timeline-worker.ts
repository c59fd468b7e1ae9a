import { recordTimeline, RequestError, timelineMutants } from '../../../src/browser/index.js';
import type { TimelineAnswer, TimelineQuestion } from './protocol.js';

async function answer(question: TimelineQuestion): Promise<TimelineAnswer> {
  if (question.kind === 'mutants') return { kind: 'mutants', mutants: await timelineMutants() };
  try {
    return { kind: 'timeline', timeline: await recordTimeline(question.request) };
  } catch (error) {
    const line =
      error instanceof RequestError
        ? error.message
        : `internal error, which is a bug in flashproof: ${String(error)}`;
    return { kind: 'refused', line };
  }
}

self.addEventListener('message', ({ data }: MessageEvent<TimelineQuestion>) => {
  void answer(data).then((found) => self.postMessage(found));
});
