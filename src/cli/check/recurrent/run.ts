import { availableParallelism } from 'node:os';
import { startLiveRecurrence } from '../../../io/live/index.js';
import {
  checkRecurrence,
  emulatedRecurrence,
  liveRecurrence,
  rejectEmptyPlan,
  type RecurrenceUnderTest,
  type RecurrentCheckRequest,
} from '../../../jobs/index.js';
import {
  planRecurrentCheck,
  recurrentLawIds,
  recurrentRegimeNames,
} from '../../../../properties/index.js';
import { renderCheckList } from '../../../report/text/index.js';
import { publishList } from '../../files/publish.js';
import { type Campaign, readCampaign } from '../../options/campaign.js';
import { withoutFolder } from '../../options/kernel-under-test.js';
import { nameList } from '../../options/parse-names.js';
import { parsePositive } from '../../options/parse-values.js';
import { kernelSettings } from '../../options/settings.js';
import { createPeriodicProgress, terminalLooks } from '../../terminal.js';
import { toolVersion } from '../../tool-version.js';
import type { CheckCommandOptions } from '../options.js';
import { readLimits, rejectCampaignClashes } from '../limits.js';
import { propertyLists } from '../promise-texts.js';
import { publishCheck } from '../publish.js';
import { recurrentCheckList } from './list.js';
import { rejectRecurrentOptions } from './options.js';
import { declaredRecurrentPromises } from './promises.js';
import { saveRecurrentExecutionFailure, saveRecurrentFailures } from './save-failures.js';
import { replayRecurrence } from './saved-case.js';

/** The properties, regimes and limits of a check. */
function readScope(options: CheckCommandOptions, usualSeed: number | null) {
  const { property, regime } = options;
  return {
    scope: {
      laws:
        property &&
        nameList(property, recurrentLawIds, 'property', '--property', propertyLists.recurrent),
      regimes: regime && nameList(regime, recurrentRegimeNames, 'regime', '--regime'),
    },
    ...readLimits(options, usualSeed),
  };
}

/** The kernel that --kernel or --exec names. @throws RequestError for an unknown model, setting or fault, and no time limit */
async function recurrenceUnderTest(options: CheckCommandOptions): Promise<RecurrenceUnderTest> {
  const { kernel, set = [], variant, exec } = options;
  if (exec === undefined) {
    const fault = variant === undefined ? [] : [`variant=${variant}`];
    return emulatedRecurrence(kernel!, kernelSettings([...set, ...fault]));
  }
  const timeout = parsePositive(options.timeout, '--timeout');
  return liveRecurrence(withoutFolder(await startLiveRecurrence(exec, timeout)), exec);
}

/** Tries everything in one go, and publishes the report; whether the kernel passes. */
async function checkAtOnce(
  request: Omit<RecurrentCheckRequest, 'strict' | 'threads' | 'version'>,
  options: CheckCommandOptions,
): Promise<boolean> {
  const progress = createPeriodicProgress('properties');
  const { strict, threads = availableParallelism() } = options;
  const report = await checkRecurrence(
    { ...request, strict, threads, version: toolVersion() },
    {
      progress: progress.update,
      saveFailures: (results) => saveRecurrentFailures(results, request.seed, options),
      saveExecutionFailure: (failure) =>
        saveRecurrentExecutionFailure(failure, request.seed, options),
    },
  ).finally(progress.done);
  await publishCheck(report, options);
  return report.verdict.pass;
}

async function checkUnderTest(
  underTest: RecurrenceUnderTest,
  options: CheckCommandOptions,
  campaign: Campaign | null,
): Promise<boolean> {
  const promises = await declaredRecurrentPromises(underTest.promises, options);
  if (options.replay !== undefined)
    return replayRecurrence(options.replay, underTest, promises, options);
  const divided = campaign === null ? null : await import('../campaign.js');
  const usualSeed = options.seed === undefined ? (divided?.campaignSeed(campaign!) ?? null) : null;
  const asked = readScope(options, usualSeed);
  const plan = planRecurrentCheck(promises, asked.scope);
  rejectEmptyPlan(plan);
  return divided === null
    ? checkAtOnce({ ...asked, underTest, promises }, options)
    : divided.runRecurrentCampaign(underTest, plan, campaign!, asked, options);
}

/**
 * Runs `flashproof check --contract recurrent`: tries the properties of linear attention on an emulated or a live kernel,
 * prints and writes the report. Returns whether the kernel passes.
 * @throws RequestError for a request that cannot be carried out
 */
export async function runRecurrentCheck(options: CheckCommandOptions): Promise<boolean> {
  rejectRecurrentOptions(options);
  if (options.list === true) {
    const list = () => renderCheckList(recurrentCheckList(), terminalLooks(process.stdout).columns);
    await publishList(list, recurrentCheckList, options);
    return true;
  }
  const campaign = readCampaign(options);
  if (campaign !== null) rejectCampaignClashes(options, campaign);
  const underTest = await recurrenceUnderTest(options);
  try {
    return await checkUnderTest(underTest, options, campaign);
  } finally {
    await underTest.close();
  }
}
