import type { Command } from 'commander';
import { collect } from './kernel-settings.js';
import { premiseDescription, premiseHelp } from './premise-help.js';
import { addProblemOptions, type ProblemOptions } from './problem-options.js';
import { threadCount } from './thread-count.js';

/** The options of `flashproof audit` as commander hands them over. */
export interface AuditCommandOptions extends ProblemOptions {
  readonly output?: string;
  readonly lse?: string;
  readonly exec?: string;
  readonly kernel?: string;
  readonly as?: string;
  readonly premise?: readonly string[];
  readonly techniques: boolean;
  readonly identify?: boolean;
  readonly set?: readonly string[];
  readonly threads?: number;
  readonly timeout: string;
  readonly falseAlarmRate: string;
  readonly json?: string;
  readonly junit?: string;
  readonly html?: string;
  readonly compare?: readonly string[];
  readonly full?: boolean;
  readonly quiet?: boolean;
}

const examples = `
Examples:
  flashproof audit dump.safetensors --output :out --lse :lse
  flashproof audit dump.safetensors --output kernel.npy --causal --json out.json
  flashproof audit problem.safetensors --exec "python my_kernel.py"
  flashproof audit problem.safetensors --kernel fa4 --set rescale.threshold=4
  flashproof audit dump.safetensors --as fa4 --set architecture=sm_100
  flashproof audit dump.safetensors --as eager
  flashproof audit dump.safetensors --premise scores=bf16,partials=bf16
  flashproof audit dump.safetensors --output :out --identify
  flashproof audit dump.safetensors --compare :torch --html report.html

Exit status: 0 the kernel passes, 1 it fails, 2 the request is wrong.`;

/** Registers `flashproof audit`. */
export function addAuditCommand(program: Command): void {
  const command = program
    .command('audit')
    .description("judge a kernel's output, and its LSE, against the oracle")
    .argument('<problem>', 'tensors q, k, v: .safetensors, .npz or a folder of .npy')
    .option('--output <file[:tensor]>', "the kernel's O; an empty file part means the problem file")
    .option('--lse <file[:tensor]>', "the kernel's LSE (natural logarithm)")
    .option('--exec <command>', 'run a live kernel over the process protocol instead')
    .option('--kernel <model>', 'run an emulated kernel instead (flashproof emulate list)')
    .option('--as <name>', "judge by a kernel model's own arithmetic, or by a preset's premises")
    .option('--premise <name=value>', premiseDescription, collect)
    .option('--set <key=value>', 'change a setting of --kernel or --as (repeatable)', collect)
    .option('--threads <n>', 'threads of the emulated kernel (default: one per core)', threadCount)
    .option('--timeout <seconds>', 'how long the live kernel may take', '60')
    .option(
      '--false-alarm-rate <p>',
      'probability that the statistical tests fail a correct kernel',
      '1e-9',
    );
  addProblemOptions(command)
    .option('--no-techniques', 'leave out the table of techniques')
    .option('--identify', 'tell which kernel model, or combination of techniques, the output is of')
    .option('--json <file>', 'write the report as JSON (- for standard output)')
    .option('--junit <file>', 'write the report as JUnit XML (- for standard output)')
    .option('--html <file>', 'write the report as one HTML page with plots (- for standard output)')
    .option(
      '--compare <name=file:tensor>',
      'another output of the problem to show in the page of --html (repeatable)',
      collect,
    )
    .option('--full', 'print every test and number, the techniques and the inputs')
    .option('-q, --quiet', 'print the verdict only')
    .addHelpText('after', premiseHelp + examples)
    .action(async (problem: string, options: AuditCommandOptions) => {
      const { runAudit } = await import('./run-audit.js');
      process.exitCode = await runAudit(problem, options);
    });
}
