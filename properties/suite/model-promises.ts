import { findKernelModel, runKernelModel, type KernelModel } from '../../kernels/index.js';
import { judgedArithmetic, type KernelArithmetic } from '../../src/audit/index.js';
import type { Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import {
  UnsupportedProblem,
  type AttentionKernel,
  type AttentionOutputs,
  type KernelConfiguration,
} from '../laws/index.js';
import { kindsTaken } from '../problems/index.js';
import type { KernelPromises } from './promises.js';

/** Values as text, by key, as a kernel model takes them. */
type Settings = ReadonlyMap<string, string>;

/** A kernel model as a kernel under test, with what it promises. */
export interface ModelUnderTest {
  readonly kernel: AttentionKernel;
  readonly promises: KernelPromises;
}

/** How a model computes on a problem; null where nothing is known, as of splits. */
function arithmeticOf(
  model: KernelModel,
  settings: Settings,
): (problem: Problem) => KernelArithmetic | null {
  return (problem) => {
    try {
      return judgedArithmetic(model, problem, settings);
    } catch (error) {
      // The model runs there, or its run says why not.
      if (error instanceof RequestError) return null;
      throw error;
    }
  };
}

/** @throws UnsupportedProblem for a problem that the model does not take */
function runModel(model: KernelModel, problem: Problem, settings: Settings): AttentionOutputs {
  try {
    return runKernelModel(model, problem, settings);
  } catch (error) {
    if (error instanceof RequestError) throw new UnsupportedProblem(error.message);
    throw error;
  }
}

function underSettings(model: KernelModel, settings: Settings): Required<KernelConfiguration> {
  return {
    kernel: (problem, { dout } = {}) => {
      if (dout !== undefined)
        throw new UnsupportedProblem(`${model.name} has no backward pass to run`);
      return runModel(model, problem, settings);
    },
    arithmetic: arithmeticOf(model, settings),
  };
}

/** The model in the settings that it promises to be right in too, but for those that are chosen. */
function configurationsOf(
  model: KernelModel,
  settings: Settings,
): Record<string, KernelConfiguration> {
  const { configurations = [] } = model.promises(settings);
  const others = configurations
    .map((changed) => Object.entries(changed))
    .filter((changed) => !changed.some(([key]) => settings.has(key)));
  return Object.fromEntries(
    others.map((changed) => [
      changed.map(([key, value]) => `${key}=${value}`).join(' '),
      underSettings(model, new Map([...settings, ...changed])),
    ]),
  );
}

/**
 * A kernel model as a kernel under test: its run on one thread, judged by its own arithmetic, and its
 * promises.
 * @param model the model, or its name
 * @param settings as of `KernelModel.prepare`; a variant among them is a bug, of which promises and
 * bounds know nothing
 * @throws RequestError for an unknown model
 */
export function modelPromises(
  model: string | KernelModel,
  settings: Settings = new Map(),
): ModelUnderTest {
  const found = findKernelModel(model);
  const { unpromised = [], ...promises } = found.promises(settings);
  return {
    kernel: underSettings(found, settings).kernel,
    promises: {
      ...promises,
      features: kindsTaken(found.features.filter((name) => !unpromised.includes(name))),
      configurations: configurationsOf(found, settings),
      arithmetic: arithmeticOf(found, settings),
      premises: found.premises(settings),
    },
  };
}
