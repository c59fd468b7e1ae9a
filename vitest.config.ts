import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
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
