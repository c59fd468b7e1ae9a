import { forwardSettings, type KernelModel, type KernelSettings } from '../../../kernels/index.js';
import { modelNamed } from '../../jobs/index.js';
import { kernelSettings } from './settings.js';

/** The options that name a model and choose its settings. */
interface ModelOptions {
  readonly kernel?: string;
  readonly as?: string;
  readonly set?: readonly string[];
}

/**
 * The settings by --set for the forward pass of the model that --kernel or --as names.
 * @param withBackward whether settings of its backward pass alone are allowed; they are left out here
 * @throws RequestError for text that is not <key>=<value>
 */
export function settingsOfForward(
  { kernel, as, set }: ModelOptions,
  models: readonly KernelModel[] | undefined,
  withBackward: boolean,
): KernelSettings {
  const settings = kernelSettings(set);
  const name = kernel ?? as;
  const model = name === undefined ? '' : modelNamed(name, models);
  const backward = typeof model === 'string' ? null : model.backward;
  return withBackward && backward !== null ? forwardSettings(backward, settings) : settings;
}
