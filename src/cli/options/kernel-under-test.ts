import { sep } from 'node:path';
import { findKernelVariant, type KernelModel, kernelModels } from '../../../kernels/index.js';
import { judgedGradients, sharedQuantities, type KernelOutputs } from '../../audit/index.js';
import { quoted } from '../../io/index.js';
import {
  type LiveAnswer,
  type OutputReader,
  startLiveKernel,
  unaskedTensors,
  writtenOutputs,
} from '../../io/live/index.js';
import {
  emulatedKernel,
  isModel,
  type KernelUnderTest,
  liveKernel,
  startCompiledKernel,
  startFollowing,
} from '../../jobs/index.js';
import { gatherOutput, quantities } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import type { CommandContext } from './command-rows.js';
import { parsePositive } from './parse-values.js';
import { kernelSettings } from './settings.js';
import type { ParsedOptions } from './option-rows.js';
import type { kernelOptions } from './shared-options.js';

/** The options that name a kernel to run, as they are given. */
interface NamedKernelOptions extends ParsedOptions<typeof kernelOptions> {
  readonly set?: readonly string[];
  readonly timeout: string;
  /** The model or preset by which a command is judged. */
  readonly as?: string;
  /** Numbers of splits that a command takes. */
  readonly splits?: readonly number[] | undefined;
}

/** A command that answers problems, from a folder of its own. */
interface LiveRuns<Asked extends readonly unknown[], Outputs> {
  readonly folder: string;
  readonly run: (...asked: Asked) => Promise<LiveAnswer<Outputs>>;
  readonly close: () => Promise<void>;
}

/** The --set options with --variant among them. @throws RequestError for a variant of other models */
function settingsOf(
  { kernel, set = [], variant }: NamedKernelOptions,
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
export function withoutFolder<Asked extends readonly unknown[], Outputs>({
  folder,
  run,
  close,
}: LiveRuns<Asked, Outputs>): LiveRuns<Asked, Outputs> {
  return {
    folder,
    run: async (...asked) => {
      const answer = await run(...asked);
      return answer.ok
        ? answer
        : { ...answer, reason: answer.reason.replaceAll(`${folder}${sep}`, '') };
    },
    close,
  };
}

/**
 * The kernel that --kernel, --exec or --launch names.
 * @throws RequestError for options that do not parse, and an unknown model or variant
 */
export async function kernelUnderTest(
  options: NamedKernelOptions,
  { models = kernelModels }: CommandContext,
): Promise<KernelUnderTest> {
  const { kernel, exec, as, launch, splits } = options;
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
  return liveKernel({ live, command: exec, as, settings, models, splits });
}
