import { existsSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openTensorFile, type TensorFile } from '../index.js';
import { RequestError } from '../../request-error.js';
import {
  cleanUpWhenInterrupted,
  endsUnasked,
  type FileRequest,
  type KernelProcess,
  startKernelProcess,
} from './kernel-process.js';
import type { FailureCause, KernelFailure } from './kernel-answer.js';

/** The reason why a live kernel gave no outputs; `reason` continues "the kernel's process". */
export interface LiveFailure {
  readonly ok: false;
  /** `output`: it answered, but its output is not what was requested. */
  readonly cause: FailureCause | 'output';
  readonly reason: string;
}

/** The outputs of a live kernel for a problem, or its failure. */
export type LiveAnswer<Outputs> = { readonly ok: true; readonly outputs: Outputs } | LiveFailure;

/** How what is asked of a kernel passes to its process, and how the answer comes back. */
export interface Exchange<Asked, Outputs> {
  /** Writes the problem to a file, in the form of the protocol. Returns what the request says beside the files. */
  readonly offer: (asked: Asked, path: string) => Promise<object>;
  /**
   * Takes the outputs from the file that the kernel wrote. A RequestError that it throws, for a missing or misshapen
   * tensor, is the kernel's failure.
   */
  readonly read: (file: TensorFile, asked: Asked) => Promise<Outputs>;
}

/** A command that serves one problem after the other. */
export interface LiveProcess<Asked, Outputs> {
  /** Folder for the files of problems and outputs: a new path each time, removed by `close`. */
  readonly folder: string;
  /**
   * Requests a problem's outputs; requests queue up. After a crash, a silence or a line that is no
   * answer the command is started anew for the next problem.
   */
  readonly run: (asked: Asked) => Promise<LiveAnswer<Outputs>>;
  /** Ends the process and removes the temporary files. */
  readonly close: () => Promise<void>;
}

/** Failures after which the process goes on with the next problem. */
const survivable: readonly FailureCause[] = ['error', 'unsupported'];

/** Number of times that a command is started without a request, to see whether it waits for one. */
const idleStarts = 2;

/** Time that such a start may take to end: twice the time of a start with a request, plus this many milliseconds. */
const idleMilliseconds = 2000;

/**
 * Tells a command that cannot be started, which ends with or without a request, from one that ends because of
 * a problem.
 * @param lifetime milliseconds in which it ended after a request
 */
async function withoutRequest(
  command: string,
  failure: KernelFailure,
  lifetime: number,
): Promise<KernelFailure> {
  let reason = failure.reason;
  for (let start = 0; start < idleStarts; start++) {
    const ending = await endsUnasked(command, 2 * lifetime + idleMilliseconds);
    if (ending === null) return failure;
    reason = `${ending} before it was asked anything`;
  }
  return { ...failure, cause: 'not-started', reason };
}

/** The line for a command that cannot be started. */
export function notStarted(command: string, { reason }: LiveFailure): string {
  return `--exec is ${JSON.stringify(command)}, which cannot be run: its process ${reason}; check the command and the path`;
}

/**
 * Makes a folder of a new name in the system's folder for temporary files, which TMPDIR names.
 * @throws RequestError when it cannot be made
 */
async function createTemporaryFolder(): Promise<string> {
  const parent = tmpdir();
  return mkdtemp(join(parent, 'flashproof-')).catch((error: NodeJS.ErrnoException) => {
    throw new RequestError(
      `${parent}: no temporary folder can be made in it (${error.code ?? error.message}); ` +
        'set TMPDIR to a folder that can be written',
    );
  });
}

/**
 * Writes what is asked into a folder, in place of what was asked before. The kernel's output for that is removed, so
 * that nobody takes it for an answer to this.
 * @returns the request to the kernel, which writes its output beside the problem
 */
async function offerFiles<Asked, Outputs>(
  asked: Asked,
  folder: string,
  { offer }: Exchange<Asked, Outputs>,
): Promise<FileRequest> {
  const problem = join(folder, 'problem.safetensors');
  const output = join(folder, 'output.safetensors');
  await rm(output, { recursive: true, force: true });
  return { problem, output, ...(await offer(asked, problem)) };
}

/** Reads the outputs from the file that a kernel wrote. */
async function readOutputs<Asked, Outputs>(
  { output }: FileRequest,
  asked: Asked,
  { read }: Exchange<Asked, Outputs>,
): Promise<LiveAnswer<Outputs>> {
  try {
    if (!existsSync(output)) throw new RequestError('there is no file where it was to write it');
    const file = await openTensorFile(output);
    try {
      return { ok: true, outputs: await read(file, asked) };
    } finally {
      await file.close();
    }
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    const reason = `answered but its output cannot be used: ${error.message}`;
    return { ok: false, cause: 'output', reason };
  }
}

/**
 * A kernel's command, started through the shell for the first problem and kept running. Problems and
 * outputs pass through a temporary folder. After an interrupt (SIGINT, SIGTERM, SIGHUP) neither process
 * nor folder remains.
 * @param timeoutSeconds time that one answer may take, including the start of the command
 * @param exchange how problems and outputs are written and read
 * @throws RequestError for an empty command, and when no temporary folder can be made
 */
export async function startLiveProcess<Asked, Outputs>(
  command: string,
  timeoutSeconds: number,
  exchange: Exchange<Asked, Outputs>,
): Promise<LiveProcess<Asked, Outputs>> {
  if (command.trim() === '')
    throw new RequestError(`--exec is ${JSON.stringify(command)}; give the command of a kernel`);
  const folder = await createTemporaryFolder();
  let hasAnswered = false;
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
  const answer = async (asked: Asked): Promise<LiveAnswer<Outputs>> => {
    const request = await offerFiles(asked, folder, exchange);
    kernel ??= startKernelProcess(command, timeoutSeconds);
    const begin = performance.now();
    const answered = await kernel.request(request);
    const lifetime = performance.now() - begin;
    hasAnswered ||= answered.ok || survivable.includes(answered.cause);
    if (answered.ok) return readOutputs(request, asked, exchange);
    if (!survivable.includes(answered.cause)) {
      kernel.stop();
      await dismiss();
    }
    return answered.cause === 'ended' && !hasAnswered
      ? withoutRequest(command, answered, lifetime)
      : answered;
  };
  const run = (asked: Asked): Promise<LiveAnswer<Outputs>> => {
    const answered = queue.then(() => answer(asked));
    queue = answered.catch(() => undefined);
    return answered;
  };
  const close = async (): Promise<void> => {
    await queue;
    await dismiss();
    await rm(folder, { recursive: true, force: true });
    leaveAll();
  };
  return { folder, run, close };
}
