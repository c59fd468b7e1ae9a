import type { Command } from 'commander';
import { collect } from './kernel-settings.js';
import { premiseDescription, premiseHelp } from './premise-help.js';
import { addProblemOptions, type ProblemOptions } from './problem-options.js';

/** The options of `flashproof bound` as commander hands them over. */
export interface BoundCommandOptions extends ProblemOptions {
  readonly kernel?: string;
  readonly as?: string;
  readonly premise?: readonly string[];
  readonly set?: readonly string[];
  readonly outputFormat?: string;
  readonly json?: string;
  readonly quiet?: boolean;
}

const examples = `
Examples:
  flashproof bound problem.safetensors
  flashproof bound problem.safetensors --kernel fa4 --set rescale.threshold=0
  flashproof bound problem.safetensors --kernel fa4 \\
    --set architecture=sm_90 --json bounds.json

Exit status: 0 done, 2 the request is wrong.`;

/** Registers `flashproof bound`. */
export function addBoundCommand(program: Command): void {
  const command = program
    .command('bound')
    .description('how far each technique of a kernel may move the output, without running anything')
    .argument('<problem>', 'tensors q, k, v: .safetensors, .npz or a folder of .npy')
    .option('--kernel <model>', 'a kernel model (flashproof emulate list; default: any kernel)')
    .option('--as <preset>', 'the premises of a preset')
    .option('--premise <name=value>', premiseDescription, collect)
    .option('--set <key=value>', 'change a setting of the kernel model (repeatable)', collect)
    .option(
      '--output-format <format>',
      "format of the output (default: the kernel's, or that of q)",
    );
  addProblemOptions(command)
    .option('--json <file>', 'write the bounds as JSON (- for standard output)')
    .option('-q, --quiet', 'print nothing')
    .addHelpText('after', premiseHelp + examples)
    .action(async (problem: string, options: BoundCommandOptions) => {
      const { runBound } = await import('./run-bound.js');
      await runBound(problem, options);
    });
}
