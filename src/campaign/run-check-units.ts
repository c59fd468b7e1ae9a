import {
  LawProgress,
  type LawResult,
  type RoundResult,
  type RoundStart,
  type TriedSizes,
} from '../../properties/index.js';
import type { PropertyName, ReportedViolation } from '../report/json/check/index.js';
import { plainJson } from './campaign-request.js';
import {
  checkUnits,
  type CheckRequest,
  type CheckUnit,
  type RequestedLaw,
} from './check-request.js';
import { hasUnit, type Shard } from './shard.js';
import type { UnitLog } from './unit-log.js';

/** The results for the problems of a unit. */
export interface CheckUnitResult {
  /** Number of turns: all of them, or up to the one that fails. */
  readonly runs: number;
  /** Turns in which no problem could be tried. */
  readonly unsupported: number;
  /** The largest sizes of the problems that the kernel ran on; null for none. */
  readonly sizes: TriedSizes | null;
  /** Formats of inputs for which outputs had digits beyond the format. */
  readonly widened: LawResult['widened'];
  /** The reason of the last unsupported turn; empty if there is none. */
  readonly refusal: string;
  /** Seconds that the law took, with simplifying. */
  readonly seconds: number;
  /** Its `run` and `seconds` are those of the shard; the merged report counts all problems. */
  readonly violation: ReportedViolation | null;
}

/** Tries a law on the problem of a round. */
type TryRound<Failure> = (
  law: PropertyName,
  round: number,
  shrinkSeconds: number,
) => Promise<RoundResult<Failure>>;

/** The part of a check to carry out, with its settings. */
export interface CheckUnitOptions<Failure extends object> {
  /** By the seed of the request. */
  readonly tryRound: TryRound<Failure>;
  readonly shard: Shard;
  /** The units done so far; those of this run are added. */
  readonly log: UnitLog;
  /** Seconds after which no further unit begins. */
  readonly seconds: number;
  /** Saves the problem of a violation, and reports it. */
  readonly report: (id: PropertyName, failure: Failure & RoundStart) => Promise<ReportedViolation>;
  /** Called after every unit with the number of units done, and of all units. */
  readonly progress?: (done: number, total: number) => void;
}

/** The most seconds to simplify a failing problem, as in an undivided check. */
const mostShrinkSeconds = 10;

/** The known result of a unit; null for none. */
export function unitResult({ records }: Pick<UnitLog, 'records'>, { name }: CheckUnit) {
  return (records.get(name)?.result as CheckUnitResult | undefined) ?? null;
}

/** Settings of the whole check for the runs of a unit. */
interface UnitSetting<Failure extends object> extends Pick<
  CheckUnitOptions<Failure>,
  'tryRound' | 'report'
> {
  /** Seconds left for simplifying a failing problem. */
  readonly shrinkSeconds: () => number;
  /** Counts a run; returns the runs and the seconds so far. */
  readonly since: () => RoundStart;
}

async function runUnit<Failure extends object>(
  { law, first, last }: CheckUnit,
  planned: RequestedLaw,
  { tryRound, shrinkSeconds, since, report }: UnitSetting<Failure>,
): Promise<CheckUnitResult> {
  const progress = new LawProgress<PropertyName, Failure>(
    { ...planned, id: law },
    planned.strength,
  );
  for (let round = first; round <= last && progress.isOpen; round++) {
    // A kernel that answers at once would keep timers and signals waiting to the end.
    await new Promise((resolve) => setImmediate(resolve));
    const began = since();
    progress.add(await tryRound(law, round, shrinkSeconds()), began);
  }
  const { runs, unsupported, sizes, refusal, failure } = progress;
  const { seconds, widened } = progress.result();
  const violation = failure === null ? null : await report(law, failure);
  return plainJson({ runs, unsupported, sizes, widened, refusal, seconds, violation });
}

/**
 * Tries the laws on the problems of a shard that the log does not know yet, unit by unit. A law that
 * fails is tried no more. The problems are those of an undivided check: each follows from the seed, the
 * law and its number.
 * @returns whether the time was up before all was done; a unit once begun is finished
 * @throws RequestError when the log cannot be written
 */
export async function runCheckUnits<Failure extends object>(
  request: CheckRequest,
  { tryRound, shard, log, seconds, report, progress }: CheckUnitOptions<Failure>,
): Promise<boolean> {
  const units = checkUnits(request).filter((_, position) => hasUnit(shard, position));
  const start = performance.now();
  const elapsed = () => (performance.now() - start) / 1000;
  const failed = new Set(
    units.filter((unit) => unitResult(log, unit)?.violation).map(({ law }) => law),
  );
  let runs = 0;
  for (const [done, unit] of units.entries()) {
    const planned = request.laws[unit.law];
    if (planned === undefined || failed.has(unit.law) || log.records.has(unit.name)) continue;
    if (elapsed() >= seconds) {
      log.noteOutOfTime();
      return true;
    }
    const before = runs;
    const since = () => ({ runsUntil: ++runs, secondsUntil: elapsed() });
    // A failure leaves most of the time to the other laws.
    const shrinkSeconds = () => Math.min(mostShrinkSeconds, Math.max((seconds - elapsed()) / 4, 1));
    const result = await runUnit(unit, planned, { tryRound, shrinkSeconds, since, report });
    runs = before + result.runs;
    if (result.violation !== null) failed.add(unit.law);
    log.add(unit.name, result);
    progress?.(done + 1, units.length);
  }
  return false;
}
