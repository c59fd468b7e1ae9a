import { campaignDetails, campaignOptions } from '../options/shared-options.js';
import { commandRow } from '../options/command-rows.js';
import { optionRows, type ParsedOptions } from '../options/option-rows.js';
import { threadCount } from '../options/parse-values.js';

const conformOptions = optionRows({
  exhaustive: { description: 'all 2^32 inputs of each instead of a sample (minutes)' },
  threads: {
    argument: '<n>',
    description: 'worker threads (default: one per core)',
    parse: threadCount,
  },
  captures: {
    argument: '<dir>',
    description: "captures of another GPU (default: the package's own)",
  },
  seed: {
    argument: '<text>',
    description: 'decides which random blocks are sampled',
    initial: '0',
  },
  ...campaignOptions,
  json: {
    argument: '<file>',
    description: 'write the result as JSON (- for standard output)',
    stdout: true,
  },
  quiet: { short: 'q', description: 'print the verdict only' },
});

/** The options of `flashproof conform` as they are given. */
export type ConformCommandOptions = ParsedOptions<typeof conformOptions>;

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

/** `flashproof conform`. */
export const conformCommand = commandRow({
  name: 'conform',
  description: 'compare the models of instructions with results captured on silicon',
  arguments: [
    {
      syntax: '[instruction...]',
      description:
        'PTX instructions, as in ex2.approx.ftz.f32, or fa4_ex2_poly1 to 5 (default: all)',
      completes: 'instruction',
    },
  ],
  options: conformOptions,
  details: examples,
});
