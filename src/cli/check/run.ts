import {
  checkKernel,
  lawIds,
  lawOutcome,
  laws,
  planCheck,
  regimeNames,
  type CheckPlan,
  type CheckResult,
  type CheckScope,
  type KernelPromises,
} from '../../../properties/index.js';
import { createCheckReport, kernelDoesNotRun } from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import { type Campaign, readCampaign } from '../options/campaign.js';
import { rejectClashes } from '../options/clashes.js';
import { checkOptions, type CheckCommandOptions } from './options.js';
import { emulatedKernel } from '../check-emulated.js';
import type { KernelUnderTest } from '../check-kernel-under-test.js';
import { checkList, renderCheckList } from '../check-list.js';
import { liveKernel } from '../check-live.js';
import { nameList } from '../options/parse-values.js';
import { rejectEmptyPlan, rejectNothingTried } from '../check-nothing-tried.js';
import { isModel } from '../declared-arithmetic.js';
import { declaredPromises } from './promises.js';
import { publishCheck } from './publish.js';
import { runReplay } from './replay.js';
import { saveExecutionFailure, saveFailures } from './save-failures.js';
import { createPeriodicProgress } from '../terminal/progress.js';
import { parsePositive, parseWhole } from '../options/parse-values.js';
import { publishList } from '../files/publish.js';
import { terminalLooks } from '../terminal/terminal-looks.js';
import { toolVersion } from '../tool-version.js';

/** Exit statuses of a check. */
const passed = 0;
const failed = 1;

/** What is to be tried, and how often. */
interface CheckRequest {
  readonly scope: CheckScope;
  readonly runs: number;
  readonly seed: number;
  readonly seconds: number;
  readonly bail: boolean;
}

/** @throws RequestError for options that do not go together */
function rejectOptions(options: CheckCommandOptions): void {
  const { kernel, as } = options;
  rejectClashes(checkOptions, options, {
    set: () => kernel !== undefined || (as !== undefined && isModel(as)),
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
function readRequest(options: CheckCommandOptions, usualSeed: number | null): CheckRequest {
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

/** What a check found that could not begin. */
function untried(
  { laws: planned, promises }: CheckPlan,
  seed: number,
  seconds: number,
): CheckResult {
  return {
    pass: false,
    seed,
    laws: planned.map((law) => {
      const counts = { runs: 0, unsupported: 0, refusal: '' };
      return {
        id: law.id,
        strength: promises.laws[law.id],
        runs: 0,
        unsupported: 0,
        sizes: null,
        widened: [],
        ...lawOutcome(law, counts, false, kernelDoesNotRun),
        seconds: 0,
        failure: null,
      };
    }),
    runs: 0,
    seconds,
    outOfTime: false,
    notes: [],
  };
}

async function tryProperties(
  { kernel }: KernelUnderTest,
  promises: KernelPromises,
  { scope, runs, seed, seconds, bail }: CheckRequest,
): Promise<CheckResult> {
  const progress = createPeriodicProgress('properties');
  const start = performance.now();
  try {
    return await checkKernel(kernel, promises, {
      ...scope,
      runs,
      seed,
      seconds,
      bail,
      progress: (done, total) =>
        progress.update(
          Math.min(1, Math.max(done / total, (performance.now() - start) / 1000 / seconds)),
        ),
    });
  } finally {
    progress.done();
  }
}

async function checkUnderTest(
  underTest: KernelUnderTest,
  options: CheckCommandOptions,
  campaign: Campaign | null,
): Promise<number> {
  const promises = await declaredPromises(underTest.promises, options);
  const divided = campaign === null ? null : await import('./campaign.js');
  const usualSeed = options.seed === undefined ? (divided?.campaignSeed(campaign!) ?? null) : null;
  const request = readRequest(options, usualSeed);
  const plan = planCheck(promises, request.scope);
  if (options.replay !== undefined)
    return (await runReplay(options.replay, underTest, promises, options)) ? passed : failed;
  rejectEmptyPlan(plan);
  if (divided !== null)
    return (await divided.runCheckCampaign(underTest, plan, campaign!, request, options))
      ? passed
      : failed;
  const start = performance.now();
  const broken = await underTest.whyNotRunning(plan.promises);
  const result =
    broken === null
      ? await tryProperties(underTest, promises, request)
      : untried(plan, request.seed, (performance.now() - start) / 1000);
  if (broken === null) rejectNothingTried(result.laws);
  const report = createCheckReport(result, {
    version: toolVersion(),
    kernel: underTest.reported,
    promises: plan.promises,
    laws,
    runsPerProperty: request.runs,
    strict: options.strict,
    saved: await saveFailures(result.laws, request.seed, options),
    execution: broken === null ? null : await saveExecutionFailure(broken, request.seed, options),
  });
  await publishCheck(report, options);
  return report.verdict.pass ? passed : failed;
}

/**
 * Runs `flashproof check`: tries the properties on an emulated or a live kernel, saves what violates
 * them, prints and writes the report. Returns the exit status.
 * @throws RequestError for a request that cannot be carried out
 */
export async function runCheck(options: CheckCommandOptions): Promise<number> {
  if (options.list === true) {
    const list = () => renderCheckList(terminalLooks(process.stdout).columns);
    await publishList(list, checkList, options);
    return passed;
  }
  rejectOptions(options);
  const campaign = readCampaign(options);
  if (campaign !== null) rejectCampaignClashes(options, campaign);
  const underTest =
    options.exec === undefined
      ? emulatedKernel(options.kernel!, options)
      : await liveKernel(options.exec, options);
  try {
    return await checkUnderTest(underTest, options, campaign);
  } finally {
    await underTest.close();
  }
}
