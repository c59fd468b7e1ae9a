import {
  anyKernelArithmetic,
  resolvePremises,
  type KernelArithmetic,
  type Premises,
} from '../../src/audit/index.js';
import type { KernelRun } from '../suite/law.js';
import type { ResolvedPromises } from '../suite/promises.js';

/** What is admitted of any correct kernel on a run's problem, in numbers, with what it promises of itself. */
export function admittedPremises(
  { problem, outputs }: Pick<KernelRun, 'problem' | 'outputs'>,
  { premises }: Pick<ResolvedPromises, 'premises'>,
): Premises {
  return resolvePremises(problem, outputs.out.format, premises(problem));
}

/** What is admitted of any correct kernel on a run's problem, as coarse as it is promised to be. */
export function admittedArithmetic(
  run: Pick<KernelRun, 'problem' | 'outputs'>,
  promises: Pick<ResolvedPromises, 'premises'>,
): KernelArithmetic {
  const premises = admittedPremises(run, promises);
  return anyKernelArithmetic(run.problem, run.outputs.out.format, premises);
}
