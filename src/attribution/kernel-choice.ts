import {
  attributeFa4,
  findKernelModel,
  type AttributedKernel,
  type Fa4Configuration,
} from '../../kernels/index.js';
import type { Problem } from '../problem/index.js';
import { RequestError } from '../request-error.js';

/** Which kernel's techniques are meant. */
export interface KernelChoice {
  /** A kernel model's name; default fa4. */
  readonly kernel?: string;
  /** Values as text, by key; see the model's settings. The others are what the kernel would choose. */
  readonly settings?: ReadonlyMap<string, string>;
  /** For fa4, in place of settings: what to choose otherwise than it would for this problem. */
  readonly configuration?: Partial<Fa4Configuration>;
}

/**
 * The chosen kernel on a problem, with techniques that can be emulated or exact.
 * @throws RequestError for an unknown kernel, for a problem that it does not take, for settings that it
 * does not have or that cannot be attributed
 */
export function attributedKernel(
  problem: Problem,
  { kernel = 'fa4', settings, configuration }: KernelChoice = {},
): AttributedKernel {
  if (configuration !== undefined) {
    if (kernel !== 'fa4' || settings !== undefined)
      throw new RequestError(
        'a configuration was given along with another kernel or with settings; give settings only',
      );
    return attributeFa4(problem, configuration);
  }
  return findKernelModel(kernel).attribute(problem, settings ?? new Map());
}
