import { closeSync, existsSync, fsyncSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { RequestError } from '../request-error.js';
import { plainJson, requestDifference, requestFingerprint } from './campaign-request.js';
import { readWholeFile, shown, shownPath, validHead } from './campaign-files.js';
import {
  type CampaignHead,
  createUnitLog,
  type LogSink,
  type UnitLog,
  type UnitRecord,
} from './unit-log.js';

/** The content of a journal. */
export interface JournalContent extends CampaignHead {
  readonly records: readonly UnitRecord[];
  /** Whether the time was up when it was last written. */
  readonly outOfTime: boolean;
  /** Bytes of its whole lines; the bytes after them are of a line that was never finished. */
  readonly wholeBytes: number;
}

export const journalKind = 'flashproof-journal';

/** The first line of a journal. */
function journalHead({ request, shard }: CampaignHead): object {
  return plainJson({
    kind: journalKind,
    schemaVersion: 1,
    fingerprint: requestFingerprint(request),
    shard,
    request,
  });
}

const newline = 0x0a;

/** The beginning of a journal; its first line may be cut off anywhere. */
const beginning = Buffer.from(`{"kind":"${journalKind}",`);

/** Whether bytes can be those of a journal: other files must never be taken for a truncated journal, and lost. */
function beginsAsJournal(bytes: Uint8Array): boolean {
  const length = Math.min(bytes.length, beginning.length);
  return beginning.subarray(0, length).equals(bytes.subarray(0, length));
}

function parseLine(path: string, text: string, number: number): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new RequestError(
      `${shownPath(path)}: line ${number} is damaged; delete it and what follows, and run the same command again`,
    );
  }
}

function isRecord(line: unknown): line is UnitRecord {
  if (typeof line !== 'object' || line === null) return false;
  const { unit, seconds, result } = line as Partial<UnitRecord>;
  return typeof unit === 'string' && typeof seconds === 'number' && result !== undefined;
}

function isOutOfTime(line: unknown): boolean {
  return (
    typeof line === 'object' && line !== null && 'outOfTime' in line && line.outOfTime === true
  );
}

/**
 * Reads the bytes of a journal. A last line without its newline was being written when the process
 * died, and does not count.
 * @returns null for a journal without a first line
 * @throws RequestError for a file that is no journal, and for one that is damaged before its end
 */
export function readJournalLines(path: string, bytes: Uint8Array): JournalContent | null {
  if (!beginsAsJournal(bytes))
    throw new RequestError(`${shownPath(path)}: is no journal of flashproof; name another file`);
  const wholeBytes = bytes.lastIndexOf(newline) + 1;
  if (wholeBytes === 0) return null;
  const lines = new TextDecoder().decode(bytes.subarray(0, wholeBytes - 1)).split('\n');
  const head = validHead(path, parseLine(path, lines[0], 1) as object);
  const records = new Map<string, UnitRecord>();
  let outOfTime = false;
  for (const [i, text] of lines.slice(1).entries()) {
    const line = parseLine(path, text, i + 2);
    outOfTime = isOutOfTime(line);
    if (outOfTime) continue;
    if (!isRecord(line))
      throw new RequestError(
        `${shownPath(path)}: line ${i + 2} is no unit of work; delete it and what follows, and run the same command again`,
      );
    if (records.has(line.unit))
      throw new RequestError(
        `${shownPath(path)}: holds unit ${shown(line.unit)} twice, as when two processes write one journal; give each its own`,
      );
    records.set(line.unit, line);
  }
  return { ...head, records: [...records.values()], outOfTime, wholeBytes };
}

/** @throws RequestError, in place of the system's error for the file */
function withFile<T>(path: string, what: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new RequestError(
      `${shownPath(path)}: cannot be ${what} (${code}: ${shown(message)}); check the path`,
    );
  }
}

/**
 * The content of a journal; null where there is none yet.
 * @throws RequestError for a file that cannot be read, is no journal or is damaged before its end
 */
export function readJournal(path: string): JournalContent | null {
  if (!existsSync(path)) return null;
  return readJournalLines(path, readWholeFile(path));
}

/** Makes a new file's name durable, where the system lets a folder be synchronized. */
function syncFolder(path: string): void {
  try {
    const folder = openSync(dirname(path), 'r');
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  } catch {
    // Windows has no such thing.
  }
}

/** Appends lines, each on the disk before the next step of the work. */
function journalSink(path: string, wholeBytes: number): LogSink {
  const file = withFile(path, 'written', () => openSync(path, wholeBytes === 0 ? 'w' : 'r+'));
  let end = wholeBytes;
  const durably = (act: () => void): void =>
    withFile(path, 'written', () => {
      act();
      fsyncSync(file);
    });
  if (wholeBytes === 0) syncFolder(path);
  else durably(() => ftruncateSync(file, wholeBytes));
  return {
    write: (line) => {
      const bytes = Buffer.from(`${JSON.stringify(line)}\n`);
      durably(() => {
        for (let at = 0; at < bytes.length;)
          at += writeSync(file, bytes, at, bytes.length - at, end + at);
      });
      end += bytes.length;
    },
    close: () => closeSync(file),
  };
}

/**
 * Opens the journal of a campaign, or begins one: JSON Lines, the first of them the request, then one
 * for each unit, on the disk (fsync) before the next is begun. A last line that was cut off is dropped.
 * @throws RequestError for a journal of another request or shard, with the difference, and for a file
 * that cannot be read or written
 */
export function openJournal(path: string, head: CampaignHead): UnitLog {
  const content = readJournal(path);
  const difference =
    content === null
      ? null
      : requestDifference(
          { shard: content.shard, ...content.request },
          plainJson({ shard: head.shard, ...head.request }),
        );
  if (difference !== null)
    throw new RequestError(
      `${shownPath(path)}: is the journal of another request: ${difference}; repeat that one, or name another file`,
    );
  const sink = journalSink(path, content?.wholeBytes ?? 0);
  if (content === null) sink.write(journalHead(head));
  return createUnitLog(content?.records ?? [], sink);
}
