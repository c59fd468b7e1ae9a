import { problemNote, type TensorFile } from '../../io/index.js';
import {
  declaredModel,
  modelNamed,
  type ArithmeticRequest,
  type MeasuredModel,
} from '../../jobs/index.js';
import { settingsOfForward } from '../options/forward-settings.js';
import type { AuditSettings } from './audit-settings.js';
import type { AuditCommandOptions } from './options.js';

/**
 * What decides by which arithmetic an output is judged.
 * @param withBackward as of `settingsOfForward`
 */
export function arithmeticRequest(
  file: TensorFile,
  { options, context: { models } }: AuditSettings,
  withBackward: boolean,
): ArithmeticRequest {
  const { kernel, as, premise, strictPremises } = options;
  const noted = problemNote(file, 'premises');
  const settings = () => settingsOfForward(options, models, withBackward);
  return { kernel, as, premise, noted, strictPremises, settings, models };
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
