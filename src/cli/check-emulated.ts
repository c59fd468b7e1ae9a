import { findKernelModel, findKernelVariant, kernelModels } from '../../kernels/index.js';
import {
  modelPromises,
  UnsupportedProblem,
  type AttentionKernel,
  type KernelPromises,
  type ResolvedPromises,
} from '../../properties/index.js';
import type { Problem } from '../problem/index.js';
import { RequestError } from '../request-error.js';
import type { CheckCommandOptions } from './check/options.js';
import { ordinaryProblem } from './check-ordinary-problem.js';
import type { KernelUnderTest } from './check-kernel-under-test.js';
import { kernelSettings } from './options/kernel-settings.js';

/** The --set options with --variant among them. @throws RequestError for a variant of other models */
function settingsOf({ kernel, set = [], variant }: CheckCommandOptions): Map<string, string> {
  if (variant === undefined) return kernelSettings(set);
  const withVariants = kernelModels.filter(({ settings }) =>
    settings.some(({ key }) => key === 'variant'),
  );
  if (!withVariants.some(({ name }) => name === kernel))
    throw new RequestError(
      `--variant is a bug of ${withVariants.map(({ name }) => name).join(', ')}; ${kernel} has none`,
    );
  findKernelVariant(variant);
  return kernelSettings([...set, `variant=${variant}`]);
}

/** The kernel, but that what it refuses is no failure of it: models say so by a RequestError. */
function declining(kernel: AttentionKernel): AttentionKernel {
  return async (problem: Problem) => {
    try {
      return await kernel(problem);
    } catch (error) {
      if (error instanceof RequestError) throw new UnsupportedProblem(error.message);
      throw error;
    }
  };
}

function decliningConfigurations(promises: KernelPromises): KernelPromises['configurations'] {
  const entries = Object.entries(promises.configurations ?? {});
  return Object.fromEntries(
    entries.map(([name, { kernel, ...rest }]) => [name, { kernel: declining(kernel), ...rest }]),
  );
}

/** @throws RequestError for settings that the model refuses in every format that is promised */
function checkSettings(
  model: string,
  settings: ReadonlyMap<string, string>,
  promises: ResolvedPromises,
): void {
  let refusal: unknown;
  for (const format of promises.formats)
    try {
      findKernelModel(model).prepare(ordinaryProblem(promises, format), settings);
      return;
    } catch (error) {
      refusal ??= error;
    }
  throw refusal;
}

/**
 * The emulated kernel of --kernel.
 * @throws RequestError for a model or a variant that there is not
 */
export function emulatedKernel(model: string, options: CheckCommandOptions): KernelUnderTest {
  const settings = settingsOf(options);
  const { kernel, promises } = modelPromises(model, settings);
  return {
    kernel: declining(kernel),
    promises: { ...promises, configurations: decliningConfigurations(promises) },
    reported: { command: null, model, settings: Object.fromEntries(settings), judgedAs: null },
    whyNotRunning: async (resolved) => {
      checkSettings(model, settings, resolved);
      return null;
    },
    close: async () => undefined,
  };
}
