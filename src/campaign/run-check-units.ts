import {
  LawProgress,
  type AttentionKernel,
  type CheckPlan,
  type LawFailure,
  type LawId,
  type LawResult,
  type TriedSizes,
} from '../../properties/index.js';
import type { ReportedViolation } from '../report/json/check/index.js';
import { plainJson } from './campaign-request.js';
import { checkUnits, type CheckRequest, type CheckUnit } from './check-request.js';
import { hasUnit, type Shard } from './shard.js';
import type { UnitLog } from './unit-log.js';

/** What was found on the problems of a unit. */
export interface CheckUnitResult {
  /** Turns: all of them, or up to the one that fails. */
  readonly runs: number;
  /** Turns in which no problem could be tried. */
  readonly unsupported: number;
  /** The largest sizes of the problems that the kernel ran on; null for none. */
  readonly sizes: TriedSizes | null;
  /** Formats of inputs for which outputs had digits that they have not. */
  readonly widened: LawResult['widened'];
  /** Why the last of the unsupported ones was; empty where there is none. */
  readonly refusal: string;
  /** Seconds that the law took, with simplifying. */
  readonly seconds: number;
  /** Its `run` and `seconds` are those of the shard; the merged report counts all problems. */
  readonly violation: ReportedViolation | null;
}

/** The part of a check that is carried out, and how. */
export interface CheckUnitOptions {
  readonly shard: Shard;
  /** The units that are done; those of this run are added. */
  readonly log: UnitLog;
  /** Seconds after which no further unit is begun. */
  readonly seconds: number;
  /** Saves the problem of a violation, and reports it. */
  readonly report: (id: LawId, failure: LawFailure) => Promise<ReportedViolation>;
  /** Called after every unit with how many there are no more to do, and how many there were. */
  readonly progress?: (done: number, total: number) => void;
}

/** Seconds that a failing problem is simplified for at most, as in a check that is not divided. */
const mostShrinkSeconds = 10;

/** What is known of a unit; null for nothing. */
export function unitResult({ records }: Pick<UnitLog, 'records'>, { name }: CheckUnit) {
  return (records.get(name)?.result as CheckUnitResult | undefined) ?? null;
}

/** What the runs of a unit need to know of the whole. */
interface UnitSetting {
  readonly seed: CheckRequest['seed'];
  /** Seconds that a failing problem may be simplified for from now on. */
  readonly shrinkSeconds: () => number;
  /** Counts a run; the runs and the seconds until now. */
  readonly since: () => { readonly runsUntil: number; readonly secondsUntil: number };
  readonly report: CheckUnitOptions['report'];
}

async function runUnit(
  { law, first, last }: CheckUnit,
  kernel: AttentionKernel,
  plan: CheckPlan,
  { seed, shrinkSeconds, since, report }: UnitSetting,
): Promise<CheckUnitResult> {
  const planned = plan.laws.find(({ id }) => id === law)!;
  const progress = new LawProgress(planned, plan.promises, seed);
  for (let round = first; round <= last && progress.isOpen; round++) {
    // A kernel that answers at once would keep timers and signals waiting to the end.
    await new Promise((resolve) => setImmediate(resolve));
    await progress.run(round, kernel, shrinkSeconds(), since);
  }
  const { runs, unsupported, sizes, refusal, failure } = progress;
  const { seconds, widened } = progress.result();
  const violation = failure === null ? null : await report(law, failure);
  return plainJson({ runs, unsupported, sizes, widened, refusal, seconds, violation });
}

/**
 * Tries the laws on the problems of a shard that the log does not know yet, unit by unit. A law that
 * fails is tried no more. The problems are those that a check which is not divided tries: each follows
 * from the seed, the law and its number.
 * @returns whether the time was up before all was done; a unit that was begun is finished
 * @throws RequestError when the log cannot be written
 */
export async function runCheckUnits(
  kernel: AttentionKernel,
  plan: CheckPlan,
  request: CheckRequest,
  { shard, log, seconds, report, progress }: CheckUnitOptions,
): Promise<boolean> {
  const units = checkUnits(request).filter((_, position) => hasUnit(shard, position));
  const start = performance.now();
  const elapsed = () => (performance.now() - start) / 1000;
  const failed = new Set(
    units.filter((unit) => unitResult(log, unit)?.violation).map(({ law }) => law),
  );
  let runs = 0;
  for (const [done, unit] of units.entries()) {
    if (failed.has(unit.law) || log.records.has(unit.name)) continue;
    if (elapsed() >= seconds) {
      log.noteOutOfTime();
      return true;
    }
    const before = runs;
    const since = () => ({ runsUntil: ++runs, secondsUntil: elapsed() });
    // A failure leaves most of the time to the other laws.
    const shrinkSeconds = () => Math.min(mostShrinkSeconds, Math.max((seconds - elapsed()) / 4, 1));
    const result = await runUnit(unit, kernel, plan, {
      seed: request.seed,
      shrinkSeconds,
      since,
      report,
    });
    runs = before + result.runs;
    if (result.violation !== null) failed.add(unit.law);
    log.add(unit.name, result);
    progress?.(done + 1, units.length);
  }
  return false;
}
