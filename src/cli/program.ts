import { Command, type CommanderError, type ParseOptions } from 'commander';
import { auditCommand } from './audit/options.js';
import { benchCommand } from './bench/options.js';
import { boundCommand } from './bound/options.js';
import { certifyCommand } from './certify/options.js';
import { checkCommand } from './check/options.js';
import { completionCommand, shells } from './completion/options.js';
import { conformCommand } from './conform/options.js';
import { doctorCommand } from './doctor/options.js';
import { emulateCommand } from './emulate/options.js';
import { invarianceCommand } from './invariance/options.js';
import { mergeCommand } from './merge/options.js';
import { addCommand, oneLine, type CommandContext } from './options/command-rows.js';
import { profileCommand } from './profile/options.js';
import { runCommand } from './run/options.js';
import { helpWords } from './options/help-topics.js';
import { serveCommand } from './serve/options.js';
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

/** Registers the commands that serve the tool itself, and the parts of its work. */
function addToolCommands(program: Command, context: CommandContext): void {
  addCommand(program, mergeCommand, async (parts, options) => {
    const { runMerge } = await import('./merge/run.js');
    return runMerge(parts, options);
  });
  addCommand(program, benchCommand, async (options) => {
    const { runBench } = await import('./bench/run.js');
    return runBench(options);
  });
  addCommand(program, doctorCommand, async (options) => {
    const { runDoctor } = await import('./doctor/run.js');
    return runDoctor(options);
  });
  addCommand(program, serveCommand, async () => {
    const { runServe } = await import('./serve/run.js');
    return runServe((stop, lasting) => createProgram(stop, { ...context, lasting }));
  });
  addCommand(program, completionCommand, async (name) => {
    const { renderCompletion } = await import('./completion/run.js');
    process.stdout.write(
      renderCompletion(
        program,
        shells.find((shell) => shell === name)!,
      ),
    );
    return 0;
  });
}

/**
 * Registers every command. What a command does is loaded when it is run: to start one must not cost what
 * all of them need.
 */
export function addCommands(program: Command, context: CommandContext = {}): void {
  addCommand(program, auditCommand, async (problems, options) => {
    const { runAudit } = await import('./audit/run.js');
    return runAudit(problems, options, context);
  });
  addCommand(program, boundCommand, async (problem, options) => {
    const { runBound } = await import('./bound/run.js');
    return runBound(problem, options, context);
  });
  addCommand(program, checkCommand, async (options) => {
    const { runCheck } = await import('./check/run.js');
    return runCheck(options, context);
  });
  addCommand(program, invarianceCommand, async (problem, options) => {
    const { runInvariance } = await import('./invariance/run.js');
    return runInvariance(problem, options, context);
  });
  addCommand(program, emulateCommand, async (model, problem, options) => {
    const { runEmulate } = await import('./emulate/run.js');
    return runEmulate(model, problem, options, context);
  });
  addCommand(program, conformCommand, async (instructions, options) => {
    const { runConform } = await import('./conform/run.js');
    return runConform(instructions, options);
  });
  addCommand(program, profileCommand, async (technique, options) => {
    const { runProfile } = await import('./profile/run.js');
    return runProfile(technique, options);
  });
  addCommand(program, runCommand, async (launch, options) => {
    const { runRun } = await import('./run/run.js');
    return runRun(launch, options);
  });
  addCommand(program, certifyCommand, async (launch, options) => {
    const { runCertify } = await import('./certify/run.js');
    return runCertify(launch, options);
  });
  addToolCommands(program, context);
}

/** Commands whose help has topics. */
const withTopics = [auditCommand, boundCommand, checkCommand, emulateCommand, invarianceCommand];

/** The root, which loads what tells of a help that there is not where help is asked for. */
class Program extends Command {
  /** Whether it has been loaded: one program may parse several times. */
  #isTold = false;

  override async parseAsync(
    words: readonly string[] = process.argv,
    options?: ParseOptions,
  ): Promise<this> {
    if (!this.#isTold && words.some((word) => helpWords.includes(word))) {
      this.#isTold = true;
      const { refuseUnknownHelp } = await import('./options/unknown-help.js');
      refuseUnknownHelp(this, withTopics);
    }
    return super.parseAsync(words, options);
  }
}

/**
 * The whole command line, ready to parse.
 * @param onStop called in place of `process.exit` when the parser stops: for help and version with
 *   exit code 0, for a request that it cannot read with another
 * @param context the context of the commands; default: that of the library
 */
export function createProgram(
  onStop: (error: CommanderError) => void,
  context: CommandContext = {},
): Command {
  const program = new Program('flashproof')
    .description('Proof instead of allclose: verifies the numerics of attention kernels.')
    .version(toolVersion())
    .configureOutput(oneLine('flashproof'))
    .addHelpText('after', examples)
    .exitOverride(onStop);
  addCommands(program, context);
  return program;
}
