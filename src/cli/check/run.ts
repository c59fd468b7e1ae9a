import { availableParallelism } from 'node:os';
import { sep } from 'node:path';
import { findKernelVariant, type KernelModel, kernelModels } from '../../../kernels/index.js';
import { judgedGradients, sharedQuantities, type KernelOutputs } from '../../audit/index.js';
import { quoted } from '../../io/index.js';
import {
  checkProperties,
  type CheckScopeRequest,
  emulatedKernel,
  isModel,
  type KernelUnderTest,
  liveKernel,
  rejectEmptyPlan,
  startCompiledKernel,
  startFollowing,
} from '../../jobs/index.js';
import {
  type LiveKernel,
  type OutputReader,
  startLiveKernel,
  unaskedTensors,
  writtenOutputs,
} from '../../io/live/index.js';
import { renderCheckList } from '../../report/text/index.js';
import { gatherOutput, quantities } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { parseWhole } from '../../words/index.js';
import type { CommandContext } from '../options/command-rows.js';
import { kernelSettings } from '../options/settings.js';
import { nameList, parsePositive } from '../options/parse-values.js';
import { type CheckCommandOptions, checkOptions } from './options.js';
import { type KernelPromises, lawIds, planCheck, regimeNames } from '../../../properties/index.js';
import { publishList } from '../files/publish.js';
import { type Campaign, readCampaign } from '../options/campaign.js';
import { rejectClashes } from '../options/given-options.js';
import { createPeriodicProgress, terminalLooks } from '../terminal.js';
import { toolVersion } from '../tool-version.js';
import { publishCheck, checkList } from './publish.js';
import { declaredPromises } from './promises.js';
import { runReplay } from './saved-case.js';
import { saveExecutionFailure, saveFailures } from './save-failures.js';

/** The --set options with --variant among them. @throws RequestError for a variant of other models */
function settingsOf(
  { kernel, set = [], variant }: CheckCommandOptions,
  models: readonly KernelModel[],
): Map<string, string> {
  if (variant === undefined) return kernelSettings(set);
  const withVariants = models.filter(({ settings }) =>
    settings.some(({ key }) => key === 'variant'),
  );
  if (!withVariants.some(({ name }) => name === kernel))
    throw new RequestError(
      `--variant is a bug of ${withVariants.map(({ name }) => name).join(', ')}; ${kernel} has none`,
    );
  findKernelVariant(variant);
  return kernelSettings([...set, `variant=${variant}`]);
}

/** Reads a live kernel's outputs; for other tensors that it writes, stderr says once that nothing reads them. */
function outputReader(): OutputReader<KernelOutputs> {
  let isSaid = false;
  return (file, problem, { wants = [] }) => {
    const wanted = judgedGradients.filter(({ name }) => wants.includes(name));
    const known = [...quantities, ...wanted];
    const unasked = unaskedTensors(file, known);
    if (unasked.length > 0 && !isSaid)
      process.stderr.write(
        `warning: the kernel's process writes ${unasked.map(quoted).join(', ')}, which no law reads\n`,
      );
    isSaid ||= unasked.length > 0;
    return writtenOutputs(
      file,
      async (quantity) => {
        const tensor = await file.read(quantity.name);
        // Those of biases and sinks lie as these do.
        const isShared = sharedQuantities.some(({ name }) => name === quantity.name);
        return isShared ? tensor : gatherOutput(problem, quantity, tensor);
      },
      known,
    );
  };
}

/** A live kernel whose failures do not name its folder: that is another each time, and soon gone. */
function withoutFolder(live: LiveKernel<KernelOutputs>): LiveKernel<KernelOutputs> {
  return {
    ...live,
    run: async (problem, asked) => {
      const answer = await live.run(problem, asked);
      return answer.ok
        ? answer
        : { ...answer, reason: answer.reason.replaceAll(`${live.folder}${sep}`, '') };
    },
  };
}

/**
 * The kernel that --kernel, --exec or --launch names.
 * @throws RequestError for options that do not parse, and an unknown model or variant
 */
async function kernelUnderTest(
  options: CheckCommandOptions,
  { models = kernelModels }: CommandContext,
): Promise<KernelUnderTest> {
  const { kernel, exec, as, launch } = options;
  if (exec === undefined && launch === undefined)
    return emulatedKernel(kernel!, settingsOf(options, models), models);
  // What is wrong with the options is said before the command is started.
  if (as !== undefined) isModel(as, models);
  const settings = kernelSettings(options.set);
  const timeout = parsePositive(options.timeout, '--timeout');
  if (exec === undefined) {
    const live = await startCompiledKernel(launch!);
    const [command, subject] = [`flashproof run ${launch}`, 'the compiled kernel'];
    const kernel = liveKernel({ live, command, subject, as, settings, models });
    return { ...kernel, promises: { ...kernel.promises, follow: await startFollowing(launch!) } };
  }
  const live = withoutFolder(await startLiveKernel(exec, timeout, outputReader()));
  return liveKernel({ live, command: exec, as, settings, models });
}

/** Exit statuses of a check. */
const passed = 0;
const failed = 1;

/** @throws RequestError for options that do not go together */
function rejectOptions(options: CheckCommandOptions, { models }: CommandContext): void {
  const { kernel, as, exec, launch, bail, threads = 1 } = options;
  if (threads !== 1 && launch !== undefined)
    throw new RequestError(
      'the compiled kernel of --launch gets its problems one after the other; leave out --threads',
    );
  if (threads !== 1 && exec !== undefined)
    throw new RequestError(
      'the command of --exec is one process, which gets its problems one after the other; leave out --threads',
    );
  if (threads !== 1 && bail === true)
    throw new RequestError(
      '--bail stops at the first violation, which one thread looks for; leave out --threads',
    );
  rejectClashes(checkOptions, options, {
    set: () => kernel !== undefined || (as !== undefined && isModel(as, models)),
  });
}

/** @throws RequestError for options that have no meaning for a check in shards or sittings */
function rejectCampaignClashes(
  { bail, replay, strict, threads = 1 }: CheckCommandOptions,
  { shard }: Campaign,
): void {
  if (threads !== 1)
    throw new RequestError(
      'a shard, and a check with --journal, is tried by one thread; leave out --threads, and start as many shards as there are cores',
    );
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
