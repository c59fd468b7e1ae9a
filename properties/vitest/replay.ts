import { relative } from 'node:path';
import { RequestError } from '../../src/request-error.js';

/** How many problems, and which. */
export interface SuiteSettings {
  /** Problems that each law is tried on. */
  readonly runs: number;
  readonly seed: number;
  /** Settings that came from the environment and are needed to try the same problems again. */
  readonly fromEnvironment: readonly string[];
}

/** Problems that each law is tried on where nothing says otherwise: all laws in some seconds. */
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

/** What vitest knows of a test that a command line must name. */
export interface RunningTest {
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
