import type { Command } from 'commander';

/** The options of `flashproof merge` as commander hands them over. */
export interface MergeCommandOptions {
  readonly json?: string;
  readonly junit?: string;
  readonly svg?: string;
  readonly strict?: boolean;
  readonly quiet?: boolean;
}

const details = `
A part is what check, conform and profile write with --shard and --json, a
journal what they write with --journal. Every shard must be there once, in any
order, and all of one request. The report is that of one run, but for times,
which are the sums of the shards', and for the shards whose time was up.
--junit is for parts of check: conform and profile have no JUnit output.

Examples:
  flashproof check --kernel fa4 --seed 1 --shard 1/2 --json part1.json
  flashproof check --kernel fa4 --seed 1 --shard 2/2 --json part2.json
  flashproof merge part1.json part2.json --json check.json --junit check.xml

Exit status: 0 passed, 1 failed, as one run would have; 2 the request is wrong,
or nothing was tried.`;

/** Registers `flashproof merge`. */
export function addMergeCommand(program: Command): void {
  program
    .command('merge')
    .description('join the parts of a check, conform or profile that was divided with --shard')
    .argument('<part...>', 'parts or journals, every shard once')
    .option('--json <file>', 'write the report as JSON (- for standard output)')
    .option('--junit <file>', 'write the report of a check as JUnit XML (- for standard output)')
    .option('--svg <file>', 'plot a profile')
    .option('--strict', 'fail a check as well where a promised property was never tried')
    .option('-q, --quiet', 'print the verdict only; of a profile nothing')
    .addHelpText('after', details)
    .action(async (paths: string[], options: MergeCommandOptions) => {
      const { runMerge } = await import('./run-merge.js');
      process.exitCode = await runMerge(paths, options);
    });
}
