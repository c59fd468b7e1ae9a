import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  createLineSplitter,
  type FailureCause,
  type KernelAnswer,
  parseKernelAnswer,
} from './kernel-answer.js';

/**
 * The signals that ask a process to end, and the status with which a shell would report this: 128 and
 * the signal's number (POSIX.1-2017, 2.8.2).
 */
const statuses: Readonly<Partial<Record<NodeJS.Signals, number>>> = {
  SIGHUP: 129,
  SIGINT: 130,
  SIGTERM: 143,
};

/**
 * Runs `cleanUp` when the process ends before the returned function is called: at its exit, and on
 * SIGHUP, SIGINT and SIGTERM, which then end it with status 129, 130 and 143. A SIGKILL leaves no
 * time for it.
 * @param cleanUp must be synchronous
 * @returns withdraws it
 */
export function cleanUpWhenInterrupted(cleanUp: () => void): () => void {
  const handlers = Object.entries(statuses).map(
    ([signal, status]) => [signal, () => process.exit(status)] as const,
  );
  process.once('exit', cleanUp);
  for (const [signal, handler] of handlers) process.once(signal, handler);
  return () => {
    process.off('exit', cleanUp);
    for (const [signal, handler] of handlers) process.off(signal, handler);
  };
}

/** The features that a request states beside the tensors of its file; features that the problem lacks are left out. */
export interface FeatureRequest {
  /** Number of leading keys that every query sees, whatever causal and window say. */
  readonly prefix?: number;
  /** Whether the LSE has the sink. */
  readonly lse_sink?: boolean;
  readonly dropout_p?: number;
  /** Queries and keys of a block of the block mask; queries that share a list of keys. */
  readonly block_q?: number;
  readonly block_k?: number;
  /** Keys of a block of `block_index`. */
  readonly block_size?: number;
  /** Keys of a page. */
  readonly page_size?: number;
  /** The layout of pages; given only where heads come first. */
  readonly kv_layout?: 'HND';
  /** The layout of padded sequences; `out` has the layout of q. */
  readonly layout?: 'bhsd' | 'bshd';
}

/** The files of a request of the process protocol, whatever it is of. */
export interface FileRequest {
  /** The safetensors file of the problem. */
  readonly problem: string;
  /** File to which the kernel writes its tensors, named as the quantities: `out`, `lse`. */
  readonly output: string;
}

/**
 * What a request of attention says beside its files. The problem's has q, k and v as [heads, seqlen, dim] or
 * [batch, heads, seqlen, dim], or as packed, padded or paged sequences; and the tensors of the problem's features.
 */
export interface AttentionRequest extends FeatureRequest {
  readonly scale: number;
  readonly causal: boolean;
  /** [left, right], −1 for no limit on that side; null for no window. */
  readonly window: readonly [number, number] | null;
  readonly softcap: number | null;
  /** The requested tensors; left out where these are `out` and `lse`. */
  readonly wants?: readonly string[];
  /** The number of splits of the keys; left out where the kernel chooses. */
  readonly splits?: number;
}

/** A kernel behind the process protocol: one JSON object a line in, one out. */
export interface KernelProcess {
  /** Sends a request and waits for its answer; never throws, whatever the process does. */
  readonly request: <Request extends FileRequest>(request: Request) => Promise<KernelAnswer>;
  /** Closes the process's stdin, and stops the process when it does not end by itself. */
  readonly close: () => Promise<void>;
  /** Stops the process, and the processes that it started, at once. */
  readonly stop: () => void;
}

/** Time that a process may take to end after its stdin was closed. */
const closingMilliseconds = 2_000;

/** Maximum time that a timer can take: 24 days. A longer one would go off at once. */
const mostMilliseconds = 2 ** 31 - 1;

/**
 * Maximum number of lines that are kept until they are requested: one is already too many, and one more than this is a
 * flood.
 */
const mostEarlyLines = 16;

/** Statuses with which a shell ends when it cannot execute (126) or find (127) the command: POSIX, 2.8.2. */
const shellFailures: readonly (number | null)[] = [126, 127];

