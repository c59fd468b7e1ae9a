import { threadWork, type ThreadWork } from '../../../src/browser/index.js';
import { tensorFilesOf } from './files.js';

/** What a worker is started with, once, and then each request. */
export type PartMessage =
  | { readonly kind: 'start'; readonly work: keyof ThreadWork; readonly data: object }
  | { readonly kind: 'request'; readonly request: unknown };

/** An answer, or what went wrong that is a mistake of ours. */
export type PartReply = { readonly answer: unknown } | { readonly error: string };

type Answer = (request: unknown) => Promise<unknown>;

const started: { answer: Answer | null } = { answer: null };

async function reply(request: unknown): Promise<PartReply> {
  try {
    return { answer: await started.answer!(request) };
  } catch (error) {
    return { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

self.addEventListener('message', ({ data }: MessageEvent<PartMessage>) => {
  if (data.kind === 'start')
    started.answer = threadWork(data.data, tensorFilesOf([]))[data.work] as Answer;
  else void reply(data.request).then((answer) => self.postMessage(answer));
});
