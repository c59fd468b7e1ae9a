import { Command, type CommanderError } from 'commander';
import { addAuditCommand } from './audit.js';
import { addBenchCommand } from './bench.js';
import { addBoundCommand } from './bound.js';
import { addCheckCommand } from './check.js';
import { addCompletionCommand } from './completion.js';
import { addConformCommand } from './conform.js';
import { addEmulateCommand } from './emulate.js';
import { addMergeCommand } from './merge.js';
import { addProfileCommand } from './profile.js';
import { toolVersion } from './tool-version.js';

const examples = `
Examples:
  flashproof audit dump.safetensors
  flashproof check --kernel fa4 --variant causal-one-more --runs 5
  flashproof emulate fa4 problem.safetensors --save out.safetensors
  flashproof bound problem.safetensors --kernel fa4

flashproof <command> --help has more of each. Colour follows NO_COLOR,
FORCE_COLOR and TERM.
Exit status: 0 the kernel passes, 1 it fails, 2 the request is wrong.`;

/**
 * The whole command line, ready to parse.
 * @param onStop called in place of `process.exit` when the parser stops: for help and version with
 *   exit code 0, for a request that it cannot read with another
 */
export function createProgram(onStop: (error: CommanderError) => void): Command {
  const program = new Command('flashproof')
    .description('Proof instead of allclose: verifies the numerics of attention kernels.')
    .version(toolVersion())
    .showHelpAfterError('(flashproof --help lists the commands)')
    .addHelpText('after', examples)
    .exitOverride(onStop);
  addAuditCommand(program);
  addBoundCommand(program);
  addCheckCommand(program);
  addEmulateCommand(program);
  addConformCommand(program);
  addProfileCommand(program);
  addMergeCommand(program);
  addBenchCommand(program);
  addCompletionCommand(program);
  return program;
}
