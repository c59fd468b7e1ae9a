import { defineConfig } from 'vitest/config';

/**
 * The tests that mutants are tried on (stryker.config.js): those that are quick and about what is mutated.
 * Campaigns over many problems would be run whole for every mutant that survives. MUTATION_TESTS names
 * others, separated by spaces.
 */
const quickTests = [
  'test/audit/{edge-cases,error-pool,spread-clusters}.test.ts',
  'test/audit/limits-*.test.ts',
  'test/audit/diagnosis*.test.ts',
  'test/audit/bounds/{alike,constants,inner-loops,score-tiles,techniques}.test.ts',
  'test/campaign/*.test.ts',
  'test/oracles/**/*.test.ts',
  'test/properties/{describe-kernel,vitest-matcher,laws/laws-*,problems/shrinking,suite/assert-kernel}.test.ts',
  'test/report/{audit-report,text}.test.ts',
];

// Faults and laws of which a default run draws a sample are all tried on a mutant.
process.env['TEST_EFFORT'] ??= '3';
process.env['LONG'] ??= '1';

export default defineConfig({
  test: {
    include: process.env['MUTATION_TESTS']?.split(' ') ?? quickTests,
    // As in vitest.config.ts, whose global setup is in stryker.config.js. Stryker runs threads, which take
    // no options of V8.
    isolate: false,
    setupFiles: ['test/setup/seed-properties.ts'],
    testTimeout: 60_000,
    hookTimeout: 180_000,
  },
});
