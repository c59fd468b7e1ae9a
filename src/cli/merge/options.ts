import { commandRow } from '../options/command-rows.js';
import { optionRows, type ParsedOptions } from '../options/option-rows.js';

/** The options of `flashproof merge`. */
export const mergeOptions = optionRows({
  json: {
    argument: '<file>',
    description: 'write the report as JSON (- for standard output)',
    stdout: true,
  },
  junit: {
    argument: '<file>',
    description: 'write the report of an audit or a check as JUnit XML (-)',
    stdout: true,
  },
  html: { argument: '<file>', description: 'write the index of an audit as an HTML page' },
  svg: { argument: '<file>', description: 'plot a profile' },
  strict: { description: 'fail a check as well where a promised property was never tried' },
  quiet: { short: 'q', description: 'print the verdict only; nothing of a profile' },
});

/** The options of `flashproof merge` as they are given. */
export type MergeCommandOptions = ParsedOptions<typeof mergeOptions>;

const details = `
A part is what audit, check, conform and profile write with --shard and --json,
a journal what they write with --journal. Every shard must be there once, in any
order, and all of one request. The report is that of one run, but for times,
which are the sums of the shards', and for the shards whose time was up.
--junit is for parts of audit and check: the others have no JUnit output. --html
is for audits, and leads to the pages that shards with the same --html wrote.

Examples:
  flashproof check --kernel fa4 --seed 1 --shard 1/2 --json part1.json
  flashproof check --kernel fa4 --seed 1 --shard 2/2 --json part2.json
  flashproof merge part1.json part2.json --json check.json --junit check.xml

Exit status: 0 passed, 1 failed, as one run would have; 2 the request is wrong,
nothing was tried, or a file of an audit could not be judged.`;

/** `flashproof merge`. */
export const mergeCommand = commandRow({
  name: 'merge',
  description:
    'join the parts of an audit, check, conform or profile that was divided with --shard',
  arguments: [
    {
      syntax: '<part...>',
      description: 'parts or journals, every shard once',
      completes: 'path',
    },
  ],
  options: mergeOptions,
  details,
});
