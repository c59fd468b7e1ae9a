import {
  emulateRecurrence,
  faultApplies,
  findRecurrentFault,
  findRecurrentModel,
  mamba2Faults,
  readRecurrentSettings,
  recurrentFaults,
  recurrentModels,
  type RecurrentFault,
  type RecurrentModel,
  type RecurrentModelSettings,
} from '../../../../kernels/index.js';
import {
  UnsupportedProblem,
  type RecurrentConfiguration,
  type RecurrentKernel,
} from '../../../../properties/index.js';
import type { RecurrentDeclaration } from '../../../audit/index.js';
import { recurrentFamilies, type RecurrentFamily } from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import type { RecurrenceUnderTest } from './recurrence-under-test.js';

/** The model's kernel, which declines what the model refuses, and what the fault leaves open. */
function kernelOf(
  model: RecurrentModel,
  settings: RecurrentModelSettings,
  fault: RecurrentFault | undefined,
): RecurrentKernel {
  return (problem, gradientInputs) => {
    const arithmetic = model.arithmetic(problem, settings);
    const { chunk } = arithmetic;
    const applies = fault !== undefined && faultApplies(fault, { problem, chunk, gradientInputs });
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

/** A model of linear attention. @throws RequestError for an unknown name */
export function recurrentModelNamed(name: string): RecurrentModel {
  const names = recurrentModels.map((one) => one.name);
  return known(findRecurrentModel(name), 'kernel model', name, names);
}

/** What chosen settings declare of a model; nothing where none is chosen, since any kernel may be so. */
export function declaredBySettings({
  chunk,
  formats,
}: RecurrentModelSettings): RecurrentDeclaration {
  const state = formats?.state as RecurrentDeclaration['state'];
  return {
    ...(chunk === undefined ? {} : { form: 'chunked' as const, chunk }),
    ...(state && { state }),
  };
}

/** The model in its other settings, but for those that are chosen. */
function configurationsOf(
  model: RecurrentModel,
  chosen: ReadonlyMap<string, string>,
  fault: RecurrentFault | undefined,
): Readonly<Record<string, RecurrentConfiguration>> {
  const others = model.configurations
    .map((changed) => Object.entries(changed))
    .filter((changed) => !changed.some(([key]) => chosen.has(key)));
  return Object.fromEntries(
    others.map((changed) => {
      const settings = readRecurrentSettings(model, new Map([...chosen, ...changed]));
      const kernel = kernelOf(model, settings, fault);
      const name = changed.map(([key, value]) => `${key}=${value}`).join(' ');
      return [name, { kernel, declared: declaredBySettings(settings) }];
    }),
  );
}

/** A model of linear attention in some settings, perhaps with a bug. */
export interface ChosenRecurrentModel {
  readonly model: RecurrentModel;
  /** The settings as text, by key, without the bug. */
  readonly chosen: ReadonlyMap<string, string>;
  readonly settings: RecurrentModelSettings;
  readonly fault: RecurrentFault | undefined;
}

/**
 * The model of linear attention of a name.
 * @param settings as text, by key; a variant among them is a bug
 * @throws RequestError for an unknown model, setting or fault
 */
export function chooseRecurrentModel(
  name: string,
  settings: ReadonlyMap<string, string>,
): ChosenRecurrentModel {
  const model = recurrentModelNamed(name);
  const chosen = new Map(settings);
  chosen.delete('variant');
  const variant = settings.get('variant');
  const faults = [...recurrentFaults, ...mamba2Faults].map(({ id }) => id);
  const fault =
    variant === undefined
      ? undefined
      : known(findRecurrentFault(variant), 'bug of kernels', variant, faults);
  return { model, chosen, settings: readRecurrentSettings(model, chosen), fault };
}

/**
 * An emulated kernel of linear attention to try, which gives gradients.
 * @param name of the model
 * @param settings as text, by key; a variant among them is the bug to be found
 * @throws RequestError for an unknown model, setting or fault
 */
export function emulatedRecurrence(
  name: string,
  settings: ReadonlyMap<string, string> = new Map(),
): RecurrenceUnderTest {
  const { model, chosen, settings: parsed, fault } = chooseRecurrentModel(name, settings);
  return {
    kernel: kernelOf(model, parsed, fault),
    promises: {
      families: Object.keys(recurrentFamilies) as RecurrentFamily[],
      gradients: true,
      deterministic: true,
      declared: declaredBySettings(parsed),
      configurations: configurationsOf(model, chosen, fault),
      ...(parsed.chunk === undefined ? {} : { chunk: parsed.chunk }),
    },
    reported: {
      command: null,
      model: name,
      settings: Object.fromEntries(settings),
      judgedAs: null,
    },
    elsewhere: { name, settings },
    whyNotRunning: async () => null,
    close: async () => undefined,
  };
}
