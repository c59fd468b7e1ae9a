import { forwardSettings, type KernelModel, type KernelSettings } from '../../../kernels/index.js';
import { problemNote, type TensorFile } from '../../io/index.js';
import {
  declaredModel,
  modelNamed,
  type ArithmeticRequest,
  type MeasuredModel,
} from '../../jobs/index.js';
import { kernelSettings } from '../options/settings.js';
import type { AuditSettings } from './audit-settings.js';
import type { AuditCommandOptions } from './options.js';

/**
 * What --set chooses of the forward pass of the model that --kernel or --as names.
 * @param withBackward whether settings of its backward pass alone have their use, and are left out here
 * @throws RequestError for what is not <key>=<value>
 */
export function settingsOfForward(
  { kernel, as, set }: AuditCommandOptions,
  models: readonly KernelModel[] | undefined,
  withBackward: boolean,
): KernelSettings {
  const settings = kernelSettings(set);
  const name = kernel ?? as;
  const model = name === undefined ? '' : modelNamed(name, models);
  const backward = typeof model === 'string' ? null : model.backward;
  return withBackward && backward !== null ? forwardSettings(backward, settings) : settings;
}

/**
 * What decides by which arithmetic an output is judged.
 * @param withBackward as of `settingsOfForward`
 */
export function arithmeticRequest(
  file: TensorFile,
  { options, context: { models } }: AuditSettings,
  withBackward: boolean,
): ArithmeticRequest {
  const { kernel, as, premise } = options;
  const noted = problemNote(file, 'premises');
  const settings = () => settingsOfForward(options, models, withBackward);
  return { kernel, as, premise, noted, settings, models };
}

/** The model of which techniques are measured: the kernel's own; a declared one for the page of plots. */
export function measuredModel(
  { kernel, html }: AuditCommandOptions,
  declared: ArithmeticRequest,
): MeasuredModel | null {
  const name = kernel ?? (html === undefined ? undefined : declaredModel(declared));
  return name === undefined
    ? null
    : { model: modelNamed(name, declared.models), settings: declared.settings() };
}
