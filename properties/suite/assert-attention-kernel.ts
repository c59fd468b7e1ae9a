import { RequestError } from '../../src/request-error.js';
import type { AttentionKernel } from './attention-kernel.js';
import { checkKernel, type CheckOptions, type CheckResult } from './check-kernel.js';
import { describeFailures, groupFailures } from './describe-failures.js';
import { describeNothingTried } from './describe-nothing-tried.js';
import type { KernelPromises } from './promises.js';

function plural(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** How many causes violations have, where several have one. */
function inFindings(result: CheckResult, violated: number): string {
  const groups = groupFailures(result).length;
  return groups === violated ? '' : `, apparently by ${plural(groups, 'cause')}`;
}

/**
 * For any test runner: tries every law on random problems (see `checkKernel`), and throws an Error that
 * describes every violation, with the simplest problem that shows it, unless all laws hold.
 * @returns what became of each law, when all hold
 * @throws RequestError for what `checkKernel` throws it, and when no law was tried on any problem, so
 * that nothing was checked
 */
export async function assertAttentionKernel(
  kernel: AttentionKernel,
  promises: KernelPromises = {},
  options: CheckOptions = {},
): Promise<CheckResult> {
  const result = await checkKernel(kernel, promises, options);
  const { seed, runs, seconds } = result;
  const tried = result.laws.filter(({ status }) => status === 'holds' || status === 'violated');
  const violated = tried.filter(({ failure }) => failure !== null);
  if (violated.length > 0)
    throw new Error(
      [
        `the kernel violates ${violated.length} of ${plural(tried.length, 'law')}${inFindings(result, violated.length)} (seed ${seed}, ${plural(runs, 'run')} in ${seconds.toFixed(1)} s)`,
        describeFailures(result),
        `The option { seed: ${seed} } tries the same problems again.`,
      ].join('\n\n'),
    );
  if (!result.pass) throw new RequestError(describeNothingTried(result));
  return result;
}
