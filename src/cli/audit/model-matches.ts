import { availableParallelism } from 'node:os';
import { findModelAmong, kernelModels, type ForwardOutputs } from '../../../kernels/index.js';
import {
  compareModel,
  declaredModel,
  identifyGradients,
  type ArithmeticRequest,
} from '../../jobs/index.js';
import type { Problem } from '../../problem/index.js';
import type { ModelMatch } from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import { kernelSettings } from '../options/settings.js';
import type { AuditSettings } from './audit-settings.js';
import type { ReadGradients } from './gradient-files.js';

/**
 * Comparisons of gradients in files with kernel models, bit for bit: with that of --as, and by --identify with every
 * one that has a backward pass; none where neither is asked.
 * @param forward the inputs of the kernel's backward pass, as far as they are known
 * @throws RequestError for --identify where a sample is judged
 */
export async function matchModels(
  problem: Problem,
  { tensors: { dout, dq = null, dk = null, dv = null } }: ReadGradients,
  forward: { readonly [Name in keyof ForwardOutputs]: ForwardOutputs[Name] | null },
  { options, context: { models = kernelModels }, rows, keys }: AuditSettings,
  arithmetic: ArithmeticRequest,
): Promise<readonly ModelMatch[]> {
  const { kernel, identify, set, threads = availableParallelism() } = options;
  const name = kernel === undefined ? declaredModel(arithmetic) : undefined;
  const declared = name === undefined ? null : findModelAmong(models, name);
  if (kernel !== undefined || [dq, dk, dv].every((one) => one === null)) return [];
  const isSample = [rows.count, keys].some((count) => typeof count === 'number');
  if (isSample && identify === true)
    throw new RequestError(
      '--identify compares whole gradients, and a sample is judged; leave it out, or judge all with --rows all --keys all',
    );
  const { out, lse } = forward;
  const request = {
    problem,
    dout,
    forward: out === null || lse === null ? null : { out, lse },
    given: { dq, dk, dv },
    threads,
  };
  const ofDeclared =
    declared === null || declared.backward === null || isSample
      ? []
      : [await compareModel(request, { model: declared, settings: kernelSettings(set) })];
  const others = identify === true ? await identifyGradients(request, models) : [];
  return [...ofDeclared, ...others];
}
