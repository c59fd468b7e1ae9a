import {
  auditFiles,
  judgedNames,
  likelyTensors,
  RequestError,
} from '../../../src/browser/index.js';
import { tensorFilesOf } from './files.js';
import type { AuditAnswer, AuditQuestion, ListedFile, NamedFile } from './protocol.js';
import { startWorkers } from './worker-threads.js';

const tell = (answer: AuditAnswer) => self.postMessage(answer);

/** What a person is told of an error, in the command line's words. */
function lineOf(error: unknown): string {
  if (error instanceof RequestError) return error.message;
  // A browser throws it where an array does not fit.
  if (error instanceof RangeError)
    return `this does not fit in the browser's memory (${error.message}); judge it on the command line`;
  const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return `internal error, which is a bug in flashproof: ${what}`;
}

async function list(files: readonly NamedFile[]): Promise<readonly ListedFile[]> {
  const opened = tensorFilesOf(files);
  const one = async ([name]: NamedFile): Promise<ListedFile> => {
    try {
      const { entries } = await opened.open(name, {});
      const tensors = [...entries.values()].map(({ name: tensor, dtype, shape }) => ({
        name: tensor,
        dtype,
        shape,
      }));
      return { name, tensors, likely: likelyTensors({ entries }) };
    } catch (error) {
      return { name, refusal: lineOf(error) };
    }
  };
  return Promise.all(files.map(one));
}

async function answer(question: AuditQuestion): Promise<AuditAnswer> {
  if (question.kind === 'list')
    return { kind: 'listed', files: await list(question.files), judgedNames: judgedNames() };
  const { files, path, words, threads } = question;
  const start = performance.now();
  try {
    const { report, page, command } = await auditFiles(
      { path, files: tensorFilesOf(files), words, threads, version: __VERSION__ },
      (stage, done) => tell({ kind: 'progress', stage, done }),
      startWorkers,
    );
    const { pass, sentence } = report.verdict;
    return {
      kind: 'judged',
      pass,
      sentence,
      page,
      json: JSON.stringify(report, null, 2),
      command,
      seconds: (performance.now() - start) / 1000,
    };
  } catch (error) {
    return { kind: 'refused', line: lineOf(error) };
  }
}

self.addEventListener('message', ({ data }: MessageEvent<AuditQuestion>) => {
  void answer(data).then(tell);
});
