import { existsSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  openTensorFile,
  posedKvLayout,
  posedLayout,
  writeProblem,
  type TensorFile,
} from '../index.js';
import {
  featureSettings,
  posedRows,
  quantities,
  type Problem,
  type Quantity,
  type StoredTensors,
  type WrittenOutputs,
} from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import {
  cleanUpWhenInterrupted,
  endsUnasked,
  type FeatureRequest,
  type KernelProcess,
  type KernelRequest,
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

/**
 * Takes the requested outputs from the file that a kernel wrote for a problem. A RequestError that it
 * throws, for a missing or misshapen tensor, is the kernel's failure.
 */
export type OutputReader<Outputs> = (
  file: TensorFile,
  problem: Problem,
  asked: AskedBeside,
) => Promise<Outputs>;

/** Outputs requested from a kernel beside its output and LSE. */
interface AskedBeside {
  /** Tensors of the problem's file beside the problem's own, as they are stored there. */
  readonly tensors?: StoredTensors;
  /** All requested tensors, by their names; left out where these are the output and the LSE. */
  readonly wants?: readonly string[];
  /** The number of splits of the keys; left out where the kernel chooses. */
  readonly splits?: number | undefined;
}

/**
 * Reads the outputs that a kernel wrote into a file: the first quantity always, since a kernel without
 * it is at fault, and the others where they exist.
 * @param read reads the tensor of a quantity
 * @param known all quantities
 */
export async function writtenOutputs<T>(
  { entries }: TensorFile,
  read: (quantity: Quantity) => Promise<T>,
  known: readonly Quantity[] = quantities,
): Promise<WrittenOutputs<T>> {
  const written: Record<string, T | null> = {};
  for (const [index, quantity] of known.entries()) {
    const { name } = quantity;
    written[name] = index === 0 || entries.has(name) ? await read(quantity) : null;
  }
  return written as unknown as WrittenOutputs<T>;
}

/** A kernel's command that serves one problem after the other. */
export interface LiveKernel<Outputs> {
  /** Folder for the files of problems and outputs: a new path each time, removed by `close`. */
  readonly folder: string;
  /**
   * Requests a problem's outputs; requests queue up. After a crash, a silence or a line that is no
   * answer the command is started anew for the next problem.
   */
  readonly run: (problem: Problem, asked?: AskedBeside) => Promise<LiveAnswer<Outputs>>;
  /** Ends the process and removes the temporary files. */
  readonly close: () => Promise<void>;
}

/** Failures after which the process goes on with the next problem. */
const survivable: readonly FailureCause[] = ['error', 'unsupported'];

/** Number of times that a command is started without a request, to see whether it waits for one. */
const idleStarts = 2;

/** Time that such a start may take to end: twice the time of a start with a request, plus this many milliseconds. */
const idleMilliseconds = 500;

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

/** The features that a request states beside the tensors of its file; features that the problem lacks are left out. */
function featureRequest(problem: Problem): FeatureRequest {
  const layout = posedLayout(problem);
  const kvLayout = posedKvLayout(problem);
  const keys = posedRows(problem)?.keys;
  return {
    ...featureSettings(problem),
    ...(keys?.form === 'paged' ? { page_size: keys.slotsPerGroup } : {}),
    ...(kvLayout === null ? {} : { kv_layout: kvLayout }),
    ...(layout === null ? {} : { layout }),
  };
}

/**
 * Writes a problem into a folder, in the form of the protocol: safetensors with its settings in the
 * metadata, in place of the problem before it. The kernel's output for that one is removed, so that
 * nobody takes it for an answer to this.
 * @returns the request to the kernel, which writes its output beside the problem
 */
async function offerProblem(
  problem: Problem,
  folder: string,
  { tensors = {}, wants, splits }: AskedBeside,
): Promise<KernelRequest> {
  const { scale, causal, window, softcap } = problem;
  const request: KernelRequest = {
    problem: join(folder, 'problem.safetensors'),
    output: join(folder, 'output.safetensors'),
    scale,
    causal,
    window: window === null ? null : [window.left, window.right],
    softcap,
    ...featureRequest(problem),
    ...(wants === undefined ? {} : { wants }),
    ...(splits === undefined ? {} : { splits }),
  };
  await rm(request.output, { recursive: true, force: true });
  // The kernel reads it from the system's cache at once; it is not needed after a loss of power.
  await writeProblem(request.problem, problem, { tensors }, { durable: false });
  return request;
}

/** Reads the outputs from the file that a kernel wrote. */
async function readOutputs<Outputs>(
  { output }: KernelRequest,
  problem: Problem,
  asked: AskedBeside,
  read: OutputReader<Outputs>,
): Promise<LiveAnswer<Outputs>> {
  try {
    if (!existsSync(output)) throw new RequestError('there is no file where it was to write it');
    const file = await openTensorFile(output);
    try {
      return { ok: true, outputs: await read(file, problem, asked) };
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
 * @param read takes the outputs from the file of an answer
 * @throws RequestError for an empty command, and when no temporary folder can be made
 */
export async function startLiveKernel<Outputs>(
  command: string,
  timeoutSeconds: number,
  read: OutputReader<Outputs>,
): Promise<LiveKernel<Outputs>> {
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
  const answer = async (problem: Problem, asked: AskedBeside): Promise<LiveAnswer<Outputs>> => {
    const request = await offerProblem(problem, folder, asked);
    kernel ??= startKernelProcess(command, timeoutSeconds);
    const begin = performance.now();
    const answered = await kernel.request(request);
    const lifetime = performance.now() - begin;
    hasAnswered ||= answered.ok || survivable.includes(answered.cause);
    if (answered.ok) return readOutputs(request, problem, asked, read);
    if (!survivable.includes(answered.cause)) {
      kernel.stop();
      await dismiss();
    }
    return answered.cause === 'ended' && !hasAnswered
      ? withoutRequest(command, answered, lifetime)
      : answered;
  };
  const run = (problem: Problem, asked: AskedBeside = {}): Promise<LiveAnswer<Outputs>> => {
    const answered = queue.then(() => answer(problem, asked));
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
