import { defineConfig } from 'vitest/config';
import { processTests } from './vitest.config.js';

/**
 * The tests that mutants are tried on (stryker.config.js): those of a default run that are about what is mutated, so that
 * a mutant that survives is one that a default run does not notice. MUTATION_TESTS names others, separated by spaces.
 */
const judgingTests = ['test/{audit,campaign,machine,oracles,properties}/**/*.test.ts'];

export default defineConfig({
  test: {
    include: process.env['MUTATION_TESTS']?.split(' ') ?? judgingTests,
    exclude: processTests,
    // As in vitest.config.ts, whose global setup is in stryker.config.js. Stryker runs threads, which take
    // no options of V8.
    isolate: false,
    setupFiles: ['test/setup/seed-properties.ts'],
    testTimeout: 60_000,
    hookTimeout: 180_000,
  },
});
