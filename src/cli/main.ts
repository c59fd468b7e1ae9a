#!/usr/bin/env node
import { RequestError } from '../request-error.js';
import { createProgram } from './program.js';

/** Exit statuses: the kernel passes, the kernel fails, the request is wrong. */
const wrongRequest = 2;

/** The message to the user for an error; with its stack if it is a bug in flashproof. */
async function complaint(error: unknown): Promise<string> {
  if (!(error instanceof RequestError)) {
    const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return `flashproof: internal error, which is a bug in flashproof: ${what}\n`;
  }
  const { printable } = await import('../io/index.js');
  return `flashproof: ${printable(error.message)}\n`;
}

/**
 * A reader such as `head` that closed the pipe is no error, but the results still decide the exit
 * status: the work goes on without its text.
 */
function toleratePipe(stream: NodeJS.WriteStream, name: string): void {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return;
    if (stream === process.stdout)
      process.stderr.write(`flashproof: ${name} cannot be written (${error.code}); redirect it\n`);
    process.exit(wrongRequest);
  });
}

toleratePipe(process.stdout, 'standard output');
toleratePipe(process.stderr, 'standard error');

const program = createProgram((error) => {
  // Help and version are successes; every other stop of the parser is a wrong request.
  process.exit(error.exitCode === 0 ? 0 : wrongRequest);
});
try {
  // No command: a newcomer, or a script that lost it.
  if (process.argv.length > 2) await program.parseAsync();
  else process.exitCode = await (await import('./start/run.js')).runStart();
} catch (error) {
  // Never 1, which says that the kernel fails: nothing was found out about it.
  process.exitCode = wrongRequest;
  process.stderr.write(await complaint(error));
}
