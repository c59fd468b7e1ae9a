import { defineConfig } from 'vitest/config';

/** Tests with MPFR: its state in WebAssembly memory is not to pass from one file to the next. */
const isolated = ['test/oracles/**/*.test.ts'];

export default defineConfig({
  test: {
    projects: [
      { extends: true, test: { name: 'oracles', include: isolated } },
      {
        extends: true,
        test: {
          name: 'library',
          include: ['test/**/*.test.ts'],
          exclude: isolated,
          // The library holds no state, so that files may share its modules, loaded and compiled once.
          isolate: false,
        },
      },
    ],
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
