import { rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { sep } from 'node:path';
import type { KernelOutputs } from '../audit/index.js';
import type { Problem } from '../problem/index.js';
import { RequestError } from '../request-error.js';
import { cleanUpWhenInterrupted } from './interruption.js';
import { offerProblem, withOutputs } from './kernel-exchange.js';
import type { FailureCause } from './kernel-answer.js';
import { startKernelProcess, type KernelProcess, type KernelRequest } from './kernel-process.js';
import { createTemporaryFolder } from './temporary-folder.js';

/** What a live kernel made of a problem; `reason` goes on after "the kernel's process". */
export type LiveAnswer =
  | { readonly ok: true; readonly outputs: KernelOutputs }
  | {
      readonly ok: false;
      readonly cause: FailureCause | 'output';
      readonly reason: string;
    };

/** A kernel's command that serves one problem after the other. */
export interface LiveKernel {
  /**
   * Asks for a problem's outputs; requests queue up. After a crash, a silence or a line that is no
   * answer the command is started anew for the next problem.
   */
  readonly run: (problem: Problem) => Promise<LiveAnswer>;
  /** Ends the process and removes the temporary files. */
  readonly close: () => Promise<void>;
}

/** After these the process goes on with the next problem. */
const survivable: readonly FailureCause[] = ['error', 'unsupported'];

async function readAnswer(request: KernelRequest, folder: string): Promise<LiveAnswer> {
  try {
    return await withOutputs(request, async (file) => {
      const out = await file.read('out');
      const lse = file.entries.has('lse') ? await file.read('lse') : null;
      return { ok: true, outputs: { out, lse } };
    });
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    // The folder's name is another each time, and gone when the message is read.
    const what = error.message.replaceAll(`${folder}${sep}`, '');
    return {
      ok: false,
      cause: 'output',
      reason: `answered but its output cannot be used: ${what}`,
    };
  }
}

/**
 * A kernel's command, started through the shell for the first problem and kept running. Problems and
 * outputs pass through a temporary folder. An interrupt (SIGINT, SIGTERM, SIGHUP) leaves neither process nor
 * folder behind.
 * @param timeoutSeconds how long one answer may take, the start of the command included
 */
export async function startLiveKernel(
  command: string,
  timeoutSeconds: number,
): Promise<LiveKernel> {
  const folder = await createTemporaryFolder();
  let kernel: KernelProcess | null = null;
  let queue: Promise<unknown> = Promise.resolve();

  const leaveNothing = () => {
    kernel?.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  const leaveAll = cleanUpWhenInterrupted(leaveNothing);

  const dismiss = async (): Promise<void> => {
    const dismissed = kernel;
    kernel = null;
    await dismissed?.close();
  };
  const answer = async (problem: Problem): Promise<LiveAnswer> => {
    const request = await offerProblem(problem, folder);
    kernel ??= startKernelProcess(command, timeoutSeconds);
    const answered = await kernel.request(request);
    if (answered.ok) return readAnswer(request, folder);
    if (!survivable.includes(answered.cause)) {
      kernel.stop();
      await dismiss();
    }
    return answered;
  };
  const run = (problem: Problem): Promise<LiveAnswer> => {
    const answered = queue.then(() => answer(problem));
    queue = answered.catch(() => undefined);
    return answered;
  };
  const close = async (): Promise<void> => {
    await queue;
    await dismiss();
    await rm(folder, { recursive: true, force: true });
    leaveAll();
  };
  return { run, close };
}
