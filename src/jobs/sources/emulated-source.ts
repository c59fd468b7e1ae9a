import {
  backwardOf,
  checkFeatures,
  type ForwardOutputs,
  type KernelModel,
  type KernelSettings,
} from '../../../kernels/index.js';
import { gradientQuantities } from '../../audit/index.js';
import { emulate, emulateBackward } from '../../emulate/index.js';
import type { Problem } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import {
  modelNamed,
  outputGradientArgument,
  readOutputGradient,
  type KernelSource,
  type OpenProblem,
  type ReadGradients,
} from '../audit/index.js';
import { madeSource } from './made-source.js';
import { emulatedRecurrenceSource } from './recurrent/emulated-recurrence.js';

/** A kernel model to run for its results. */
export interface EmulatedRequest {
  readonly kernel: string;
  /** Settings of both passes, as they are given: `<key>=<value>`. */
  readonly set?: readonly string[] | undefined;
  /** @throws RequestError for settings that do not parse */
  readonly modelSettings: () => KernelSettings;
  /** The place of dO, if it is named. */
  readonly dout?: string | undefined;
  /** Whether a sample of rows is judged. */
  readonly isSample: boolean;
  readonly threads: number;
  readonly models?: readonly KernelModel[] | undefined;
}

/** The reason that a model gives no gradients of a problem, in a clause; null if it does. */
function refusalOf(model: KernelModel, problem: Problem): string | null {
  try {
    checkFeatures(`${model.name}'s backward`, backwardOf(model).features, problem);
    return null;
  } catch (error) {
    if (error instanceof RequestError) return error.message;
    throw error;
  }
}

/**
 * The model whose gradients are judged too, where there is dO, or the reason that they are not. That is no fault of the
 * request unless it names dO.
 * @throws RequestError where dO is named for a model that gives no gradients of the problem
 */
function backwardFor(
  { file, problem }: OpenProblem,
  model: KernelModel | string,
  { dout, isSample }: EmulatedRequest,
): { readonly model: KernelModel | null; readonly reason: string | null } {
  if (typeof model === 'string' || outputGradientArgument(file, dout) === undefined)
    return { model: null, reason: null };
  const reason = isSample
    ? 'every row adds to the gradients of keys and values, and --rows judges a sample'
    : refusalOf(model, problem);
  if (reason === null) return { model, reason };
  if (dout !== undefined) throw new RequestError(reason);
  return { model: null, reason };
}

/**
 * Runs a model's backward pass on the stored results of its forward pass.
 * @throws RequestError for a dO that cannot be read or is not of O's shape, and for settings that the model does not have
 */
async function emulateGradients(
  { file, problem, reading }: OpenProblem,
  model: KernelModel,
  forward: ForwardOutputs,
  { dout: named, modelSettings, threads }: EmulatedRequest,
): Promise<ReadGradients> {
  const dout = await readOutputGradient(file, { named, wants: '--kernel' }, reading);
  const made = await emulateBackward(
    problem,
    model,
    { dout: dout.tensor, forward },
    { settings: modelSettings(), threads },
  );
  const sources = gradientQuantities.map(({ name }) => [name, madeSource(name, made[name])]);
  const { dq, dk, dv } = made;
  return {
    tensors: { dq, dk, dv, dout: dout.tensor },
    sources: { ...Object.fromEntries(sources), dout: dout.source },
  };
}

/** A kernel model, run on all cores: its output and LSE, and its gradients where the problem has dO. */
export function emulatedSource(request: EmulatedRequest): KernelSource {
  const { kernel, set = [], threads, models } = request;
  const model = modelNamed(kernel, models);
  return {
    name: kernel,
    keepsPosed: false,
    recurrence: emulatedRecurrenceSource(request),
    command: (_path, withGradients) =>
      [
        ...['flashproof emulate', kernel, ...set.map((text) => `--set ${text}`)],
        ...(withGradients ? ['--backward'] : []),
      ].join(' '),
    open: async () => ({
      takes: [],
      givesGradients: false,
      prepare: (open) => {
        const backward = backwardFor(open, model, request);
        return {
          hasGradients: backward.model !== null,
          reason: backward.reason,
          run: async (settings) => {
            const { out, lse } = await emulate(open.problem, model, {
              settings: settings(),
              threads,
            });
            const sources = { out: madeSource('out', out), lse: madeSource('lse', lse) };
            const gradients =
              backward.model &&
              (await emulateGradients(open, backward.model, { out, lse }, request));
            return { judged: { outputs: { out, lse }, sources }, gradients };
          },
        };
      },
    }),
  };
}
