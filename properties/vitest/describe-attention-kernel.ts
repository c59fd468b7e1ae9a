import { relative } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { RequestError } from '../../src/request-error.js';
import { type AttentionKernel, type LawId, laws } from '../laws/index.js';
import {
  checkKernel,
  type CheckOptions,
  describeLawFailure,
  describeNothingTried,
  type KernelPromises,
  type LawResult,
  planCheck,
} from '../suite/index.js';

/** The number of problems, and their seed. */
interface SuiteSettings {
  /** Problems that each law is tried on. */
  readonly runs: number;
  readonly seed: number;
  /** Settings that came from the environment and are needed to try the same problems again. */
  readonly fromEnvironment: readonly string[];
}

/** Default number of problems for each law: all laws take some seconds. */
const usualRuns = 25;

/** A setting of the environment that is a whole number; undefined when it is not set. */
function wholeNumber(
  name: string,
  environment: Readonly<Record<string, string | undefined>>,
  least: number,
): number | undefined {
  const text = environment[name]?.trim() ?? '';
  if (text === '') return undefined;
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < least)
    throw new RequestError(
      `${name} is ${JSON.stringify(text)}; set it to a ${least > 0 ? 'positive ' : ''}whole number, or not at all`,
    );
  return value;
}

/**
 * Runs and seed: of the variables FLASHPROOF_RUNS and FLASHPROOF_SEED where these are set, so that a
 * failure can be replayed and a night be filled without a change of the test; else as given; else 25
 * runs and a seed drawn at random.
 * @throws RequestError for a variable that is no whole number, or not a positive one for the runs
 */
export function suiteSettings(
  { runs, seed }: { readonly runs?: number | undefined; readonly seed?: number | undefined },
  environment: Readonly<Record<string, string | undefined>>,
): SuiteSettings {
  const runsSet = wholeNumber('FLASHPROOF_RUNS', environment, 1);
  const seedSet = wholeNumber('FLASHPROOF_SEED', environment, Number.MIN_SAFE_INTEGER);
  return {
    runs: runsSet ?? runs ?? usualRuns,
    seed: seedSet ?? seed ?? Math.floor(Math.random() * 2 ** 31),
    fromEnvironment: runsSet === undefined ? [] : [`FLASHPROOF_RUNS=${runsSet}`],
  };
}

/** Facts that vitest has about a test, for a command line to name it. */
interface RunningTest {
  readonly name: string;
  readonly suite?: { readonly name: string; readonly suite?: RunningTest['suite'] } | undefined;
  readonly file: { readonly filepath: string };
}

/** A word of a POSIX shell's command line. */
function quote(word: string): string {
  if (/^[\w./:=@%+,-]+$/.test(word)) return word;
  return /^[\w./:=@%+, ^-]+$/.test(word) ? `"${word}"` : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The names of the describes around a test, outermost first. */
function suiteNames(suite: RunningTest['suite']): string[] {
  return suite === undefined ? [] : [...suiteNames(suite.suite), suite.name];
}

/**
 * The command that runs one test of a suite on the same problems again.
 * @param prefix the part of the test's name that tells it from its neighbours
 * @param folder where the command is to be run
 */
export function replayCommand(
  test: RunningTest,
  prefix: string,
  { seed, fromEnvironment }: SuiteSettings,
  folder: string,
): string {
  const pattern = [...suiteNames(test.suite), prefix]
    .join(' ')
    .replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  const file = relative(folder, test.file.filepath).replaceAll('\\', '/');
  const settings = [`FLASHPROOF_SEED=${seed}`, ...fromEnvironment].join(' ');
  return `${settings} npx vitest run ${quote(file)} -t ${quote(`^${pattern}`)}`;
}

/** The laws, problems and time of a suite. */
export interface DescribeOptions extends Omit<CheckOptions, 'progress'> {
  /** Problems that each law is tried on; default 25. The variable FLASHPROOF_RUNS takes precedence. */
  readonly runs?: number | undefined;
  /** Seed of the problems, the same for the same seed; default random. FLASHPROOF_SEED takes precedence. */
  readonly seed?: number | undefined;
  /** Seconds after which a law is tried on no further problem; default 30. */
  readonly seconds?: number | undefined;
}

/** Seconds for the last problem, its diagnosis and a slow machine, beyond what was granted. */
const graceSeconds = 60;

/** The part of vitest's context that a test needs. */
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

/** The result of each law, for the final check. */
type Outcomes = Map<LawId, LawResult>;

/** A kernel under test, its options, and the place of its description. */
interface Subject {
  readonly kernel: AttentionKernel;
  readonly promises: KernelPromises;
  readonly limits: CheckOptions;
  readonly settings: SuiteSettings;
  readonly outcomes: Outcomes;
  readonly site: Error;
}

/** Tries one law; throws an error with the violation and the command that shows it again. */
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
