import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { compiledModules, nativeSources } from './test/setup/native-sources.js';

/**
 * Tests that start many processes or worker threads: documented commands, live kernels, kills, signals,
 * random command lines, checks on several threads, the package as it is installed; and one that counts what is on the
 * heap, which takes long beside what other tests leave there. They are a command of
 * their own, `npm run test:processes`, which sets PROCESSES.
 */
export const processTests = [
  'test/audit/gradients/gradient-threads.test.ts',
  'test/audit/parts/bound-threads.test.ts',
  'test/audit/parts/threads.test.ts',
  'test/cli/campaign-kill.test.ts',
  'test/cli/check-gradients.test.ts',
  'test/cli/check-live.test.ts',
  'test/cli/check-threads.test.ts',
  'test/cli/serve.test.ts',
  'test/docs/action.test.ts',
  'test/docs/documents.test.ts',
  'test/docs/github-action.test.ts',
  'test/hardening/command-lines.test.ts',
  'test/hardening/endings.test.ts',
  'test/hardening/kill.test.ts',
  'test/machine/ordering/tracker-size.test.ts',
  'test/package/package.test.ts',
  'test/profile/sweep.test.ts',
  'test/site/accessibility.test.ts',
  'test/site/audit-page.test.ts',
  'test/site/documentation.test.ts',
  'test/site/laboratory-page.test.ts',
  'test/site/timeline-page.test.ts',
];
const onlyProcesses = process.env.PROCESSES === '1';

/**
 * Files of which a default run makes some long tests only (test/setup/turns.ts). They are whole with
 * `npm run test:long`, which sets LONG.
 */
function longTests(): string[] {
  return readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join('test', name))
    .filter((path) => readFileSync(path, 'utf8').includes('turns(import.meta.url)'));
}
const onlyLong = process.env.LONG === '1';
// Who names files wants all of their tests.
if (process.argv.some((word) => word.startsWith('test/'))) process.env.LONG ??= '1';

/** What is run, and the file of its results. */
const suite = onlyProcesses
  ? { include: processTests, exclude: [], results: 'processes' }
  : {
      include: onlyLong ? longTests() : ['test/**/*.test.ts'],
      exclude: processTests,
      results: onlyLong ? 'long' : 'results',
    };

export default defineConfig({
  plugins: [nativeSources()],
  test: {
    server: { deps: { external: [compiledModules] } },
    include: suite.include,
    exclude: suite.exclude,
    // The library holds no state, so that files may share its modules, loaded and compiled once.
    isolate: false,
    // Problems are made and dropped by the thousand: room for them spares an eighth of the time.
    execArgv: ['--max-semi-space-size=64'],
    globalSetup: ['test/setup/build-once.ts'],
    setupFiles: ['test/setup/seed-properties.ts'],
    // The default leaves a core idle, half of a machine with two.
    maxWorkers: '100%',
    testTimeout: 60_000,
    // A hook may build dist (test/setup/built-dist.ts).
    hookTimeout: 180_000,
    // .ci/run counts passes and failures from the JSON.
    reporters: process.env.CI === 'true' ? ['default', 'json'] : ['default'],
    outputFile: { json: `.vitest/${suite.results}.json` },
  },
});
