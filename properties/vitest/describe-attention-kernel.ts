import { beforeAll, describe, it } from 'vitest';
import { laws, type LawId } from '../laws/index.js';
import type { AttentionKernel } from '../suite/attention-kernel.js';
import { checkKernel, type CheckOptions } from '../suite/check-kernel.js';
import { describeLawFailure } from '../suite/describe-failures.js';
import { planCheck } from '../suite/plan-check.js';
import type { KernelPromises } from '../suite/promises.js';
import { replayCommand, type RunningTest } from './replay-command.js';
import { suiteSettings, type SuiteSettings } from './suite-settings.js';

/** What to try, and how long. */
export interface DescribeOptions extends Omit<CheckOptions, 'progress'> {
  /** Problems that each law is tried on; default 25. The variable FLASHPROOF_RUNS goes before it. */
  readonly runs?: number | undefined;
  /** The same seed tries the same problems; default random. FLASHPROOF_SEED goes before it. */
  readonly seed?: number | undefined;
  /** Seconds after which a law is tried on no further problem; default 30. */
  readonly seconds?: number | undefined;
}

/** Seconds for the last problem, its diagnosis and a slow machine, beyond what was granted. */
const graceSeconds = 60;

/** What a test needs to know of vitest. */
interface TestContext {
  readonly task: RunningTest;
  readonly skip: (note?: string) => never;
}

/** An error that points to where the kernel is described, not into this file. */
function errorAt(site: Error, message: string): Error {
  const error = new Error(message);
  const callers = site.stack?.split('\n').slice(1) ?? [];
  error.stack = [`Error: ${message}`, ...callers].join('\n');
  return error;
}

/** A kernel under test, and where it was described. */
interface Subject {
  readonly kernel: AttentionKernel;
  readonly promises: KernelPromises;
  readonly site: Error;
}

/** Tries one law; throws what is wrong, with the command that shows it again. */
async function tryLaw(
  id: LawId,
  { kernel, promises, site }: Subject,
  options: CheckOptions,
  settings: SuiteSettings,
  { task, skip }: TestContext,
): Promise<void> {
  const { runs, seed } = settings;
  const result = await checkKernel(kernel, promises, { ...options, laws: [id], runs, seed });
  const [law] = result.laws;
  if (law!.failure !== null) {
    const command = replayCommand(task, `${id}:`, settings, process.cwd());
    const failure = describeLawFailure(law!);
    throw errorAt(site, `${failure}\n\nSeed ${seed}; to see it again:\n${command}`);
  }
  const tried = law!.runs - law!.unsupported;
  if (tried === 0) skip(`the kernel took none of ${law!.runs} problems`);
  if (result.outOfTime)
    console.warn(`${id}: ${tried} of ${runs} problems in ${result.seconds.toFixed(0)} s`);
}

/**
 * Registers a `describe` with one test for each law that a kernel promises to obey, tried on random
 * problems that it promises to take; laws that say nothing of such a kernel are skipped, with the
 * reason. A failure shows the law, what is wrong, the simplest problem that shows it, and the command
 * that tries the same problems again. The seed is printed once.
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
  const { seconds = 30, shrinkSeconds = 10 } = options;
  const settings = suiteSettings(options, process.env);
  const plan = planCheck(promises, options);
  const timeout = (seconds + shrinkSeconds + graceSeconds) * 1000;
  const limits = { ...options, seconds, shrinkSeconds };
  const site = new Error();
  Error.captureStackTrace(site, describeAttentionKernel);
  const subject = { kernel, promises, site };
  describe(name, () => {
    beforeAll(() => console.info(`${name}: FLASHPROOF_SEED=${settings.seed}`));
    for (const { id, skipped } of plan.laws) {
      const title = `${id}: ${laws[id].statement}`;
      if (skipped !== null) {
        it.skip(`${title} (skipped: ${skipped})`, () => {});
        continue;
      }
      it(title, { timeout }, async (context) => {
        await tryLaw(id, subject, limits, settings, context);
      });
    }
  });
}
