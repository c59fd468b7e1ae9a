import { defineConfig } from 'vitest/config';

/**
 * Tests that start many processes: documented commands, live kernels, kills, signals, random command
 * lines, the package as it is installed. They are a command of their own, `npm run test:processes`,
 * which sets PROCESSES.
 */
const processTests = [
  'test/cli/campaign-kill.test.ts',
  'test/cli/check-live.test.ts',
  'test/docs/documents.test.ts',
  'test/docs/github-action.test.ts',
  'test/hardening/command-lines.test.ts',
  'test/hardening/endings.test.ts',
  'test/hardening/kill.test.ts',
  'test/package/package.test.ts',
];
const onlyProcesses = process.env.PROCESSES === '1';

export default defineConfig({
  test: {
    include: onlyProcesses ? processTests : ['test/**/*.test.ts'],
    exclude: onlyProcesses ? [] : processTests,
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
    outputFile: { json: onlyProcesses ? '.vitest/processes.json' : '.vitest/results.json' },
  },
});
