import { sep } from 'node:path';
import { findKernelVariant, kernelModels, type KernelModel } from '../../../kernels/index.js';
import type { KernelOutputs } from '../../audit/index.js';
import type { TensorFile } from '../../io/index.js';
import { emulatedKernel, isModel, liveKernel, type KernelUnderTest } from '../../jobs/index.js';
import { startLiveKernel, writtenOutputs, type LiveKernel } from '../../live/index.js';
import { RequestError } from '../../request-error.js';
import type { CommandContext } from '../options/command-rows.js';
import { kernelSettings } from '../options/kernel-settings.js';
import { parsePositive } from '../options/parse-values.js';
import type { CheckCommandOptions } from './options.js';

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

function readOutputs(file: TensorFile): Promise<KernelOutputs> {
  return writtenOutputs(file, file.read);
}

/** A live kernel whose failures do not name its folder: that is another each time, and soon gone. */
function withoutFolder(live: LiveKernel<KernelOutputs>): LiveKernel<KernelOutputs> {
  return {
    ...live,
    run: async (problem) => {
      const answer = await live.run(problem);
      return answer.ok
        ? answer
        : { ...answer, reason: answer.reason.replaceAll(`${live.folder}${sep}`, '') };
    },
  };
}

/**
 * The kernel that --kernel or --exec names.
 * @throws RequestError for options that do not parse, and a model or a variant that there is not
 */
export async function kernelUnderTest(
  options: CheckCommandOptions,
  { models = kernelModels }: CommandContext,
): Promise<KernelUnderTest> {
  const { kernel, exec, as } = options;
  if (exec === undefined) return emulatedKernel(kernel!, settingsOf(options, models), models);
  // What is wrong with the options is said before the command is started.
  if (as !== undefined) isModel(as, models);
  const settings = kernelSettings(options.set);
  const timeout = parsePositive(options.timeout, '--timeout');
  const live = withoutFolder(await startLiveKernel(exec, timeout, readOutputs));
  return liveKernel({ live, command: exec, as, settings, models });
}
