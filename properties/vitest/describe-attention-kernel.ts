import { afterAll, beforeAll, describe, it } from 'vitest';
import { RequestError } from '../../src/request-error.js';
import { laws, type AttentionKernel, type LawId } from '../laws/index.js';
import {
  checkKernel,
  describeLawFailure,
  describeNothingTried,
  planCheck,
  type CheckOptions,
  type KernelPromises,
  type LawResult,
} from '../suite/index.js';
import { replayCommand, suiteSettings, type RunningTest, type SuiteSettings } from './replay.js';

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

/** What became of each law, for the end. */
type Outcomes = Map<LawId, LawResult>;

/** A kernel under test, how it is tried, and where it was described. */
interface Subject {
  readonly kernel: AttentionKernel;
  readonly promises: KernelPromises;
  readonly limits: CheckOptions;
  readonly settings: SuiteSettings;
  readonly outcomes: Outcomes;
  readonly site: Error;
}

/** Tries one law; throws what is wrong, with the command that shows it again. */
async function tryLaw(
  id: LawId,
  { kernel, promises, limits, settings, outcomes, site }: Subject,
  { task, skip }: TestContext,
): Promise<void> {
  const { runs, seed } = settings;
  const result = await checkKernel(kernel, promises, { ...limits, laws: [id], runs, seed });
  const [law] = result.laws;
  outcomes.set(id, law!);
  if (law!.failure !== null) {
    const command = replayCommand(task, `${id}:`, settings, process.cwd());
    const failure = describeLawFailure(law!);
    throw errorAt(site, `${failure}\n\nSeed ${seed}; to see it again:\n${command}`);
  }
  const { tried, skipped } = law!;
  if (skipped !== null) skip(`never tried: ${skipped}`);
  if (result.outOfTime)
    console.warn(`${id}: ${tried} of ${runs} problems in ${result.seconds.toFixed(0)} s`);
}

/** @throws RequestError, in one line, where tests ran and no law was tried on anything */
function requireSomethingTried(outcomes: Outcomes): void {
  const all = [...outcomes.values()];
  if (all.length > 0 && all.every(({ tried }) => tried === 0))
    throw new RequestError(describeNothingTried({ laws: all }));
}

/**
 * Registers a `describe` with one test for each law that a kernel promises to obey, tried on random
 * problems that it promises to take; laws that say nothing of such a kernel are skipped, with the
 * reason. A failure shows the law, what is wrong, the simplest problem that shows it, and the command
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
  const { seconds = 30, shrinkSeconds = 10 } = options;
  const settings = suiteSettings(options, process.env);
  const plan = planCheck(promises, options);
  const timeout = (seconds + shrinkSeconds + graceSeconds) * 1000;
  const limits = { ...options, seconds, shrinkSeconds };
  const site = new Error();
  Error.captureStackTrace(site, describeAttentionKernel);
  const outcomes: Outcomes = new Map();
  const subject: Subject = { kernel, promises, limits, settings, outcomes, site };
  describe(name, () => {
    beforeAll(() => console.info(`${name}: FLASHPROOF_SEED=${settings.seed}`));
    // A hook, since tests may run in any order.
    afterAll(() => requireSomethingTried(outcomes));
    if (plan.laws.every(({ skipped }) => skipped !== null))
      it('something is tried', () => {
        const untried = plan.laws.map((law) => ({ ...law, status: 'skipped' as const, runs: 0 }));
        throw new RequestError(describeNothingTried({ laws: untried }));
      });
    for (const { id, skipped } of plan.laws) {
      const title = `${id}: ${laws[id].statement}`;
      if (skipped !== null) {
        it.skip(`${title} (skipped: ${skipped})`, () => {});
        continue;
      }
      it(title, { timeout }, async (context) => {
        await tryLaw(id, subject, context);
      });
    }
  });
}
