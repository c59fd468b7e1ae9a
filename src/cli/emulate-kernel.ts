import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import type { KernelOutputs } from '../audit/index.js';
import { emulate } from '../emulate/index.js';
import { formats, patternsOf } from '../formats/index.js';
import type { Problem, Tensor } from '../problem/index.js';
import type { TensorSource } from '../report/json/index.js';
import { kernelSettings } from './options/kernel-settings.js';

/** The outputs of an emulated kernel, as an audit wants them. */
export interface EmulatedOutputs {
  readonly outputs: KernelOutputs;
  readonly output: TensorSource;
  readonly lse: TensorSource;
}

/** The command that makes the same outputs: what stands in a report for where they came from. */
export function emulationCommand(model: string, set: readonly string[] = []): string {
  return ['flashproof emulate', model, ...set.map((text) => `--set ${text}`)].join(' ');
}

function sourceOf(name: string, { format, data }: Tensor): TensorSource {
  const sha256 = createHash('sha256').update(patternsOf(data, formats[format])).digest('hex');
  return { path: '', tensor: name, sha256, format };
}

/**
 * Runs a kernel model on a problem.
 * @throws RequestError for an unknown model or setting and for a problem that the model does not take
 */
export async function emulateKernel(
  model: string,
  problem: Problem,
  options: { readonly set?: readonly string[]; readonly threads?: number },
): Promise<EmulatedOutputs> {
  const { out, lse } = await emulate(problem, model, {
    settings: kernelSettings(options.set),
    threads: options.threads ?? availableParallelism(),
  });
  return {
    outputs: { out, lse },
    output: sourceOf('out', out),
    lse: sourceOf('lse', lse),
  };
}
