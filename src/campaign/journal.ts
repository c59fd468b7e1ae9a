import { closeSync, existsSync, fsyncSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { RequestError } from '../request-error.js';
import { plainJson, requestDifference } from './campaign-request.js';
import { journalHead, readJournalLines, type JournalContent } from './journal-lines.js';
import { readWholeFile, shown, shownPath } from './read-whole-file.js';
import { createUnitLog, type CampaignHead, type LogSink, type UnitLog } from './unit-log.js';

/** @throws RequestError, in place of what the system says of the file */
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
 * @throws RequestError for a journal of another request or shard, with what differs, and for a file
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