/** Describes how a process ended. */
function endingOf(code: number | null, signal: string | null): string {
  return signal === null ? `ended with status ${code}` : `was killed by ${signal}`;
}

/** Stops a process and the processes that it started, which may outlive it: it leads a group of its own. */
function stopGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // None of the group is left, or the system has no groups.
    child.kill('SIGKILL');
  }
}

/**
 * Starts a kernel's command without a request: the way in which it ended by itself within this time, as a sentence's end; null
 * where it waits for a request. Its output is dropped.
 */
export async function endsUnasked(command: string, milliseconds: number): Promise<string | null> {
  const child = spawn(command, {
    shell: true,
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const leaveItRunning = cleanUpWhenInterrupted(() => stopGroup(child));
  const timer = new AbortController();
  try {
    const ended = once(child, 'exit') as Promise<[code: number | null, signal: string | null]>;
    const { signal } = timer;
    const waited = sleep(Math.min(milliseconds, mostMilliseconds), null, { signal });
    const end = await Promise.race([ended, waited.catch(() => null)]);
    return end === null ? null : endingOf(...end);
  } finally {
    timer.abort();
    stopGroup(child);
    leaveItRunning();
  }
}

/**
 * Starts a kernel's command through the shell. Its stderr passes through; its stdin carries requests
 * until `close`. A crash, a silence longer than `timeoutSeconds`, and a line that is no answer become
 * answers that are not ok; after one of them the process is stopped and later requests fail at once.
 */
export function startKernelProcess(command: string, timeoutSeconds: number): KernelProcess {
  const child = spawn(command, {
    shell: true,
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const stop = () => stopGroup(child);
  const leaveItRunning = cleanUpWhenInterrupted(stop);

  let ended: { readonly cause: FailureCause; readonly reason: string } | null = null;
  let hasAnswered = false;
  let waiting: ((line: string | null) => void) | null = null;
  const early: string[] = [];
  const settle = (line: string | null) => {
    const resolve = waiting;
    waiting = null;
    resolve?.(line);
  };
  const exited = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      ended ??= { cause: 'not-started', reason: `could not be started: ${error.message}` };
      settle(null);
      resolve();
    });
    // Processes that it leaves behind would keep its stdout open.
    child.once('exit', stop);
    child.once('close', (code, signal) => {
      ended ??= {
        cause: !hasAnswered && shellFailures.includes(code) ? 'not-started' : 'ended',
        reason: endingOf(code, signal),
      };
      settle(null);
      resolve();
    });
  });
  child.stdin.on('error', () => {
    // A process that is gone shows itself by its exit.
  });
  const split = createLineSplitter((line) => {
    hasAnswered = true;
    if (waiting !== null) settle(line);
    else if (early.length < mostEarlyLines) early.push(line);
  });
  child.stdout.on('data', split);

  const nextLine = () =>
    new Promise<string | null>((resolve) => {
      const line = early.shift();
      if (line !== undefined) resolve(line);
      else if (ended !== null) resolve(null);
      else waiting = resolve;
    });

  let id = 0;
  const request = async (body: FileRequest): Promise<KernelAnswer> => {
    id++;
    if (ended === null) child.stdin.write(`${JSON.stringify({ id, ...body })}\n`);
    let timer: NodeJS.Timeout | undefined;
    const timedOut = new Promise<'timeout'>((resolve) => {
      timer = setTimeout(
        () => resolve('timeout'),
        Math.min(timeoutSeconds * 1000, mostMilliseconds),
      );
    });
    const line = await Promise.race([nextLine(), timedOut]);
    clearTimeout(timer);
    if (line === 'timeout') {
      ended = { cause: 'timeout', reason: `gave no answer within ${timeoutSeconds} s` };
      stop();
    }
    if (line === 'timeout' || line === null)
      return { ok: false, ...(ended ?? { cause: 'ended', reason: 'ended without an answer' }) };
    return parseKernelAnswer(line, id);
  };
  const close = async (): Promise<void> => {
    child.stdin.end();
    const timer = setTimeout(stop, closingMilliseconds);
    await exited;
    clearTimeout(timer);
    leaveItRunning();
  };
  return { request, close, stop };
}
