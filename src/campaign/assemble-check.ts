import {
  laws as allLaws,
  largestSizes,
  recurrentLaws,
  type LawId,
  lawOutcome,
  type LawResult,
  neverReached,
  runNumber,
  type TriedSizes,
  featureNotes,
  widenedNotes,
} from '../../properties/index.js';
import {
  assembleCheckReport,
  type CheckAssembly,
  type CheckedLaw,
  type CheckReport,
  kernelDoesNotRun,
  type PropertyName,
  type ReportedShards,
} from '../report/json/check/index.js';
import {
  type CheckRequest,
  type CheckUnit,
  checkUnits,
  type RequestedLaw,
} from './check-request.js';
import { secondsOf } from './part.js';
import { unitResult } from './run-check-units.js';
import { countByShard, describeShard } from './shard.js';
import type { UnitRecord } from './unit-log.js';
import { type JoinedParts, rejectUnfinished } from './join-parts.js';

/** The results of a check, of one part or of all. */
export interface CheckFindings {
  readonly request: CheckRequest;
  readonly records: ReadonlyMap<string, UnitRecord>;
  readonly outOfTime: boolean;
  readonly execution: string | null;
  /** The shards that were reported; null for a check that was not divided. */
  readonly shards: ReportedShards | null;
}

/** Settings for making a report, beside the results: see `CheckProvenance`. */
type AssemblyOptions = Pick<CheckAssembly, 'created' | 'strict'>;

/** The results of one law, up to its first violation. */
interface LawFindings {
  readonly law: CheckedLaw;
  /** The units without a known result that come before any violation. */
  readonly missing: readonly CheckUnit[];
}

/** The law's units in the order of its problems; those after a violation are as if never tried. */
function lawFindings(
  [id, planned]: readonly [id: PropertyName, planned: RequestedLaw],
  units: readonly CheckUnit[],
  { records }: Pick<CheckFindings, 'records'>,
  unreached: string,
): LawFindings {
  const missing: CheckUnit[] = [];
  let [runs, unsupported, seconds] = [0, 0, 0];
  let sizes: TriedSizes | null = null;
  const widened = new Set<LawResult['widened'][number]>();
  let refusal = '';
  let violation: CheckedLaw['violation'] = null;
  for (const unit of units) {
    const found = unitResult({ records }, unit);
    if (found === null) {
      missing.push(unit);
      continue;
    }
    runs += found.runs;
    unsupported += found.unsupported;
    seconds += found.seconds;
    sizes = largestSizes(found.sizes === null ? [] : [found.sizes], sizes);
    for (const format of found.widened) widened.add(format);
    if (found.refusal !== '') refusal = found.refusal;
    violation = found.violation;
    if (violation !== null) break;
  }
  const counts = { runs, unsupported, refusal };
  const outcome = lawOutcome(planned, counts, violation !== null, unreached);
  const { strength } = planned;
  return {
    law: {
      id,
      strength,
      ...outcome,
      runs,
      unsupported,
      sizes,
      widened: [...widened].sort(),
      seconds,
      violation,
    },
    missing,
  };
}

/** The reason that a law was tried on nothing. */
function unreachedReason({ execution, shards }: Pick<CheckFindings, 'execution' | 'shards'>) {
  if (execution !== null) return kernelDoesNotRun;
  const isPart = shards !== null && shards.included.length < shards.count;
  return isPart && shards.outOfTime.length === 0
    ? 'none of its problems fell to this shard'
    : neverReached;
}

function allFindings(
  findings: Pick<CheckFindings, 'request' | 'records'>,
  unreached: string = neverReached,
): LawFindings[] {
  const { request } = findings;
  const units = checkUnits(request).sort((a, b) => a.first - b.first);
  const planned = Object.entries(request.laws) as [PropertyName, RequestedLaw][];
  return planned.map(([id, law]) =>
    lawFindings(
      [id, law],
      units.filter((unit) => unit.law === id),
      findings,
      unreached,
    ),
  );
}

/**
 * Number of units of each shard that are unknown though the report needs them: those before the first
 * violation of their law.
 */
export function missingCheckUnits(
  findings: Pick<CheckFindings, 'request' | 'records'>,
  count: number,
): Map<number, number> {
  const needed = new Set(
    allFindings(findings).flatMap(({ missing }) => missing.map(({ name }) => name)),
  );
  const positions = [...checkUnits(findings.request).entries()]
    .filter(([, { name }]) => needed.has(name))
    .map(([position]) => position);
  return countByShard(positions, count);
}

/** What is to be said of the features that are promised; linear attention has none. */
function notesOf(request: CheckRequest, found: readonly CheckedLaw[]): readonly string[] {
  if (request.contract !== undefined) return [];
  return featureNotes(found as readonly CheckedLaw<LawId>[], request.promises);
}

/**
 * The report on the results: for all shards, it equals that of an undivided check, except for the times,
 * which are the sums of the shards', and for `shards`.
 */
export function assembleCheck(findings: CheckFindings, options: AssemblyOptions = {}): CheckReport {
  const { request, records, outOfTime, execution, shards } = findings;
  const { version, kernel, contract, promises, runs: runsPerProperty, seed } = request;
  const found = allFindings(findings, unreachedReason(findings)).map(({ law }) => law);
  const numbered = found.map((law, position): CheckedLaw => {
    const { violation } = law;
    if (violation === null) return law;
    const run = runNumber(found, position, violation.round);
    return { ...law, violation: { ...violation, run } };
  });
  return assembleCheckReport(
    {
      seed,
      laws: numbered,
      runs: found.reduce((sum, { runs }) => sum + runs, 0),
      seconds: secondsOf(records.values()),
      outOfTime,
      notes: [...widenedNotes(found.flatMap(({ widened }) => widened)), ...notesOf(request, found)],
    },
    {
      version,
      kernel,
      promises,
      runsPerProperty,
      execution,
      ...(contract === undefined ? { laws: allLaws } : { contract, laws: recurrentLaws }),
      ...(shards === null ? {} : { shards }),
      ...options,
    },
  );
}

/** The reason given by the first shard that could not run the kernel; null when all could. */
function firstExecution({ parts }: JoinedParts): string | null {
  const [failing] = parts.filter(({ execution }) => execution !== null);
  if (failing === undefined) return null;
  // A kernel that runs nowhere fails as it does in a check that is not divided.
  const everywhere = parts.every(({ execution }) => execution !== null);
  return everywhere ? failing.execution : `${describeShard(failing.shard)}: ${failing.execution}`;
}

/**
 * The report of a divided check.
 * @throws RequestError for a part that stopped before its end without its time being up
 */
export function joinCheck(joined: JoinedParts, options: AssemblyOptions = {}): CheckReport {
  const request = joined.request as CheckRequest;
  const { parts, records } = joined;
  const missing = missingCheckUnits({ request, records }, parts.length);
  rejectUnfinished(joined, missing);
  const late = parts.filter(({ outOfTime, shard }) => outOfTime && missing.has(shard.index));
  return assembleCheck(
    {
      request,
      records,
      outOfTime: late.length > 0,
      execution: firstExecution(joined),
      shards: {
        count: parts.length,
        included: parts.map(({ shard }) => shard.index),
        outOfTime: late.map(({ shard }) => shard.index),
      },
    },
    options,
  );
}
