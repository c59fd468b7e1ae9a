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

/** What became of a request: `reason` says in one line what the kernel's process did wrong. */
export type KernelAnswer = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** A kernel behind the process protocol: one JSON object a line in, one out. */
export interface KernelProcess {
  /** Sends a request and waits for its answer; never throws for what the process does. */
  readonly request: (request: KernelRequest) => Promise<KernelAnswer>;
  /** Closes the process's stdin, and stops it when it does not end by itself. */
  readonly close: () => Promise<void>;
}

/** How long a process may take to end after its stdin was closed. */
const closingMilliseconds = 2_000;

/** Stops a process and what it has started: it leads a group of its own. */
function stop(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    child.kill('SIGKILL');
  }
}

function clip(line: string): string {
  return JSON.stringify(line.length > 120 ? `${line.slice(0, 120)}…` : line);
}

/** The answer that a line on the kernel's stdout stands for. */
function parseAnswer(line: string, id: number): KernelAnswer {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    return { ok: false, reason: `wrote a line that is not JSON: ${clip(line)}` };
  }
  if (typeof parsed !== 'object' || parsed === null || !('id' in parsed) || !('ok' in parsed))
    return { ok: false, reason: `answered without "id" and "ok": ${clip(line)}` };
  if (parsed.id !== id)
    return { ok: false, reason: `answered request ${clip(String(parsed.id))} instead of ${id}` };
  if (parsed.ok === true) return { ok: true };
  const error = 'error' in parsed ? String(parsed.error) : 'no reason given';
  return { ok: false, reason: `reported an error: ${clip(error)}` };
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
  const stopAtExit = () => stop(child);
  const stopAndLeave = (signal: NodeJS.Signals) => {
    stop(child);
    process.exit(signal === 'SIGINT' ? 130 : 143);
  };
  process.once('exit', stopAtExit);
  process.once('SIGINT', stopAndLeave);
  process.once('SIGTERM', stopAndLeave);

  let ended: string | null = null;
  let waiting: ((line: string | null) => void) | null = null;
  const early: string[] = [];
  const settle = (line: string | null) => {
    const resolve = waiting;
    waiting = null;
    resolve?.(line);
  };
  const exited = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      ended ??= `could not be started: ${error.message}`;
      settle(null);
      resolve();
    });
    child.once('close', (code, signal) => {
      ended ??= signal === null ? `ended with status ${code}` : `was killed by ${signal}`;
      settle(null);
      resolve();
    });
  });
  child.stdin.on('error', () => {
    // A process that is gone shows itself by its exit.
  });
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.trim() === '') return;
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
      ended = `gave no answer within ${timeoutSeconds} s`;
      stop(child);
    }
    if (line === 'timeout' || line === null)
      return { ok: false, reason: ended ?? 'ended without an answer' };
    const answer = parseAnswer(line, id);
    return answer;
  };
  const close = async (): Promise<void> => {
    child.stdin.end();
    const timer = setTimeout(() => stop(child), closingMilliseconds);
    await exited;
    clearTimeout(timer);
    process.off('exit', stopAtExit);
    process.off('SIGINT', stopAndLeave);
    process.off('SIGTERM', stopAndLeave);
  };
  return { request, close };
}
