import {
  assembleCheck,
  checkRequest,
  checkUnits,
  partDocument,
  readJournal,
  runCheckUnits,
  wholeShard,
  recurrentCheckRequest,
  type CheckRequest,
  type CheckUnitOptions,
  type UnitLog,
} from '../../campaign/index.js';
import {
  recurrentRoundsOf,
  roundsOf,
  type CheckPlan,
  type LawId,
  type RecurrentCheckPlan,
  type RecurrentFailure,
  type RecurrentLawId,
  type RoundFailure,
} from '../../../properties/index.js';
import {
  reportedRecurrentViolation,
  reportedViolation,
  type CheckReport,
  type ReportedKernel,
} from '../../report/json/check/index.js';
import { RequestError } from '../../request-error.js';
import { type Campaign, openLog } from '../options/campaign.js';
import type { CheckCommandOptions } from './options.js';
import {
  rejectEmptyReport,
  type CheckLimitsRequest,
  type KernelUnderTest,
  type RecurrenceUnderTest,
} from '../../jobs/index.js';
import { publishCheck } from './publish.js';
import { saveRecurrentExecutionFailure, saveRecurrentFailures } from './recurrent/save-failures.js';
import { saveExecutionFailure, saveFailures } from './save-failures.js';
import { createPeriodicProgress } from '../terminal.js';
import { parsePositive } from '../options/parse-values.js';
import { toolVersion } from '../tool-version.js';

/**
 * The seed of a check in several sittings whose command names none: that of its journal; null to draw
 * one.
 * @throws RequestError for a check in shards, which must agree on a seed
 */
export function campaignSeed({ shard, journal }: Campaign): number | null {
  const known = journal === undefined ? null : readJournal(journal);
  if (known?.request.command === 'check') return (known.request as CheckRequest).seed;
  if (shard !== null)
    throw new RequestError('shards try the problems of one seed; give all of them the same --seed');
  return null;
}

/** A check that is divided, or goes on later, of whatever contract. */
interface DividedCheck<Failure extends object> {
  readonly request: CheckRequest;
  readonly tryRound: CheckUnitOptions<Failure>['tryRound'];
  /** Saves the problem of a violation, and reports it. */
  readonly report: CheckUnitOptions<Failure>['report'];
  /** The reason that the kernel does not run, with its saved problem; null when it runs. */
  readonly whyNotRunning: () => Promise<string | null>;
  /** The time for it. */
  readonly seconds: number;
}

async function tryUnits<Failure extends object>(
  { request, ...divided }: DividedCheck<Failure>,
  shard: Campaign['shard'],
  log: UnitLog,
): Promise<boolean> {
  const progress = createPeriodicProgress('properties');
  try {
    return await runCheckUnits(request, {
      ...divided,
      shard: shard ?? wholeShard,
      log,
      progress: (done, total) => progress.update(done / total),
    });
  } finally {
    progress.done();
  }
}

/** The shards that a report covers; null for a check that was not divided. */
function reportedShards({ shard }: Campaign, outOfTime: boolean) {
  if (shard === null) return null;
  const { index, count } = shard;
  return { count, included: [index], outOfTime: outOfTime ? [index] : [] };
}

/** The request's head: the kernel, the problems, and the time of one answer. */
function requestHead(
  reported: ReportedKernel,
  { runs, seed }: CheckLimitsRequest,
  { exec, timeout }: CheckCommandOptions,
) {
  return {
    version: toolVersion(),
    kernel: reported,
    runs,
    seed,
    timeout: exec === undefined ? null : parsePositive(timeout, '--timeout'),
  };
}

/** Carries out {@link runDivided} for a kernel of attention. */
export async function runCheckCampaign(
  underTest: KernelUnderTest,
  plan: CheckPlan,
  campaign: Campaign,
  asked: CheckLimitsRequest,
  options: CheckCommandOptions,
): Promise<boolean> {
  const { seed, seconds } = asked;
  const check: DividedCheck<RoundFailure> = {
    request: checkRequest(plan, requestHead(underTest.reported, asked, options)),
    tryRound: roundsOf(underTest.kernel, plan, seed),
    report: async (name, failure) => {
      const id = name as LawId;
      const saved = await saveFailures([{ id, failure }], seed, options);
      return reportedViolation(failure, saved.get(id));
    },
    whyNotRunning: async () => {
      const broken = await underTest.whyNotRunning(plan.promises);
      return broken === null ? null : saveExecutionFailure(broken, seed, options);
    },
    seconds,
  };
  return runDivided(check, campaign, options);
}

/** Carries out {@link runDivided} for a kernel of linear attention. */
export async function runRecurrentCampaign(
  underTest: RecurrenceUnderTest,
  plan: RecurrentCheckPlan,
  campaign: Campaign,
  asked: CheckLimitsRequest,
  options: CheckCommandOptions,
): Promise<boolean> {
  const { seed, seconds } = asked;
  const check: DividedCheck<RecurrentFailure> = {
    request: recurrentCheckRequest(plan, requestHead(underTest.reported, asked, options)),
    tryRound: recurrentRoundsOf(underTest.kernel, plan, seed),
    report: async (name, failure) => {
      const id = name as RecurrentLawId;
      const saved = await saveRecurrentFailures([{ id, failure }], seed, options);
      return reportedRecurrentViolation(failure, saved.get(id));
    },
    whyNotRunning: async () => {
      const broken = await underTest.whyNotRunning(plan.promises);
      return broken === null ? null : saveRecurrentExecutionFailure(broken, seed, options);
    },
    seconds,
  };
  return runDivided(check, campaign, options);
}

/**
 * Tries a shard of a check, or all of it with a journal, prints the results and writes the part or, for
 * all of it, the report. Returns whether the kernel passes.
 * @throws RequestError for a journal of another request
 */
async function runDivided<Failure extends object>(
  check: DividedCheck<Failure>,
  campaign: Campaign,
  options: CheckCommandOptions,
): Promise<boolean> {
  const { request } = check;
  const log = openLog(campaign, request);
  try {
    const { shard } = campaign;
    const execution = await check.whyNotRunning();
    const outOfTime = execution === null ? await tryUnits(check, shard, log) : false;
    const { records } = log;
    const shards = reportedShards(campaign, outOfTime);
    const findings = { request, records, outOfTime, execution, shards };
    const report = assembleCheck(findings, { strict: options.strict });
    await publish(report, options, () =>
      shard === null
        ? null
        : partDocument({ request, shard, records, outOfTime, execution }, report.verdict),
    );
    // A shard that nothing falls to has done its part; whether anything was tried, all of them tell.
    const isIdle = shard !== null && checkUnits(request).length < shard.index;
    if (!isIdle) rejectEmptyReport(report);
    return report.verdict.pass || isIdle;
  } finally {
    log.close();
  }
}

/** Publishes a report, with the part in place of its JSON: `merge` needs it whatever was tried. */
async function publish(
  report: CheckReport,
  options: CheckCommandOptions,
  part: () => object | null,
): Promise<void> {
  const document = part();
  if (document === null) rejectEmptyReport(report);
  await publishCheck(report, options, document ?? report);
}
