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

/** The part of a check to carry out, with its settings. */
export interface CheckUnitOptions {
  readonly shard: Shard;
  /** The units done so far; those of this run are added. */
  readonly log: UnitLog;
  /** Seconds after which no further unit begins. */
  readonly seconds: number;
  /** Saves the problem of a violation, and reports it. */
  readonly report: (id: LawId, failure: LawFailure) => Promise<ReportedViolation>;
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
interface UnitSetting {
  readonly seed: CheckRequest['seed'];
  /** Seconds left for simplifying a failing problem. */
  readonly shrinkSeconds: () => number;
  /** Counts a run; returns the runs and the seconds so far. */
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
 * fails is tried no more. The problems are those of an undivided check: each follows from the seed, the
 * law and its number.
 * @returns whether the time was up before all was done; a unit once begun is finished
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
