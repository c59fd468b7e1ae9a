import { kernelModels, type KernelModel } from '../../../kernels/index.js';
import type { Problem } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import type { PremiseDeclaration } from '../premise-declaration.js';
import type { KernelArithmetic } from './kernel-arithmetic.js';

type Settings = ReadonlyMap<string, string>;

/** The model of a name, or the model itself. @throws RequestError for an unknown name */
function boundedModel(
  model: string | KernelModel,
  models: readonly KernelModel[] = kernelModels,
): KernelModel {
  const found = typeof model === 'string' ? models.find(({ name }) => name === model) : model;
  if (found === undefined)
    throw new RequestError(
      `no bounds for a kernel model ${JSON.stringify(model)}; there are for ${models.map(({ name }) => name).join(', ')}`,
    );
  return found;
}

/**
 * What a kernel model declares of itself, for tests that take no whole arithmetic.
 * @param settings as `modelArithmetic` takes them
 * @throws RequestError for an unknown model
 */
export function modelPremises(
  model: string | KernelModel,
  settings: Settings = new Map(),
): PremiseDeclaration {
  return boundedModel(model).premises(settings);
}

/**
 * The arithmetic of a kernel model on a problem. Settings are as `KernelModel.prepare` takes them; a
 * variant's own settings count, its bug does not.
 * @param model the model, or its name
 * @param models where names are looked up
 * @throws RequestError for an unknown model or one without bounds, and as its `prepare`
 */
export function modelArithmetic(
  model: string | KernelModel,
  problem: Problem,
  settings: Settings = new Map(),
  models: readonly KernelModel[] = kernelModels,
): KernelArithmetic {
  return boundedModel(model, models).arithmetic(problem, settings);
}

/**
 * The arithmetic that a model's output is judged by: without what a variant does or sets, and without
 * weights beyond the range of their format.
 * @throws RequestError as `modelArithmetic`
 */
export function judgedArithmetic(
  model: string | KernelModel,
  problem: Problem,
  settings: Settings = new Map(),
): KernelArithmetic {
  const correct = new Map([...settings].filter(([key]) => key !== 'variant'));
  return { ...modelArithmetic(model, problem, correct), overflow: 'fault' };
}
