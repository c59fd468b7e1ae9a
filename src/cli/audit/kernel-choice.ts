import { problemNote, type TensorFile } from '../../io/index.js';
import {
  declaredModel,
  modelNamed,
  type ArithmeticRequest,
  type MeasuredModel,
  settingsOfForward,
} from '../../jobs/index.js';
import { kernelSettings } from '../options/settings.js';
import type { AuditSettings } from './audit-settings.js';
import type { AuditCommandOptions } from './options.js';

/**
 * The request that selects the arithmetic by which an output is judged.
 * @param withBackward as for `settingsOfForward`
 */
export function arithmeticRequest(
  file: TensorFile,
  { options, context: { models } }: AuditSettings,
  withBackward: boolean,
): ArithmeticRequest {
  const { kernel, as, premise, strictPremises } = options;
  const noted = problemNote(file, 'premises');
  const settings = () =>
    settingsOfForward({ kernel, as, models }, kernelSettings(options.set), withBackward);
  return { kernel, as, premise, noted, strictPremises, settings, models };
}

/** The model whose techniques are measured: the kernel's own; for the page of plots, a declared one. */
export function measuredModel(
  { kernel, html }: AuditCommandOptions,
  declared: ArithmeticRequest,
): MeasuredModel | null {
  const name = kernel ?? (html === undefined ? undefined : declaredModel(declared));
  return name === undefined
    ? null
    : { model: modelNamed(name, declared.models), settings: declared.settings() };
}
