import { availableParallelism } from 'node:os';
import { backwardOf, checkFeatures, type KernelModel } from '../../../kernels/index.js';
import { gradientQuantities } from '../../audit/index.js';
import { emulateBackward } from '../../emulate/index.js';
import type { TensorFile } from '../../io/index.js';
import {
  modelNamed,
  type JudgedOutputs,
  outputGradientArgument,
  readOutputGradient,
} from '../../jobs/index.js';
import type { Problem } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { kernelSettings } from '../options/settings.js';
import type { ReadGradients } from './gradient-files.js';
import { emulatedSource } from './judged-outputs.js';
import type { OpenProblem } from './open-problem.js';
import type { AuditCommandOptions } from './options.js';

/** A kernel model whose gradients are judged; or the reason that those of a problem with dO are not. */
export type EmulatedBackward =
  { readonly model: KernelModel } | { readonly model: null; readonly reason: string };

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
 * The kernel model of --kernel whose gradients are to be judged too: where there is dO. What keeps it from that is no fault of the
 * request unless it names dO.
 * @returns null where there is no such model, or no dO
 * @throws RequestError where dO is named for a model that gives no gradients of the problem
 */
export function emulatedBackward(
  file: TensorFile,
  problem: Problem,
  { kernel, dout, rows }: AuditCommandOptions,
  models?: readonly KernelModel[],
): EmulatedBackward | null {
  const model = kernel === undefined ? '' : modelNamed(kernel, models);
  if (typeof model === 'string' || outputGradientArgument(file, dout) === undefined) return null;
  const isSample = rows !== undefined && rows !== 'all';
  const reason = isSample
    ? 'every row adds to the gradients of keys and values, and --rows judges a sample'
    : refusalOf(model, problem);
  if (reason === null) return { model };
  if (dout !== undefined) throw new RequestError(reason);
  return { model: null, reason };
}

/**
 * Runs a model's backward pass on the stored results of its forward pass.
 * @throws RequestError for a dO that cannot be read or is not of O's shape, and for settings that the model does not have
 */
export async function emulateGradients(
  { file, problem, reading }: OpenProblem,
  model: KernelModel,
  { outputs: { out, lse } }: JudgedOutputs,
  { dout: named, set, threads = availableParallelism() }: AuditCommandOptions,
): Promise<ReadGradients> {
  const dout = await readOutputGradient(file, { named, wants: '--kernel' }, reading);
  const made = await emulateBackward(
    problem,
    model,
    { dout: dout.tensor, forward: { out, lse: lse! } },
    { settings: kernelSettings(set), threads },
  );
  const sources = gradientQuantities.map(
    ({ name }) => [name, emulatedSource(name, made[name])] as const,
  );
  const { dq, dk, dv } = made;
  return {
    tensors: { dq, dk, dv, dout: dout.tensor },
    sources: { ...Object.fromEntries(sources), dout: dout.source },
  };
}
