import { type AttentionKernel, laws } from '../laws/index.js';
import {
  checkKernel,
  type CheckOptions,
  describeLawFailure,
  type KernelPromises,
  planCheck,
} from '../suite/index.js';
import { describeLaws, type DescribeLimits } from './describe-laws.js';

/** The laws, problems and time of a suite. */
export interface DescribeOptions extends Omit<CheckOptions, 'progress'>, DescribeLimits {}

/**
 * Registers a `describe` with one test for each law that a kernel promises to obey, tried on random
 * problems that it promises to take; laws that say nothing of such a kernel are skipped, with the
 * reason. A failure shows the law, the violation, the simplest problem that shows it, and the command
 * that tries the same problems again. The seed is printed once. A law that was tried on no problem, since
 * the kernel declined them or the time was up, is skipped with the reason; where none was tried on any, the
 * suite fails.
 *
 * The variables FLASHPROOF_RUNS and FLASHPROOF_SEED go before the options, so that a night can be
 * filled and a failure be replayed without a change of the file.
 * @throws RequestError for an unknown promise, format, law or regime, and for variables that are no
 * whole numbers
 */
export function describeAttentionKernel(
  name: string,
  kernel: AttentionKernel,
  promises: KernelPromises = {},
  options: DescribeOptions = {},
): void {
  const plan = planCheck(promises, options);
  const site = new Error();
  Error.captureStackTrace(site, describeAttentionKernel);
  const described = {
    laws: plan.laws.map(({ id, skipped }) => ({ id, skipped, statement: laws[id].statement })),
    tryLaw: async (id: (typeof plan.laws)[number]['id'], limits: CheckOptions) => {
      const result = await checkKernel(kernel, promises, { ...options, ...limits, laws: [id] });
      const [law] = result.laws;
      return { ...result, law: law!, violation: describeLawFailure(law!) };
    },
  };
  describeLaws(name, described, options, site);
}
