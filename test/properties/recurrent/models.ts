import {
  emulateRecurrence,
  faultApplies,
  findRecurrentFault,
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

/** A model with a fault, where a problem lets a kernel have it. */
export function faultyKernel(name: string, id: string): RecurrentKernel {
  const model = findRecurrentModel(name)!;
  const fault = findRecurrentFault(id)!;
  return (problem, gradientInputs) => {
    const arithmetic = model.arithmetic(problem);
    const applies = faultApplies(fault, { problem, chunk: 64, gradientInputs });
    return emulateRecurrence(problem, arithmetic, {
      gradientInputs,
      ...(applies ? { fault } : {}),
    });
  };
}
