import { RequestError } from '../src/request-error.js';
import { fa4Model } from './fa4/index.js';
import type { KernelModel } from './kernel-model.js';
import { naiveFloat32Model, naiveInputModel } from './naive/index.js';

/** The kernel models. */
export const kernelModels: readonly KernelModel[] = [fa4Model, naiveFloat32Model, naiveInputModel];

/** The kernel model of a name. @throws RequestError for an unknown one. */
export function findKernelModel(name: string): KernelModel {
  const model = kernelModels.find((known) => known.name === name);
  if (model === undefined)
    throw new RequestError(
      `no kernel model ${JSON.stringify(name)}; there are ${kernelModels.map(({ name }) => name).join(', ')}`,
    );
  return model;
}
