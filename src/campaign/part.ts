import { RequestError } from '../request-error.js';
import { plainJson, requestFingerprint } from './campaign-request.js';
import { journalKind, readJournalLines } from './journal.js';
import { readWholeFile, shown, shownPath, validHead } from './campaign-files.js';
import type { CampaignHead, UnitRecord } from './unit-log.js';

/** The results of one shard. */
export interface Part extends CampaignHead {
  readonly records: ReadonlyMap<string, UnitRecord>;
  /** Whether its time was up before all its units were done. */
  readonly outOfTime: boolean;
  /** The reason that its kernel could not be run at all, in a clause; null when it could. */
  readonly execution: string | null;
}

/** A part with the file that it was read from. */
export interface PartFile extends Part {
  readonly path: string;
}

/** The verdict of one shard, for its readers; `merge` makes its own. */
export interface PartVerdict {
  readonly pass: boolean;
  readonly sentence: string;
}

/** The wall-clock time of units, in seconds. */
export function secondsOf(records: Iterable<UnitRecord>): number {
  let total = 0;
  for (const { seconds } of records) total += seconds;
  return total;
}

/** The JSON document that a shard writes, and `flashproof merge` reads. */
export function partDocument(part: Part, verdict: PartVerdict, created = new Date()): object {
  const { request, shard, records, outOfTime, execution } = part;
  const { version, command } = request;
  return plainJson({
    kind: 'part',
    schemaVersion: 1,
    tool: { name: 'flashproof', version },
    created: created.toISOString(),
    seconds: secondsOf(records.values()),
    command,
    fingerprint: requestFingerprint(request),
    shard,
    verdict,
    outOfTime,
    execution,
    request,
    units: [...records.values()],
  });
}

/** The members of a document of a part beside its head. */
interface PartBody {
  readonly units: readonly UnitRecord[];
  readonly outOfTime: boolean;
  readonly execution: string | null;
}

function isBody(value: object): value is PartBody {
  const { units, outOfTime, execution } = value as Partial<PartBody>;
  return (
    Array.isArray(units) &&
    units.every(
      (record: Partial<UnitRecord> | null) =>
        typeof record?.unit === 'string' &&
        typeof record.seconds === 'number' &&
        record.result !== undefined,
    ) &&
    typeof outOfTime === 'boolean' &&
    (execution === null || typeof execution === 'string')
  );
}

function recordsOf(units: readonly UnitRecord[]): Map<string, UnitRecord> {
  return new Map(units.map((record) => [record.unit, record]));
}

/** The first whole line of a file as JSON; null if it is not JSON. */
function firstLine(bytes: Buffer): unknown {
  const end = bytes.indexOf('\n');
  try {
    return JSON.parse(bytes.toString('utf8', 0, end < 0 ? bytes.length : end));
  } catch {
    return null;
  }
}

function kindOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'kind' in value ? value.kind : null;
}

/** The error for a file that is not a part, with a hint if it is a whole report. */
function notAPart(path: string, kind: unknown): RequestError {
  const found =
    typeof kind === 'string' ? `a report of kind "${shown(kind)}"` : 'no JSON of flashproof';
  return new RequestError(
    `${shownPath(path)}: is ${found}, not a part or a journal; give what --json or --journal writes with --shard`,
  );
}

/**
 * Reads a part, or the journal of one.
 * @throws RequestError for a file that is neither
 */
export function readPart(path: string): PartFile {
  const bytes = readWholeFile(path);
  if (kindOf(firstLine(bytes)) === journalKind) {
    const content = readJournalLines(path, bytes);
    if (content === null)
      throw new RequestError(
        `${shownPath(path)}: its first line is cut off; run the same command again`,
      );
    const { request, shard, records, outOfTime } = content;
    return { path, request, shard, records: recordsOf(records), outOfTime, execution: null };
  }
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch {
    throw notAPart(path, null);
  }
  if (kindOf(value) !== 'part') throw notAPart(path, kindOf(value));
  const head = validHead(path, value as object);
  if (!isBody(value as object))
    throw new RequestError(
      `${shownPath(path)}: its units are not as flashproof wrote them; make it again`,
    );
  const { units, outOfTime, execution } = value as PartBody;
  return { path, ...head, records: recordsOf(units), outOfTime, execution };
}
