import { availableParallelism } from 'node:os';
import {
  checkProperties,
  type CheckScopeRequest,
  isModel,
  type KernelUnderTest,
  rejectEmptyPlan,
} from '../../jobs/index.js';
import { findRecurrentModel } from '../../../kernels/index.js';
import { renderCheckList } from '../../report/text/index.js';
import { RequestError } from '../../request-error.js';
import type { CommandContext } from '../options/command-rows.js';
import { kernelUnderTest } from '../options/kernel-under-test.js';
import { nameList, parseName } from '../options/parse-names.js';
import { type CheckCommandOptions, checkOptions, contracts } from './options.js';
import { type KernelPromises, lawIds, planCheck, regimeNames } from '../../../properties/index.js';
import { publishList } from '../files/publish.js';
import { type Campaign, readCampaign } from '../options/campaign.js';
import { rejectClashes } from '../options/given-options.js';
import { createPeriodicProgress, terminalLooks } from '../terminal.js';
import { toolVersion } from '../tool-version.js';
import { publishCheck, checkList } from './publish.js';
import { readLimits, rejectCampaignClashes, rejectThreadClashes } from './limits.js';
import { propertyLists } from './promise-texts.js';
import { declaredPromises } from './promises.js';
import { runReplay } from './saved-case.js';
import { saveExecutionFailure, saveFailures } from './save-failures.js';

/** Exit statuses of a check. */
const passed = 0;
const failed = 1;

/** @throws RequestError for options that do not go together */
function rejectOptions(options: CheckCommandOptions, { models }: CommandContext): void {
  const { kernel, as } = options;
  rejectThreadClashes(options);
  rejectClashes(checkOptions, options, {
    set: () => kernel !== undefined || (as !== undefined && isModel(as, models)),
  });
}

/** @param usualSeed the seed where the options name none; null to draw one */
function readScope(options: CheckCommandOptions, usualSeed: number | null): CheckScopeRequest {
  const { property, regime } = options;
  return {
    scope: {
      laws:
        property && nameList(property, lawIds, 'property', '--property', propertyLists.attention),
      regimes: regime && nameList(regime, regimeNames, 'regime', '--regime'),
    },
    ...readLimits(options, usualSeed),
  };
}

/** Tries everything in one go, and publishes the report; whether the kernel passes. */
async function checkAtOnce(
  underTest: KernelUnderTest,
  promises: KernelPromises,
  asked: CheckScopeRequest,
  options: CheckCommandOptions,
): Promise<boolean> {
  const { seed } = asked;
  const progress = createPeriodicProgress('properties');
  const report = await checkProperties(
    {
      ...asked,
      underTest,
      promises,
      strict: options.strict,
      threads: options.threads ?? availableParallelism(),
      version: toolVersion(),
    },
    {
      progress: progress.update,
      saveFailures: (results) => saveFailures(results, seed, options),
      saveExecutionFailure: (failure) => saveExecutionFailure(failure, seed, options),
    },
  ).finally(progress.done);
  await publishCheck(report, options);
  return report.verdict.pass;
}

async function checkUnderTest(
  underTest: KernelUnderTest,
  options: CheckCommandOptions,
  campaign: Campaign | null,
  context: CommandContext,
): Promise<boolean> {
  const promises = await declaredPromises(underTest.promises, options, context);
  const divided = campaign === null ? null : await import('./campaign.js');
  const usualSeed = options.seed === undefined ? (divided?.campaignSeed(campaign!) ?? null) : null;
  const asked = readScope(options, usualSeed);
  const plan = planCheck(promises, asked.scope);
  if (options.replay !== undefined) return runReplay(options.replay, underTest, promises, options);
  rejectEmptyPlan(plan);
  return divided === null
    ? checkAtOnce(underTest, promises, asked, options)
    : divided.runCheckCampaign(underTest, plan, campaign!, asked, options);
}

/** The contract of a check. @throws RequestError for an unknown one, and for a kernel model of the other */
function contractOf({ contract = 'attention', kernel }: CheckCommandOptions) {
  const found = parseName(contract, contracts, 'contract', '--contract');
  if (found === 'attention' && kernel !== undefined && findRecurrentModel(kernel) !== undefined)
    throw new RequestError(
      `${kernel} is a kernel model of linear attention; add --contract recurrent`,
    );
  return found;
}

/**
 * Runs `flashproof check`: tries the properties on an emulated or a live kernel, saves what violates
 * them, prints and writes the report. Returns the exit status.
 * @throws RequestError for a request that cannot be carried out
 */
export async function runCheck(
  options: CheckCommandOptions,
  context: CommandContext = {},
): Promise<number> {
  if (contractOf(options) === 'recurrent') {
    const { runRecurrentCheck } = await import('./recurrent/run.js');
    return (await runRecurrentCheck(options)) ? passed : failed;
  }
  if (options.list === true) {
    const list = () => renderCheckList(checkList(), terminalLooks(process.stdout).columns);
    await publishList(list, checkList, options);
    return passed;
  }
  rejectOptions(options, context);
  const campaign = readCampaign(options);
  if (campaign !== null) rejectCampaignClashes(options, campaign);
  const underTest = await kernelUnderTest(options, context);
  try {
    return (await checkUnderTest(underTest, options, campaign, context)) ? passed : failed;
  } finally {
    await underTest.close();
  }
}
