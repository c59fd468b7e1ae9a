import {
  emulateRecurrence,
  findRecurrentFault,
  findRecurrentModel,
  recurrentFaults,
  recurrentModels,
  type RecurrentFault,
  type RecurrentModel,
} from '../../../../kernels/index.js';
import { UnsupportedProblem, type RecurrentKernel } from '../../../../properties/index.js';
import { RequestError } from '../../../request-error.js';
import type { RecurrenceUnderTest } from './recurrence-under-test.js';

/** The model's kernel, which declines what the model refuses, and what the fault leaves open. */
function kernelOf(model: RecurrentModel, fault: RecurrentFault | undefined): RecurrentKernel {
  return (problem, gradientInputs) => {
    const arithmetic = model.arithmetic(problem);
    const { chunk } = arithmetic;
    const applies = fault?.appliesTo({ problem, chunk, gradientInputs }) === true;
    try {
      const right = { gradientInputs, ...(applies ? { fault } : {}) };
      const results = emulateRecurrence(problem, arithmetic, right);
      if (results.out === undefined || (gradientInputs !== undefined && results.dq === undefined))
        throw new UnsupportedProblem('what the fault makes of it is not known');
      return results;
    } catch (error) {
      if (error instanceof RequestError) throw new UnsupportedProblem(error.message);
      throw error;
    }
  };
}

/** A name among some. @throws RequestError for another */
function known<T>(found: T | undefined, what: string, name: string, names: readonly string[]): T {
  if (found === undefined)
    throw new RequestError(
      `no ${what} of linear attention ${JSON.stringify(name)}; there are ${names.join(', ')}`,
    );
  return found;
}

/**
 * An emulated kernel of linear attention to try, which gives gradients.
 * @param name of the model
 * @param variant the fault to be found; none if undefined
 * @throws RequestError for an unknown model or fault
 */
export function emulatedRecurrence(name: string, variant?: string): RecurrenceUnderTest {
  const models = recurrentModels.map((one) => one.name);
  const model = known(findRecurrentModel(name), 'kernel model', name, models);
  const faults = recurrentFaults.map(({ id }) => id);
  const fault =
    variant === undefined
      ? undefined
      : known(findRecurrentFault(variant), 'bug of kernels', variant, faults);
  return {
    kernel: kernelOf(model, fault),
    promises: { gradients: true, deterministic: true },
    reported: {
      command: null,
      model: name,
      settings: variant === undefined ? {} : { variant },
      judgedAs: null,
    },
    whyNotRunning: async () => null,
    close: async () => undefined,
  };
}
