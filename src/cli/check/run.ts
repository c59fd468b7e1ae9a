import { lawIds, planCheck, regimeNames, type KernelPromises } from '../../../properties/index.js';
import {
  checkProperties,
  isModel,
  rejectEmptyPlan,
  type CheckScopeRequest,
  type KernelUnderTest,
} from '../../jobs/index.js';
import { RequestError } from '../../request-error.js';
import { publishList } from '../files/publish.js';
import { readCampaign, type Campaign } from '../options/campaign.js';
import { rejectClashes } from '../options/clashes.js';
import type { CommandContext } from '../options/command-rows.js';
import { nameList, parsePositive, parseWhole } from '../options/parse-values.js';
import { createPeriodicProgress } from '../terminal/progress.js';
import { terminalLooks } from '../terminal/terminal-looks.js';
import { toolVersion } from '../tool-version.js';
import { checkList, renderCheckList } from './list.js';
import { checkOptions, type CheckCommandOptions } from './options.js';
import { declaredPromises } from './promises.js';
import { publishCheck } from './publish.js';
import { runReplay } from './replay.js';
import { saveExecutionFailure, saveFailures } from './save-failures.js';
import { kernelUnderTest } from './under-test.js';

/** Exit statuses of a check. */
const passed = 0;
const failed = 1;

/** @throws RequestError for options that do not go together */
function rejectOptions(options: CheckCommandOptions, { models }: CommandContext): void {
  const { kernel, as } = options;
  rejectClashes(checkOptions, options, {
    set: () => kernel !== undefined || (as !== undefined && isModel(as, models)),
  });
}

/** @throws RequestError for options that have no meaning for a check in shards or sittings */
function rejectCampaignClashes(
  { bail, replay, strict }: CheckCommandOptions,
  { shard }: Campaign,
): void {
  const clash = bail === true ? '--bail' : replay === undefined ? null : '--replay';
  if (clash !== null)
    throw new RequestError(
      `${clash} goes with neither shards nor --journal; leave out one (shards do not know what others find)`,
    );
  if (strict === true && shard !== null)
    throw new RequestError(
      '--strict is for the report of all shards, since none tries every property; give it to flashproof merge',
    );
}

/** @param usualSeed the seed where the options name none; null to draw one */
function readScope(options: CheckCommandOptions, usualSeed: number | null): CheckScopeRequest {
  const { property, regime, runs, seed, seconds, bail = false } = options;
  return {
    scope: {
      laws: property && nameList(property, lawIds, 'property', '--property'),
      regimes: regime && nameList(regime, regimeNames, 'regime', '--regime'),
    },
    runs: parseWhole(runs, '--runs', 1),
    seed:
      seed === undefined
        ? (usualSeed ?? Math.floor(Math.random() * 2 ** 31))
        : parseWhole(seed, '--seed', Number.MIN_SAFE_INTEGER),
    seconds: parsePositive(seconds, '--seconds'),
    bail,
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
    { ...asked, underTest, promises, strict: options.strict, version: toolVersion() },
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

/**
 * Runs `flashproof check`: tries the properties on an emulated or a live kernel, saves what violates
 * them, prints and writes the report. Returns the exit status.
 * @throws RequestError for a request that cannot be carried out
 */
export async function runCheck(
  options: CheckCommandOptions,
  context: CommandContext = {},
): Promise<number> {
  if (options.list === true) {
    const list = () => renderCheckList(terminalLooks(process.stdout).columns);
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
