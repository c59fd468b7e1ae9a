import { relative } from 'node:path';
import type { SuiteSettings } from './suite-settings.js';

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
