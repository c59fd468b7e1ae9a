import { RequestError } from '../src/request-error.js';
import { fa1Model } from './fa1/index.js';
import { fa2Model } from './fa2/index.js';
import { fa4Model } from './fa4/index.js';
import type { KernelModel } from './kernel-model.js';
import { naiveFloat32Model, naiveInputModel } from './naive/index.js';

/** The kernel models. */
export const kernelModels: readonly KernelModel[] = [
  fa4Model,
  fa2Model,
  fa1Model,
  naiveFloat32Model,
  naiveInputModel,
];

/** The model that is meant where none is named: FlashAttention-4's forward. */
export const defaultKernelModel: KernelModel = fa4Model;

/**
 * The kernel model of a name among some models, or the model itself.
 * @throws RequestError for an unknown name
 */
export function findModelAmong(
  models: readonly KernelModel[],
  model: string | KernelModel,
): KernelModel {
  if (typeof model !== 'string') return model;
  const found = models.find((known) => known.name === model);
  if (found === undefined)
    throw new RequestError(
      `no kernel model ${JSON.stringify(model)}; there are ${models.map(({ name }) => name).join(', ')}`,
    );
  return found;
}

/** The library's kernel model of a name, or the model itself. @throws RequestError for an unknown name */
export function findKernelModel(model: string | KernelModel): KernelModel {
  return findModelAmong(kernelModels, model);
}
