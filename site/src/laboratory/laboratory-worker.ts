import { createLaboratory, RequestError } from '../../../src/browser/index.js';
import type { ExperimentAnswer, ExperimentQuestion } from './protocol.js';

const runExperiment = createLaboratory();
const asked = { newest: 0 };
const tell = (answer: ExperimentAnswer) => self.postMessage(answer);

/** Whether a question is the newest, once those that wait were heard. */
async function isNewest(id: number): Promise<boolean> {
  await new Promise((resolve) => setTimeout(resolve, 0));
  return id === asked.newest;
}

/** Answers a question in two steps, each of them unless a newer one has come. */
async function answer({ id, request }: ExperimentQuestion): Promise<void> {
  if (!(await isNewest(id))) return;
  const start = performance.now();
  const seconds = () => (performance.now() - start) / 1000;
  try {
    const { outputs, measureTechniques } = runExperiment(request);
    tell({ id, kind: 'outputs', outputs, seconds: seconds() });
    if (!(await isNewest(id))) return;
    tell({ id, kind: 'table', table: measureTechniques(), seconds: seconds() });
  } catch (error) {
    const line =
      error instanceof RequestError
        ? error.message
        : `internal error, which is a bug in flashproof: ${String(error)}`;
    tell({ id, kind: 'refused', line });
  }
}

self.addEventListener('message', ({ data }: MessageEvent<ExperimentQuestion>) => {
  asked.newest = data.id;
  void answer(data);
});
