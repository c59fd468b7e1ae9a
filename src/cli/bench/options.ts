import { commandRow } from '../options/command-rows.js';
import { optionRows, type ParsedOptions } from '../options/option-rows.js';

const benchOptions = optionRows({
  json: {
    argument: '<file>',
    description: 'write the result as JSON (- for standard output)',
    stdout: true,
  },
  only: {
    argument: '<words>',
    description:
      'run the benchmarks with these words in their names, also those that want minutes or gigabytes of their own',
  },
  quick: { description: 'small data and single runs: shows only that everything runs' },
  quiet: { short: 'q', description: 'print nothing, since there is no verdict' },
});

/** The options of `flashproof bench` as they are given. */
export type BenchCommandOptions = ParsedOptions<typeof benchOptions>;

const examples = `
Examples:
  flashproof bench
  flashproof bench --only 131072
  flashproof bench --only 'laws of fa4'
  flashproof bench --quick --json bench.json

Exit status: 0 done, also where a target is missed; 2 the request is wrong.`;

/** `flashproof bench`. */
export const benchCommand = commandRow({
  name: 'bench',
  description: 'measure how fast flashproof is on this machine (some minutes)',
  arguments: [],
  options: benchOptions,
  details: examples,
});
