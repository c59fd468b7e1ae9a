import {
  assembleCheck,
  checkRequest,
  checkUnits,
  partDocument,
  readJournal,
  runCheckUnits,
  wholeShard,
  type CheckRequest,
  type UnitLog,
} from '../../campaign/index.js';
import type { CheckPlan, LawFailure, LawId } from '../../../properties/index.js';
import { reportedViolation, type CheckReport } from '../../report/json/check/index.js';
import { RequestError } from '../../request-error.js';
import { type Campaign, openLog } from '../options/campaign.js';
import type { CheckCommandOptions } from './options.js';
import { type KernelUnderTest, rejectEmptyReport } from '../../jobs/index.js';
import { publishCheck } from './publish.js';
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

/** The problems of a check, and the time for them. */
interface CampaignCheck {
  readonly runs: number;
  readonly seed: number;
  readonly seconds: number;
}

/** A share of the units, or all of them, for so long. */
interface Sitting extends Pick<Campaign, 'shard'> {
  readonly log: UnitLog;
  readonly seconds: number;
}

async function tryUnits(
  { kernel }: KernelUnderTest,
  plan: CheckPlan,
  request: CheckRequest,
  { shard, log, seconds }: Sitting,
  options: CheckCommandOptions,
): Promise<boolean> {
  const progress = createPeriodicProgress('properties');
  const report = async (id: LawId, failure: LawFailure) => {
    const saved = await saveFailures([{ id, failure }], request.seed, options);
    return reportedViolation(failure, saved.get(id));
  };
  try {
    return await runCheckUnits(kernel, plan, request, {
      shard: shard ?? wholeShard,
      log,
      seconds,
      report,
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

/**
 * Tries a shard of a check, or all of it with a journal, prints the results and writes the part or, for
 * all of it, the report. Returns whether the kernel passes.
 * @throws RequestError for a journal of another request
 */
export async function runCheckCampaign(
  underTest: KernelUnderTest,
  plan: CheckPlan,
  campaign: Campaign,
  { runs, seed, seconds }: CampaignCheck,
  options: CheckCommandOptions,
): Promise<boolean> {
  const request = checkRequest(plan, {
    version: toolVersion(),
    kernel: underTest.reported,
    runs,
    seed,
    timeout: options.exec === undefined ? null : parsePositive(options.timeout, '--timeout'),
  });
  const log = openLog(campaign, request);
  try {
    const { shard } = campaign;
    const broken = await underTest.whyNotRunning(plan.promises);
    const outOfTime =
      broken === null
        ? await tryUnits(underTest, plan, request, { shard, log, seconds }, options)
        : false;
    const execution = broken === null ? null : await saveExecutionFailure(broken, seed, options);
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
