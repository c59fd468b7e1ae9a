import type { Command } from 'commander';

/** What the options of `flashproof bench` parse to. */
export interface BenchCommandOptions {
  readonly json?: string;
  readonly quick?: boolean;
  readonly quiet?: boolean;
}

const examples = `
Examples:
  flashproof bench
  flashproof bench --quick --json bench.json

Exit status: 0 done, also where a target is missed; 2 the request is wrong.`;

/** Registers `flashproof bench`. */
export function addBenchCommand(program: Command): void {
  program
    .command('bench')
    .description('measure how fast flashproof is on this machine (some minutes)')
    .option('--json <file>', 'write the result as JSON (- for standard output)')
    .option('--quick', 'small data and single runs: shows only that everything runs')
    .option('-q, --quiet', 'print nothing')
    .addHelpText('after', examples)
    .action(async (options: BenchCommandOptions) => {
      const { runBench } = await import('./run-bench.js');
      await runBench(options);
    });
}
