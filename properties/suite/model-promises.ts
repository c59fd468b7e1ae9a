import {
  findKernelModel,
  forwardSettings,
  runBackward,
  runKernelModel,
  type KernelModel,
} from '../../kernels/index.js';
import {
  judgedArithmetic,
  kernelGradientPremises,
  type KernelArithmetic,
} from '../../src/audit/index.js';
import type { Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import {
  UnsupportedProblem,
  type AttentionKernel,
  type KernelConfiguration,
  type KernelResults,
  type RunConditions,
} from '../laws/index.js';
import { kindsTaken } from '../problems/index.js';
import type { KernelPromises } from './promises.js';

/** Values as text, by key, as a kernel model takes them. */
type Settings = ReadonlyMap<string, string>;

/** A kernel model as a kernel under test, with its promises. */
export interface ModelUnderTest {
  readonly kernel: AttentionKernel;
  readonly promises: KernelPromises;
}

/** The arithmetic of a model on a problem; null where nothing is known, as for splits. */
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

/** The settings that the forward pass knows. */
function ofForward({ backward }: KernelModel, settings: Settings): Settings {
  return backward === null ? settings : forwardSettings(backward, settings);
}

/** @throws UnsupportedProblem for a problem that the model does not take, and for gradients of a model that has none */
function runModel(
  model: KernelModel,
  problem: Problem,
  settings: Settings,
  { dout, forward }: RunConditions = {},
): KernelResults {
  try {
    if (dout === undefined) return runKernelModel(model, problem, ofForward(model, settings));
    const given = forward === undefined ? { dout } : { dout, forward };
    const { forward: own, dq, dk, dv } = runBackward(model, problem, given, settings);
    return { ...own, dq, dk, dv };
  } catch (error) {
    if (error instanceof RequestError) throw new UnsupportedProblem(error.message);
    throw error;
  }
}

function underSettings(model: KernelModel, settings: Settings): Required<KernelConfiguration> {
  return {
    kernel: (problem, conditions) => runModel(model, problem, settings, conditions),
    arithmetic: arithmeticOf(model, ofForward(model, settings)),
  };
}

/** The model in the other settings in which it promises to be right. */
function configurationsOf(
  model: KernelModel,
  settings: Settings,
): Record<string, KernelConfiguration> {
  const { configurations = [] } = model.promises(ofForward(model, settings));
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

/** The arithmetic of a model's gradients, for their bounds; null if it has none, or does not take the problem. */
function gradientPremisesOf(
  { backward }: KernelModel,
  settings: Settings,
): NonNullable<KernelPromises['gradientPremises']> {
  return (problem, output) => {
    if (backward === null) return null;
    try {
      return kernelGradientPremises(problem, output, backward.arithmetic(problem, settings));
    } catch (error) {
      if (error instanceof RequestError) return null;
      throw error;
    }
  };
}

/**
 * A kernel model as a kernel under test: its run on one thread, judged by its own arithmetic, and its promises. It
 * gives gradients if it has a backward pass, but promises them only where that is asked for (`gradients`); an emulation
 * is deterministic.
 * @param model the model, or its name
 * @param settings as for `KernelModel.prepare`; a variant among them is a bug, which promises and bounds ignore
 * @throws RequestError for an unknown model
 */
export function modelPromises(
  model: string | KernelModel,
  settings: Settings = new Map(),
): ModelUnderTest {
  const found = findKernelModel(model);
  const forward = ofForward(found, settings);
  const { unpromised = [], ...promises } = found.promises(forward);
  return {
    kernel: underSettings(found, settings).kernel,
    promises: {
      ...promises,
      features: kindsTaken(found.features.filter((name) => !unpromised.includes(name))),
      configurations: configurationsOf(found, settings),
      arithmetic: arithmeticOf(found, forward),
      premises: found.premises(forward),
      deterministic: true,
      readsForward: found.backward !== null,
      ...(found.backward === null
        ? {}
        : {
            gradientProblems: {
              ...found.backward.promises,
              features: kindsTaken(found.backward.features),
            },
          }),
      gradientPremises: gradientPremisesOf(found, settings),
    },
  };
}
