import {
  backwardOf,
  findModelAmong,
  forwardSettings,
  kernelModels,
  type KernelModel,
} from '../../../kernels/index.js';
import {
  modelPromises,
  UnsupportedProblem,
  type AttentionKernel,
  type KernelPromises,
  type ResolvedPromises,
} from '../../../properties/index.js';
import { encodeFromFloat64, formats } from '../../formats/index.js';
import { problemShape, type Problem, type Tensor } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { type KernelUnderTest, ordinaryProblem } from './kernel-under-test.js';

/** The kernel, where a refused problem is no failure: models refuse with a RequestError. */
function declining(kernel: AttentionKernel): AttentionKernel {
  return async (problem, conditions) => {
    try {
      return await kernel(problem, conditions);
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

/** A gradient of zeros for an output. */
function zeroDout(problem: Problem): Tensor {
  const { batch, heads, queries, vDim } = problemShape(problem);
  const shape = [batch, heads, queries, vDim];
  const zeros = new Float64Array(batch * heads * queries * vDim);
  return { format: 'bf16', shape, data: encodeFromFloat64(formats.bf16, zeros) };
}

/**
 * @throws RequestError for settings that the model refuses in every format that is promised, and for promised gradients of a
 * model that has none
 */
function checkSettings(
  model: KernelModel,
  settings: ReadonlyMap<string, string>,
  promises: ResolvedPromises,
): void {
  let refusal: unknown;
  for (const format of promises.formats)
    try {
      const problem = ordinaryProblem(promises, format);
      const { backward } = model;
      model.prepare(problem, backward === null ? settings : forwardSettings(backward, settings));
      if (promises.gradients)
        backwardOf(model).prepare(problem, { dout: zeroDout(problem), forward: null }, settings);
      return;
    } catch (error) {
      refusal ??= error;
    }
  throw refusal;
}

/**
 * An emulated kernel to try.
 * @param name of the model
 * @param settings as text, by key; a variant among them is the bug to be found
 * @param models the available kernel models
 * @throws RequestError for an unknown model or variant
 */
export function emulatedKernel(
  name: string,
  settings: ReadonlyMap<string, string>,
  models: readonly KernelModel[] = kernelModels,
): KernelUnderTest {
  const model = findModelAmong(models, name);
  const { kernel, promises } = modelPromises(model, settings);
  return {
    kernel: declining(kernel),
    promises: { ...promises, configurations: decliningConfigurations(promises) },
    reported: {
      command: null,
      model: name,
      settings: Object.fromEntries(settings),
      judgedAs: null,
    },
    elsewhere: kernelModels.includes(model) ? { name, settings } : null,
    whyNotRunning: async (resolved) => {
      checkSettings(model, settings, resolved);
      return null;
    },
    close: async () => undefined,
  };
}
