import { anyKernelArithmetic, type KernelArithmetic } from '../../src/audit/index.js';
import type { KernelRun } from '../suite/law.js';
import type { ResolvedPromises } from '../suite/promises.js';

/** What is admitted of any correct kernel on a run's problem, as coarse as it is promised to be. */
export function admittedArithmetic(
  { problem, outputs }: Pick<KernelRun, 'problem' | 'outputs'>,
  { premises }: Pick<ResolvedPromises, 'premises'>,
): KernelArithmetic {
  return anyKernelArithmetic(problem, outputs.out.format, premises?.(problem));
}
