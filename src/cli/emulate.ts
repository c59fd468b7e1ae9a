import type { Command } from 'commander';
import { collect } from './kernel-settings.js';
import { addMachineOptions, type MachineOptions } from './machine-options.js';
import { addProblemOptions, type ProblemOptions } from './problem-options.js';
import { threadCount } from './thread-count.js';

/** The options of `flashproof emulate` as commander hands them over. */
export interface EmulateCommandOptions extends ProblemOptions, MachineOptions {
  readonly save?: string;
  readonly set?: readonly string[];
  readonly threads?: number;
  readonly json?: string;
  readonly quiet?: boolean;
}

const examples = `
Examples:
  flashproof emulate fa4 problem.safetensors --save out.safetensors
  flashproof emulate fa4 problem.safetensors --set rescale.threshold=0 \\
    --set exp2.degree=4
  flashproof emulate fa4 problem.safetensors --machine
  flashproof emulate fa4 problem.safetensors --machine --ctas 2 \\
    --clusters 1 --trace trace.json
  flashproof emulate fa4 problem.safetensors --machine --no-races \\
    --schedule random:7
  flashproof emulate fa4 problem.safetensors --machine \\
    --mutant "remove: K/V empty: load waits"
  flashproof emulate list
  flashproof emulate list --machine
  flashproof emulate list --json -

--machine runs the kernel's program, warp by warp, on one thread. It looks for
races, deadlocks and misuse, counts what every unit does, and computes the same
bits. Open a trace at https://ui.perfetto.dev, or in chrome://tracing; 1 ns
there is 1 clock (1 step if not timed).

Exit status: 0 done, 1 --machine has findings, 2 the request is wrong.`;

/** Registers `flashproof emulate`. */
export function addEmulateCommand(program: Command): void {
  const command = program
    .command('emulate')
    .description('run an emulated kernel on a problem; "list" names the kernels and their settings')
    .argument('<model>', 'kernel model, as fa4')
    .argument('[problem]', 'tensors q, k, v: .safetensors, .npz or a folder of .npy')
    .option('--save <file>', 'write out, lse and (without --machine) rescales as .safetensors')
    .option('--set <key=value>', 'change a setting of the kernel (repeatable)', collect)
    .option('--threads <n>', 'worker threads (default: one per core)', threadCount);
  addMachineOptions(command);
  addProblemOptions(command)
    .option(
      '--json <file>',
      'write settings, evidence and counters, or the list, as JSON (- for stdout)',
    )
    .option('-q, --quiet', 'print nothing')
    .addHelpText('after', examples)
    .action(async (model: string, problem: string | undefined, options: EmulateCommandOptions) => {
      const { runEmulate } = await import('./run-emulate.js');
      await runEmulate(model, problem, options);
    });
}
