import { firstColumns } from '../../../formats/index.js';
import type { Tensor } from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import type { TensorFile } from '../tensor-file.js';
import type { ProblemSettings } from './settings.js';

/** Whether a problem has no V of its own, and says how many columns of K are its V. */
export function isLatent(
  { entries }: Pick<TensorFile, 'entries'>,
  { vDim, ignored = [] }: ProblemSettings,
): boolean {
  return vDim !== undefined && (!entries.has('v') || ignored.includes('v'));
}

/**
 * The values of a latent cache: the first columns of its keys, with their factors.
 * @throws RequestError for more columns than K has
 */
export function latentValues(k: Tensor, { vDim = 0 }: Pick<ProblemSettings, 'vDim'>): Tensor {
  const dim = k.shape.at(-1) ?? 0;
  if (vDim > dim)
    throw new RequestError(`v_dim is ${vDim}, but K has ${dim} columns; give as many or fewer`);
  return firstColumns(k, vDim);
}
