import {
  createAuditsReport,
  isUnjudged,
  type AuditedFile,
  type AuditsReport,
} from '../report/json/index.js';
import { plainJson, type CampaignRequest } from './campaign-request.js';
import { rejectUnfinished, type JoinedParts } from './join-parts.js';
import { secondsOf } from './part.js';
import { countByShard, hasUnit, type Shard } from './shard.js';
import type { UnitLog, UnitRecord } from './unit-log.js';

/** All facts that determine the results of an audit of several files. */
export interface AuditRequest extends CampaignRequest {
  readonly command: 'audit';
  /** Paths of the files, in the order given. */
  readonly files: readonly string[];
  /** The words of the command line that affect the results. */
  readonly options: readonly string[];
}

/** The request of an audit of several files, as plain JSON. */
export function auditRequest(rest: Omit<AuditRequest, 'command'>): AuditRequest {
  return plainJson({ command: 'audit', ...rest });
}

/** A file and its unit of work. */
interface AuditUnit {
  readonly path: string;
  /** Position of the file in the order given, from 0. */
  readonly position: number;
}

/** The part of a judged file that is kept. */
type AuditUnitResult = Pick<AuditedFile, 'report' | 'error'>;

/** The name of the record of a file; a file may be judged again, and its last record counts. */
function recordName({ path, position }: AuditUnit, attempt: number): string {
  const name = `${position + 1} ${path}`;
  return attempt === 1 ? name : `${name}, attempt ${attempt}`;
}

/** Number of times that a file was judged so far, and the last result. */
function lastAttempt(records: ReadonlyMap<string, UnitRecord>, unit: AuditUnit) {
  let attempts = 0;
  while (records.has(recordName(unit, attempts + 1))) attempts++;
  const last = records.get(recordName(unit, attempts));
  return { attempts, found: (last?.result as AuditUnitResult | undefined) ?? null };
}

function unitsOf({ files }: AuditRequest, shard: Shard): AuditUnit[] {
  return files
    .map((path, position) => ({ path, position }))
    .filter(({ position }) => hasUnit(shard, position));
}

/** Settings for judging the files of a shard. */
export interface AuditUnitOptions {
  readonly shard: Shard;
  readonly log: UnitLog;
  readonly judge: (path: string, position: number) => Promise<AuditedFile>;
  /** Whether an earlier result for a file still holds. */
  readonly isCurrent: (file: AuditedFile) => Promise<boolean>;
  /** Called when a file needs no more work. */
  readonly finished: (position: number) => void;
}

/**
 * Judges the files of a shard that the log does not know yet, those that could not be judged before, and
 * those that have changed since.
 * @throws RequestError when the log cannot be written
 */
export async function runAuditUnits(
  request: AuditRequest,
  { shard, log, judge, isCurrent, finished }: AuditUnitOptions,
): Promise<void> {
  for (const unit of unitsOf(request, shard)) {
    const { path, position } = unit;
    const { attempts, found } = lastAttempt(log.records, unit);
    const known = found === null ? null : { path, ...found };
    if (known === null || isUnjudged(known) || !(await isCurrent(known))) {
      const { report, error } = await judge(path, position);
      log.add(recordName(unit, attempts + 1), plainJson({ report, error }));
    }
    finished(position);
  }
}

/** The files of a shard with their known results; files without one are left out. */
function auditedFiles(
  request: AuditRequest,
  shard: Shard,
  records: ReadonlyMap<string, UnitRecord>,
): AuditedFile[] {
  return unitsOf(request, shard).flatMap((unit) => {
    const { found } = lastAttempt(records, unit);
    return found === null ? [] : [{ path: unit.path, report: found.report, error: found.error }];
  });
}

/** The report of the files of a shard, or of all of them. */
export function assembleAudits(
  request: AuditRequest,
  shard: Shard,
  records: ReadonlyMap<string, UnitRecord>,
): AuditsReport {
  const { version } = request;
  const seconds = secondsOf(records.values());
  return createAuditsReport(auditedFiles(request, shard, records), { version, seconds });
}

/**
 * The report of a divided audit.
 * @throws RequestError for a part that stopped before its end
 */
export function joinAudits(joined: JoinedParts): AuditsReport {
  const request = joined.request as AuditRequest;
  const whole = { index: 1, count: 1 };
  const missing = unitsOf(request, whole)
    .filter((unit) => lastAttempt(joined.records, unit).found === null)
    .map(({ position }) => position);
  rejectUnfinished(joined, countByShard(missing, joined.parts.length));
  return assembleAudits(request, whole, joined.records);
}
