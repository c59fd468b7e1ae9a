import { relative } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { RequestError } from '../../src/request-error.js';
import { describeNothingTried, type CheckLimits, type LawResult } from '../suite/index.js';

/** The number of problems, and their seed. */
export interface SuiteSettings {
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

/** The problems and the time of a suite. */
export interface DescribeLimits {
  /** Problems that each law is tried on; default 25. The variable FLASHPROOF_RUNS takes precedence. */
  readonly runs?: number | undefined;
  /** Seed of the problems, the same for the same seed; default random. FLASHPROOF_SEED takes precedence. */
  readonly seed?: number | undefined;
  /** Seconds after which a law is tried on no further problem; default 30. */
  readonly seconds?: number | undefined;
  /** The most seconds to simplify a failing problem; default 10. */
  readonly shrinkSeconds?: number | undefined;
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

/** What became of a law that was tried. */
type Outcome = Pick<LawResult<string, object>, 'id' | 'status' | 'runs' | 'tried' | 'skipped'>;

/** The result of one law, and its violation in some lines, empty for none. */
export interface TriedLaw {
  readonly law: Outcome;
  readonly violation: string;
  readonly outOfTime: boolean;
  readonly seconds: number;
}

/** A kernel under test, of whatever contract. */
export interface DescribedKernel<Id extends string> {
  /** The laws, and the reasons for leaving some out. */
  readonly laws: readonly {
    readonly id: Id;
    readonly statement: string;
    readonly skipped: string | null;
  }[];
  readonly tryLaw: (
    id: Id,
    limits: Required<Pick<CheckLimits, 'runs' | 'seed' | 'seconds' | 'shrinkSeconds'>>,
  ) => Promise<TriedLaw>;
}

/** A kernel under test, its limits, and the place of its description. */
interface Subject<Id extends string> {
  readonly kernel: DescribedKernel<Id>;
  readonly limits: { readonly seconds: number; readonly shrinkSeconds: number };
  readonly settings: SuiteSettings;
  /** The result of each law, for the final check. */
  readonly outcomes: Map<Id, Outcome>;
  readonly site: Error;
}

/** Tries one law; throws an error with the violation and the command that shows it again. */
async function tryLaw<Id extends string>(
  id: Id,
  { kernel, limits, settings, outcomes, site }: Subject<Id>,
  { task, skip }: TestContext,
): Promise<void> {
  const { runs, seed } = settings;
  const result = await kernel.tryLaw(id, { ...limits, runs, seed });
  const { law, violation } = result;
  outcomes.set(id, law);
  if (violation !== '') {
    const command = replayCommand(task, `${id}:`, settings, process.cwd());
    throw errorAt(site, `${violation}\n\nSeed ${seed}; to see it again:\n${command}`);
  }
  const { tried, skipped } = law;
  if (skipped !== null) skip(`never tried: ${skipped}`);
  if (result.outOfTime)
    console.warn(`${id}: ${tried} of ${runs} problems in ${result.seconds.toFixed(0)} s`);
}

/** @throws RequestError, in one line, where tests ran and no law was tried on anything */
function requireSomethingTried(outcomes: ReadonlyMap<string, Outcome>): void {
  const all = [...outcomes.values()];
  if (all.length > 0 && all.every(({ tried }) => tried === 0))
    throw new RequestError(describeNothingTried({ laws: all }));
}

/**
 * Registers a `describe` with one test for each law that a kernel is to obey; laws that say nothing of it are skipped, with the reason.
 * @param site an error whose stack begins where the kernel is described
 * @throws RequestError for variables of the environment that are no whole numbers
 */
export function describeLaws<Id extends string>(
  name: string,
  kernel: DescribedKernel<Id>,
  options: DescribeLimits,
  site: Error,
): void {
  const { seconds = 30, shrinkSeconds = 10 } = options;
  const settings = suiteSettings(options, process.env);
  const timeout = (seconds + shrinkSeconds + graceSeconds) * 1000;
  const outcomes = new Map<Id, Outcome>();
  const subject = { kernel, limits: { seconds, shrinkSeconds }, settings, outcomes, site };
  const { laws } = kernel;
  describe(name, () => {
    beforeAll(() => console.info(`${name}: FLASHPROOF_SEED=${settings.seed}`));
    // A hook, since tests may run in any order.
    afterAll(() => requireSomethingTried(outcomes));
    if (laws.every(({ skipped }) => skipped !== null))
      it('something is tried', () => {
        const untried = laws.map((law) => ({ ...law, status: 'skipped' as const, runs: 0 }));
        throw new RequestError(describeNothingTried({ laws: untried }));
      });
    for (const { id, statement, skipped } of laws) {
      const title = `${id}: ${statement}`;
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
