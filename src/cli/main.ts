#!/usr/bin/env node
import { Command } from 'commander';
import { RequestError } from '../request-error.js';
import { addAuditCommand } from './audit.js';
import { addBenchCommand } from './bench.js';
import { addBoundCommand } from './bound.js';
import { addCheckCommand } from './check.js';
import { addConformCommand } from './conform.js';
import { addEmulateCommand } from './emulate.js';
import { addProfileCommand } from './profile.js';
import { toolVersion } from './tool-version.js';

/** Exit statuses: the kernel passes, the kernel fails, the request is wrong. */
const wrongRequest = 2;

function createProgram(): Command {
  const program = new Command('flashproof')
    .description('Proof instead of allclose: verifies the numerics of attention kernels.')
    .version(toolVersion())
    .showHelpAfterError('(flashproof --help lists the commands)')
    .exitOverride((error) => {
      // Help and version are successes; every other stop of the parser is a wrong request.
      process.exit(error.exitCode === 0 ? 0 : wrongRequest);
    });
  addAuditCommand(program);
  addBoundCommand(program);
  addCheckCommand(program);
  addEmulateCommand(program);
  addConformCommand(program);
  addProfileCommand(program);
  addBenchCommand(program);
  return program;
}

/** A reader such as `head` that closed the pipe is no error of ours. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

try {
  await createProgram().parseAsync();
} catch (error) {
  if (!(error instanceof RequestError)) throw error;
  process.stderr.write(`flashproof: ${error.message}\n`);
  process.exitCode = wrongRequest;
}
