import {
  emulateRecurrence,
  findRecurrentModel,
  type RecurrentModelSettings,
} from '../../../kernels/index.js';
import type { RecurrentKernel } from '../../../properties/recurrent/index.js';

/** A model as a kernel under test. */
export function modelKernel(name: string, settings: RecurrentModelSettings = {}): RecurrentKernel {
  const model = findRecurrentModel(name);
  if (model === undefined) throw new Error(`no model ${name}`);
  return (problem, gradientInputs) =>
    emulateRecurrence(problem, model.arithmetic(problem, settings), { gradientInputs });
}
