import { Option, type Command } from 'commander';
import { addCampaignOptions, campaignDetails, type CampaignOptions } from './campaign-options.js';
import { collect } from './kernel-settings.js';
import { premiseDescription, premiseHelp } from './premise-help.js';

/** The options of `flashproof check` as commander hands them over. */
export interface CheckCommandOptions extends CampaignOptions {
  readonly kernel?: string;
  readonly exec?: string;
  readonly set?: readonly string[];
  readonly variant?: string;
  readonly as?: string;
  readonly premise?: readonly string[];
  readonly runs: string;
  readonly seed?: string;
  readonly property?: readonly string[];
  readonly regime?: readonly string[];
  readonly seconds: string;
  readonly bail?: boolean;
  readonly strict?: boolean;
  readonly timeout: string;
  readonly promises?: string;
  readonly formats?: string;
  readonly dims?: string;
  readonly groupSizes?: string;
  readonly multiples?: string;
  readonly causal?: boolean;
  readonly causalOnly?: boolean;
  readonly window?: boolean;
  readonly softcap?: boolean;
  readonly groupedHeads?: boolean;
  readonly emptyRows?: boolean;
  readonly specialValues?: boolean;
  readonly needsLse?: boolean;
  readonly blockKeys?: string;
  readonly rescaleThreshold?: string;
  readonly promise?: readonly string[];
  readonly list?: boolean;
  readonly replay?: string;
  readonly saveDir: string;
  readonly json?: string;
  readonly junit?: string;
  readonly quiet?: boolean;
}

const details = `
What is promised decides which problems are tried: a kernel without sliding
windows gets none with --no-window. A file for --promises says so in JSON:
  {"formats": ["bf16"], "dims": [64, 128], "softcap": true,
   "laws": {"determinism": "bits"}}

Examples:
  flashproof check --list
  flashproof check --kernel fa4
  flashproof check --kernel fa4 --variant causal-one-more --runs 20
  flashproof check --kernel naive-fp32 --property within-bound --seed 1 \\
    --json check.json
  flashproof check --exec "python my_kernel.py" --formats bf16 --dims 64,128 \\
    --no-window
  flashproof check --exec "python my_kernel.py" \\
    --replay flashproof-failures/within-bound-1-3.safetensors

The command of --exec reads one JSON request a line and answers one line each;
docs/properties.md in the repository has the protocol.
{"id":1,"ok":false,"error":"…","unsupported":true} declines a problem.
${campaignDetails}--seconds is the time of each shard, and of each command that goes on: when it
is up, the unit of work that was begun is finished, and the report names the
shard.

Exit status: 0 every property that was tried holds, 1 one is violated, 2 the
request is wrong or nothing could be tried.`;

/** What a kernel may promise to take or not; each has a flag of either meaning, to undo a file's. */
const promiseFlags: readonly (readonly [shown: string, hidden: string, description: string])[] = [
  ['--no-causal', '--causal', 'takes no causal mask'],
  ['--no-window', '--window', 'takes no sliding window'],
  ['--softcap', '--no-softcap', 'takes a softcap'],
  ['--no-grouped-heads', '--grouped-heads', 'takes as many heads of K and V as of Q only'],
  ['--no-empty-rows', '--empty-rows', 'takes no mask that leaves a query without a key'],
  [
    '--special-values',
    '--no-special-values',
    'makes of infinities and NaNs what IEEE arithmetic makes, in the LSE too',
  ],
  ['--needs-lse', '--no-needs-lse', 'gives an LSE, and fails without'],
];

function addPromiseOptions(command: Command): Command {
  command
    .option('--promises <file>', 'what the kernel promises, as JSON; flags win')
    .option('--formats <names>', 'formats of Q, K and V, as in bf16,fp16')
    .option('--dims <sizes>', 'the only head dimensions, as in 64,128')
    .option('--group-sizes <sizes>', 'query heads of a kv head, as in 1,4,8')
    .option('--multiples <size=n>', 'what sizes are multiples of, as in keys=64')
    .option('--causal-only', 'takes no problem without a causal mask');
  for (const [shown, hidden, description] of promiseFlags)
    command
      // The positive flag comes first, so that neither has a default.
      .addOption(
        shown.startsWith('--no-')
          ? new Option(hidden, description).hideHelp()
          : new Option(shown, description),
      )
      .addOption(
        shown.startsWith('--no-')
          ? new Option(shown, description)
          : new Option(hidden, description).hideHelp(),
      );
  return command
    .option('--block-keys <n>', 'keys that it works on at a time, at which problems are aimed')
    .option('--rescale-threshold <x>', 'log2 of how far its running maximum may lag')
    .option(
      '--promise <property=how>',
      'how well it obeys a property: bits, bound or none (repeatable)',
      collect,
    );
}

/** Registers `flashproof check`. */
export function addCheckCommand(program: Command): void {
  const command = program
    .command('check')
    .description('try the properties of attention on a kernel, and simplify what violates them')
    .option('--kernel <model>', 'an emulated kernel (flashproof emulate list)')
    .option('--exec <command>', 'a live kernel over the process protocol')
    .option('--set <key=value>', 'change a setting of --kernel or --as (repeatable)', collect)
    .option('--variant <id>', 'the emulated kernel with one bug: --set variant=<id>')
    .option(
      '--as <name>',
      "judge --exec by a kernel model's own arithmetic, or a preset's premises",
    )
    .option('--premise <name=value>', premiseDescription, collect)
    .option('--property <names>', 'properties to try (repeatable; default: all)', collect)
    .option('--regime <names>', 'regimes to draw problems in (repeatable; default: all)', collect)
    .option('--runs <n>', 'problems per property', '100')
    .option('--seed <n>', 'the same seed draws the same problems (default: random)')
    .option('--seconds <n>', 'how long the whole check may take', '60')
    .option('--bail', 'stop at the first violation')
    .option('--strict', 'fail as well where a property that is promised was never tried')
    .option('--timeout <seconds>', 'how long one answer of --exec may take', '10');
  addCampaignOptions(command);
  addPromiseOptions(command)
    .option('--list', 'list properties and regimes')
    .option('--replay <file>', 'try the saved problem of a failure again')
    .option('--save-dir <folder>', 'where failures are saved', 'flashproof-failures')
    .option('--json <file>', 'write the report, or the list, as JSON (- for standard output)')
    .option('--junit <file>', 'write the report as JUnit XML (- for standard output)')
    .option('-q, --quiet', 'print the verdict only')
    .addHelpText('after', premiseHelp + details)
    .action(async (options: CheckCommandOptions) => {
      const { runCheck } = await import('./run-check.js');
      process.exitCode = await runCheck(options);
    });
}
