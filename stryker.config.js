import { buildWebAssembly } from './scripts/build-webassembly.mjs';

// The same draws for every mutant, and from run to run.
process.env['TEST_SEED'] ??= '20261121';
// Before the copy is made, whose files all have new dates, so that no worker compiles them again.
await buildWebAssembly();

/**
 * Mutation testing, `npm run mutation`; CONTRIBUTING.md says how to read it. Stryker copies the repository
 * into .stryker-tmp and runs vitest.mutation.config.ts there; a mutant is tried on the tests that reach it.
 *
 * @type {import('@stryker-mutator/api/core').PartialStrykerOptions}
 */
export default {
  testRunner: 'vitest',
  vitest: { configFile: 'vitest.mutation.config.ts', related: false },
  coverageAnalysis: 'perTest',
  mutate: [
    ...['src/audit/**/*.ts', 'oracles/**/*.ts', 'properties/**/*.ts'],
    ...['src/machine/ordering/**/*.ts', 'src/campaign/**/*.ts'],
    // AssemblyScript is compiled before, and would not be the mutant's.
    ...['!**/assembly/**', '!**/*.generated.ts', '!**/index.ts'],
  ],
  // Other words in a message are no other judgement.
  mutator: { excludedMutations: ['StringLiteral'] },
  // What runs once as a module is loaded: modules are loaded once for all mutants of a worker.
  ignoreStatic: true,
  // Types are not checked: vitest strips them, and Stryker cannot parse the decorators of AssemblyScript.
  disableTypeChecks: false,
  ignorePatterns: ['dist', 'docs', 'coverage', 'reports', '.vitest'],
  concurrency: Number(process.env['MUTATION_WORKERS'] ?? 1),
  reporters: ['clear-text', 'progress-append-only', 'json', 'html'],
  clearTextReporter: { allowColor: false, logTests: false },
  timeoutMS: 20_000,
  // All tests once, with every line counted: several times as long as a default run.
  dryRunTimeoutMinutes: 60,
};
