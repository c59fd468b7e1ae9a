import {
  checkRecurrentKernel,
  describeRecurrentFailure,
  planRecurrentCheck,
  recurrentLaw,
  type RecurrentCheckOptions,
  type RecurrentKernel,
  type RecurrentLawId,
  type RecurrentPromises,
} from '../recurrent/index.js';
import { describeLaws, type DescribeLimits } from './describe-laws.js';

/** The laws, problems and time of a suite of a kernel of linear attention. */
export interface DescribeRecurrentOptions
  extends Omit<RecurrentCheckOptions, 'progress'>, DescribeLimits {}

/**
 * As {@link describeAttentionKernel}, of linear attention, delta rules and their gated kin: registers a `describe` with one test for
 * each law that a kernel promises to obey, tried on random problems that it promises to take. A failure shows the law, the violation,
 * the simplest problem that shows it, and the command that tries the same problems again.
 *
 * The variables FLASHPROOF_RUNS and FLASHPROOF_SEED go before the options.
 * @throws RequestError for an unknown promise, family, format, law or regime, and for variables that are no whole numbers
 */
export function describeRecurrentKernel(
  name: string,
  kernel: RecurrentKernel,
  promises: RecurrentPromises = {},
  options: DescribeRecurrentOptions = {},
): void {
  const plan = planRecurrentCheck(promises, options);
  const site = new Error();
  Error.captureStackTrace(site, describeRecurrentKernel);
  const described = {
    laws: plan.laws.map(({ id, skipped }) => {
      return { id, skipped, statement: recurrentLaw(id).statement };
    }),
    tryLaw: async (id: RecurrentLawId, limits: RecurrentCheckOptions) => {
      const asked = { ...options, ...limits, laws: [id] };
      const result = await checkRecurrentKernel(kernel, promises, asked);
      const [law] = result.laws;
      return { ...result, law: law!, violation: describeRecurrentFailure(law!) };
    },
  };
  describeLaws(name, described, options, site);
}
