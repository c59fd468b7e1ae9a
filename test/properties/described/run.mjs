/**
 * Stands for `vitest` on the command line, with the suites beside it as the only test files, and results
 * as JSON on stdout and what tests print on stderr: `node run.mjs run <file> [-t <pattern>]`.
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
const vitest = await startVitest('test', positionals.slice(1), {
  ...values,
  config: false,
  watch: false,
  include: [kernels.split(sep).join('/')],
  reporters: ['json', { onUserConsoleLog: ({ content }) => void process.stderr.write(content) }],
});
await vitest.close();
