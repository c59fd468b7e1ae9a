import {
  emulateRecurrence,
  faultApplies,
  type KernelSettings,
  type RecurrentArithmetic,
} from '../../../../kernels/index.js';
import { recurrentStateFormats, type RecurrentDeclaration } from '../../../audit/index.js';
import { RequestError } from '../../../request-error.js';
import type { OpenRecurrence, RecurrentSource } from '../../audit/index.js';
import { chooseRecurrentModel, type ChosenRecurrentModel } from '../../check/recurrent/index.js';
import { madeSources } from '../made-source.js';

/** A model of linear attention to run for its results. */
export interface EmulatedRecurrenceRequest {
  readonly kernel: string;
  /** Its settings as they are given: `<key>=<value>`. */
  readonly set?: readonly string[] | undefined;
  /** @throws RequestError for settings that do not parse */
  readonly modelSettings: () => KernelSettings;
}

/** What a model says of itself: its form, its chunk, and the format of its state. Intermediates are in that of the values, as any kernel's. */
function declarationOf({ form, chunk, formats }: RecurrentArithmetic): RecurrentDeclaration {
  const state = recurrentStateFormats.find((one) => one === formats.state);
  return { form, ...(form === 'chunked' && { chunk }), ...(state && { state }) };
}

/**
 * What a model computes of a problem.
 * @throws RequestError for a problem that it does not take, and a bug that no kernel can have on it or whose results are not known
 */
function emulated(
  { model, settings, fault }: ChosenRecurrentModel,
  { problem, gradientInputs }: OpenRecurrence,
) {
  const arithmetic = model.arithmetic(problem, settings);
  const { chunk } = arithmetic;
  if (fault !== undefined && !faultApplies(fault, { problem, chunk, gradientInputs }))
    throw new RequestError(
      `no kernel can have the bug ${fault.id} on this problem; leave out variant, or give another problem`,
    );
  const results = emulateRecurrence(problem, arithmetic, { gradientInputs, fault });
  if (results.out === undefined)
    throw new RequestError(
      `what the bug ${fault?.id ?? ''} makes of the output is not known; give another variant`,
    );
  return { results, declared: declarationOf(arithmetic) };
}

/** A kernel model of linear attention: its output and final state, and its gradients where the problem has dO. */
export function emulatedRecurrenceSource({
  kernel,
  set = [],
  modelSettings,
}: EmulatedRecurrenceRequest): RecurrentSource {
  return {
    command: (path) =>
      [
        ...['flashproof audit', path, '--kernel', kernel],
        ...set.map((text) => `--set ${text}`),
      ].join(' '),
    takes: async () => [],
    run: async (open) => {
      const { results, declared } = emulated(chooseRecurrentModel(kernel, modelSettings()), open);
      return { results, declared, sources: madeSources(results) };
    },
  };
}
