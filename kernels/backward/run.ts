import type { Problem, Tensor } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import type { BackwardInputs, BackwardModel, PreparedBackward } from './model.js';
import { assembleBackwardPieces, type BackwardGradients } from './pieces.js';
import type { KernelModel, KernelSettings } from '../kernel-model.js';
import { findKernelModel, runKernelModel, type KernelResults } from '../models.js';

/** Results of a model's forward and backward passes. */
export interface BackwardResults extends BackwardGradients {
  readonly forward: Pick<KernelResults, 'out' | 'lse'>;
  readonly prepared: PreparedBackward;
}

/** A model's backward pass. @throws RequestError for a model of the forward pass alone */
export function backwardOf({ name, backward }: KernelModel): BackwardModel {
  if (backward === null)
    throw new RequestError(`${name} has no backward pass; choose a model that has one`);
  return backward;
}

/** The settings among `chosen` that belong to the forward pass. */
export function forwardSettings(
  { settings }: BackwardModel,
  chosen: KernelSettings,
): KernelSettings {
  const own = new Set(settings.map(({ key }) => key));
  return new Map([...chosen].filter(([key]) => !own.has(key)));
}

/**
 * Runs a model's backward pass on a problem, on this thread.
 * @param model the model, or its name
 * @param inputs dO, and the forward pass's stored outputs; without these the model's own forward is run
 * @param settings those of the forward pass and those of the backward
 * @throws RequestError for an unknown model or setting, for a model of the forward pass alone, and for a problem or tensors
 *   that the model does not take
 */
export function runBackward(
  model: string | KernelModel,
  problem: Problem,
  inputs: { readonly dout: Tensor; readonly forward?: BackwardInputs['forward'] },
  settings: KernelSettings = new Map(),
): BackwardResults {
  const found = findKernelModel(model);
  const backward = backwardOf(found);
  const { dout, forward: given = null } = inputs;
  const forward = given ?? runKernelModel(found, problem, forwardSettings(backward, settings));
  const { out, lse } = forward;
  const prepared = backward.prepare(problem, { dout, forward: { out, lse } }, settings);
  const assembly = assembleBackwardPieces(problem, prepared);
  for (let piece = 0; piece < prepared.pieces; piece++) assembly.add(prepared.run(piece));
  return { ...assembly.results(), forward: { out, lse }, prepared };
}
