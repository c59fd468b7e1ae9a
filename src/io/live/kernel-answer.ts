import { printable, type TensorFile } from '../index.js';
import { quantities, type Quantity } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { nearestName } from '../../words/index.js';

/**
 * The names of tensors that a kernel wrote and that nothing reads, in the order of its file.
 * @param known all quantities
 * @throws RequestError for a name that looks like a misspelt quantity that is missing: it would go unjudged
 */
export function unaskedTensors(
  { entries }: Pick<TensorFile, 'entries'>,
  known: readonly Pick<Quantity, 'name'>[] = quantities,
): readonly string[] {
  const names = known.map(({ name }) => name);
  const missing = names.filter((name) => !entries.has(name));
  const unasked = [...entries.keys()].filter((name) => !names.includes(name));
  for (const name of unasked) {
    const meant = nearestName(name, missing);
    if (meant !== null)
      throw new RequestError(
        `it holds ${JSON.stringify(name)} and no ${JSON.stringify(meant)}; call it so, or leave it out`,
      );
  }
  return unasked;
}

/**
 * The cause of an unfulfilled request. `error`: the kernel says that it failed; `unsupported`: it says
 * that it does not support such problems; `protocol`: a line that is no answer; `timeout`: no answer
 * in time; `ended`: the process ended; `not-started`: the command cannot be run at all.
 */
export type FailureCause =
  'error' | 'unsupported' | 'protocol' | 'timeout' | 'ended' | 'not-started';

/** The outcome of a request; on failure, `reason` states in one line the fault of the kernel's process. */
export type KernelAnswer = { readonly ok: true } | KernelFailure;

/** A fault of a kernel's process. */
export interface KernelFailure {
  readonly ok: false;
  readonly cause: FailureCause;
  readonly reason: string;
}

/** Maximum number of characters of a kernel's text that a message repeats. */
const clippedLength = 120;

/** A kernel's text in double quotes: one line, harmless to a terminal, cut after 120 characters. */
function clip(text: string): string {
  return printable(
    JSON.stringify(text.length > clippedLength ? `${text.slice(0, clippedLength)}…` : text),
  );
}

/** A value of JSON as a message shows it: text as it is, everything else as JSON. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function protocolFailure(reason: string): KernelAnswer {
  return { ok: false, cause: 'protocol', reason };
}

/** The JSON value of a line; undefined for a line that is not JSON, or one nested too deep to show. */
function parsedLine(line: string): unknown {
  try {
    const value: unknown = JSON.parse(line);
    // Values nested some thousand deep can be parsed, but not written again.
    JSON.stringify(value);
    return value;
  } catch {
    return undefined;
  }
}

/**
 * The answer that a line on a kernel's stdout stands for. Never throws: a line that is no answer to
 * request `id` is a failure of cause `protocol`.
 */
export function parseKernelAnswer(line: string, id: number): KernelAnswer {
  const parsed = parsedLine(line);
  if (parsed === undefined) return protocolFailure(`wrote a line that is not JSON: ${clip(line)}`);
  if (typeof parsed !== 'object' || parsed === null || !('id' in parsed) || !('ok' in parsed))
    return protocolFailure(`answered without "id" and "ok": ${clip(line)}`);
  if (parsed.id !== id)
    return protocolFailure(`answered request ${clip(textOf(parsed.id))} instead of ${id}`);
  if (parsed.ok === true) return { ok: true };
  const error = 'error' in parsed ? textOf(parsed.error) : 'no reason given';
  if ('unsupported' in parsed && parsed.unsupported === true)
    return { ok: false, cause: 'unsupported', reason: `declined the problem: ${clip(error)}` };
  return { ok: false, cause: 'error', reason: `reported an error: ${clip(error)}` };
}

/** Maximum number of bytes of a line that are kept; an answer has some dozens. */
const mostLineBytes = 1 << 16;

const lineFeed = 0x0a;

/**
 * Splits a kernel's stdout into lines at each line feed, and nowhere else: JSON text may hold any
 * other line separator. The beginning of a line longer than 64 KiB is handed on as soon as it is
 * complete, and the rest is dropped, so that a process which never ends a line takes no memory.
 * Bytes that are not UTF-8 become U+FFFD. Blank lines are skipped.
 * @param onLine gets each line, without its end
 * @returns takes the next bytes
 */
export function createLineSplitter(onLine: (line: string) => void): (bytes: Uint8Array) => void {
  const kept = new Uint8Array(mostLineBytes);
  let length = 0;
  let isDropping = false;

  const emit = (): void => {
    const line = new TextDecoder().decode(kept.subarray(0, length)).trim();
    length = 0;
    if (line !== '') onLine(line);
  };
  const keep = (piece: Uint8Array): void => {
    if (isDropping) return;
    const fitting = piece.subarray(0, mostLineBytes - length);
    kept.set(fitting, length);
    length += fitting.length;
    if (fitting.length === piece.length) return;
    isDropping = true;
    emit();
  };
  return (bytes) => {
    let begin = 0;
    for (;;) {
      const end = bytes.indexOf(lineFeed, begin);
      keep(bytes.subarray(begin, end < 0 ? bytes.length : end));
      if (end < 0) return;
      if (!isDropping) emit();
      isDropping = false;
      begin = end + 1;
    }
  };
}
