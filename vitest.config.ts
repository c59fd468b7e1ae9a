import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // The library holds no state, so that files may share its modules, loaded and compiled once.
    isolate: false,
    // Problems are made and dropped by the thousand: room for them spares an eighth of the time.
    execArgv: ['--max-semi-space-size=64'],
    globalSetup: ['test/setup/build-once.ts'],
    // The default leaves a core idle, half of a machine with two.
    maxWorkers: '100%',
    testTimeout: 60_000,
    // A hook may build dist (test/setup/built-dist.ts).
    hookTimeout: 180_000,
    // .ci/run counts passes and failures from the JSON.
    reporters: process.env.CI === 'true' ? ['default', 'json'] : ['default'],
    outputFile: { json: '.vitest/results.json' },
  },
});
