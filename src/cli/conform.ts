import type { Command } from 'commander';
import { addCampaignOptions, campaignDetails, type CampaignOptions } from './campaign-options.js';
import { threadCount } from './thread-count.js';

/** What the options of `flashproof conform` parse to. */
export interface ConformCommandOptions extends CampaignOptions {
  readonly exhaustive?: boolean;
  readonly threads?: number;
  readonly captures?: string;
  readonly json?: string;
  readonly quiet?: boolean;
  readonly seed: string;
}

const examples = `
Examples:
  flashproof conform
  flashproof conform ex2.approx.ftz.f32 fa4_ex2_poly3 --exhaustive
  flashproof conform --captures my-gpu --json conformance.json

fixtures/capture/scalar/capture.sh of the source repository captures your GPU in
seconds.
${campaignDetails}
Exit status: 0 every model agrees with the silicon, 1 one does not, 2 the
request is wrong.`;

/** Registers `flashproof conform`. */
export function addConformCommand(program: Command): void {
  const command = program
    .command('conform')
    .description('compare the models of instructions with results captured on silicon')
    .argument(
      '[instruction...]',
      'PTX instructions, as in ex2.approx.ftz.f32, or fa4_ex2_poly1 to 5 (default: all)',
    )
    .option('--exhaustive', 'all 2^32 inputs of each instead of a sample (minutes)')
    .option('--threads <n>', 'worker threads (default: one per core)', threadCount)
    .option('--captures <dir>', "captures of another GPU (default: the package's own)")
    .option('--seed <text>', 'decides which random blocks are sampled', '0');
  addCampaignOptions(command)
    .option('--json <file>', 'write the result as JSON (- for standard output)')
    .option('-q, --quiet', 'print the verdict only')
    .addHelpText('after', examples)
    .action(async (instructions: string[], options: ConformCommandOptions) => {
      const { runConform } = await import('./run-conform.js');
      process.exitCode = await runConform(instructions, options);
    });
}
