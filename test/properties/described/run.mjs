/**
 * Stands for `vitest` on the command line, with the suites beside it as the only test files, and results
 * as JSON on stdout and what tests print on stderr: `node run.mjs run <file> [-t <pattern>]`. The library
 * is the compiled sources that these tests run, which load in a quarter of the time that the sources would.
 */
import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startVitest } from 'vitest/node';

const kernels = relative(process.cwd(), fileURLToPath(new URL('kernels.ts', import.meta.url)));
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { testNamePattern: { type: 'string', short: 't' } },
});
const compiled = fileURLToPath(new URL('../../../.vitest/', import.meta.url));
const options = {
  ...values,
  config: false,
  watch: false,
  include: [kernels.split(sep).join('/')],
  reporters: [
    'json',
    {
      onUserConsoleLog: ({ content }) => void process.stderr.write(content),
      // The JSON has no place for what hooks throw.
      onTestSuiteResult: (suite) => {
        for (const { message } of suite.errors())
          process.stderr.write(`${suite.fullName} fails: ${message}\n`);
      },
    },
  ],
  server: { deps: { external: [/\/\.vitest\//] } },
};
const vite = {
  resolve: {
    alias: [{ find: /^(\.\.\/)+(oracles|properties|src)\//, replacement: `${compiled}$2/` }],
  },
};
const vitest = await startVitest('test', positionals.slice(1), options, vite);
await vitest.close();
