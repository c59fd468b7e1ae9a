import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';

/** One request of the process protocol, without its id. */
export interface KernelRequest {
  /** A safetensors file with q, k and v as [heads, seqlen, dim] or [batch, heads, seqlen, dim]. */
  readonly problem: string;
  /** Where the kernel is to write tensors `out` and, if it has one, `lse`. */
  readonly output: string;
  readonly scale: number;
  readonly causal: boolean;
  /** [left, right], −1 for no limit on that side; null for no window. */
  readonly window: readonly [number, number] | null;
  readonly softcap: number | null;
}

/**
 * What kept a request from being fulfilled. `error`: the kernel says that it failed; `unsupported`: it
 * says that it does not take such problems; `protocol`: a line that is no answer; `timeout`: no answer
 * in time; `ended`: the process ended; `not-started`: the command cannot be run at all.
 */
export type FailureCause =
  'error' | 'unsupported' | 'protocol' | 'timeout' | 'ended' | 'not-started';

/** What became of a request: `reason` says in one line what the kernel's process did wrong. */
export type KernelAnswer =
  | { readonly ok: true }
  | { readonly ok: false; readonly cause: FailureCause; readonly reason: string };

/** A kernel behind the process protocol: one JSON object a line in, one out. */
export interface KernelProcess {
  /** Sends a request and waits for its answer; never throws for what the process does. */
  readonly request: (request: KernelRequest) => Promise<KernelAnswer>;
  /** Closes the process's stdin, and stops it when it does not end by itself. */
  readonly close: () => Promise<void>;
  /** Stops the process, and what it has started, at once. */
  readonly stop: () => void;
}

/** How long a process may take to end after its stdin was closed. */
const closingMilliseconds = 2_000;

/** With what a shell ends that cannot execute (126) or find (127) the command: POSIX, 2.8.2. */
const shellFailures: readonly (number | null)[] = [126, 127];

/** Stops a process and what it has started, and may outlive it: it leads a group of its own. */
function stopGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // None of the group is left, or the system has no groups.
    child.kill('SIGKILL');
  }
}

function clip(line: string): string {
  return JSON.stringify(line.length > 120 ? `${line.slice(0, 120)}…` : line);
}

function protocolFailure(reason: string): KernelAnswer {
  return { ok: false, cause: 'protocol', reason };
}

/** The answer that a line on the kernel's stdout stands for. */
function parseAnswer(line: string, id: number): KernelAnswer {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    return protocolFailure(`wrote a line that is not JSON: ${clip(line)}`);
  }
  if (typeof parsed !== 'object' || parsed === null || !('id' in parsed) || !('ok' in parsed))
    return protocolFailure(`answered without "id" and "ok": ${clip(line)}`);
  if (parsed.id !== id)
    return protocolFailure(`answered request ${clip(String(parsed.id))} instead of ${id}`);
  if (parsed.ok === true) return { ok: true };
  const error = 'error' in parsed ? String(parsed.error) : 'no reason given';
  if ('unsupported' in parsed && parsed.unsupported === true)
    return { ok: false, cause: 'unsupported', reason: `declined the problem: ${clip(error)}` };
  return { ok: false, cause: 'error', reason: `reported an error: ${clip(error)}` };
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
  const stopAndLeave = (signal: NodeJS.Signals) => {
    stop();
    process.exit(signal === 'SIGINT' ? 130 : 143);
  };
  process.once('exit', stop);
  process.once('SIGINT', stopAndLeave);
  process.once('SIGTERM', stopAndLeave);

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
    // What it leaves behind would keep its stdout open.
    child.once('exit', stop);
    child.once('close', (code, signal) => {
      ended ??= {
        cause: !hasAnswered && shellFailures.includes(code) ? 'not-started' : 'ended',
        reason: signal === null ? `ended with status ${code}` : `was killed by ${signal}`,
      };
      settle(null);
      resolve();
    });
  });
  child.stdin.on('error', () => {
    // A process that is gone shows itself by its exit.
  });
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.trim() === '') return;
    hasAnswered = true;
    if (waiting === null) early.push(line);
    else settle(line);
  });

  const nextLine = () =>
    new Promise<string | null>((resolve) => {
      const line = early.shift();
      if (line !== undefined) resolve(line);
      else if (ended !== null) resolve(null);
      else waiting = resolve;
    });

  let id = 0;
  const request = async (body: KernelRequest): Promise<KernelAnswer> => {
    id++;
    if (ended === null) child.stdin.write(`${JSON.stringify({ id, ...body })}\n`);
    let timer: NodeJS.Timeout | undefined;
    const timedOut = new Promise<'timeout'>((resolve) => {
      timer = setTimeout(() => resolve('timeout'), timeoutSeconds * 1000);
    });
    const line = await Promise.race([nextLine(), timedOut]);
    clearTimeout(timer);
    if (line === 'timeout') {
      ended = { cause: 'timeout', reason: `gave no answer within ${timeoutSeconds} s` };
      stop();
    }
    if (line === 'timeout' || line === null)
      return { ok: false, ...(ended ?? { cause: 'ended', reason: 'ended without an answer' }) };
    return parseAnswer(line, id);
  };
  const close = async (): Promise<void> => {
    child.stdin.end();
    const timer = setTimeout(stop, closingMilliseconds);
    await exited;
    clearTimeout(timer);
    process.off('exit', stop);
    process.off('SIGINT', stopAndLeave);
    process.off('SIGTERM', stopAndLeave);
  };
  return { request, close, stop };
}
