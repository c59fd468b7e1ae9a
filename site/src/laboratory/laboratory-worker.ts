import { RequestError, runExperiment } from '../../../src/browser/index.js';
import type { ExperimentAnswer, ExperimentQuestion } from './protocol.js';

const tell = (answer: ExperimentAnswer) => self.postMessage(answer);

async function answer({ id, request }: ExperimentQuestion): Promise<ExperimentAnswer> {
  const start = performance.now();
  const seconds = () => (performance.now() - start) / 1000;
  try {
    const table = await runExperiment(request, (outputs) =>
      tell({ id, kind: 'outputs', outputs, seconds: seconds() }),
    );
    return { id, kind: 'table', table, seconds: seconds() };
  } catch (error) {
    const line =
      error instanceof RequestError
        ? error.message
        : `internal error, which is a bug in flashproof: ${String(error)}`;
    return { id, kind: 'refused', line };
  }
}

self.addEventListener('message', ({ data }: MessageEvent<ExperimentQuestion>) => {
  void answer(data).then(tell);
});
