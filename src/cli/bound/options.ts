import { commandRow } from '../options/command-rows.js';
import { optionRows, type ParsedOptions } from '../options/option-rows.js';
import { threadCount } from '../options/parse-values.js';
import {
  gradientPremiseHelp,
  premiseOption,
  premiseTopic,
  problemDescription,
  problemOptions,
  problemTopic,
  rowOptions,
} from '../options/shared-options.js';

/** The options of `flashproof bound`. */
export const boundOptions = optionRows({
  kernel: {
    argument: '<model>',
    description: 'a kernel model (flashproof emulate list; default: any kernel)',
    completes: 'kernel-model',
  },
  as: {
    argument: '<preset>',
    description: 'the premises of a preset',
    completes: 'judged-name',
  },
  premise: premiseOption,
  backward: { description: 'bound dQ, dK and dV too, for a gradient of the output' },
  dout: {
    argument: '<file[:tensor]>',
    description: "the gradient of O (default: the file's dout)",
    needs: { oneOf: ['backward'], says: '--dout is for the backward pass; add --backward' },
  },
  gradientPremise: {
    argument: '<name=value>',
    description: 'how the kernel computes gradients (repeatable; below)',
    repeats: true,
    completes: 'gradient-premise',
    needs: {
      oneOf: ['backward'],
      says: '--gradient-premise is for the backward pass; add --backward',
    },
  },
  set: {
    argument: '<key=value>',
    description: 'change a setting of the kernel model (repeatable)',
    repeats: true,
    completes: 'setting',
  },
  outputFormat: {
    argument: '<format>',
    description: "format of the output (default: the kernel's, or that of q)",
    completes: 'format',
  },
  rows: {
    ...rowOptions.rows,
    description: 'bound a sample of so many rows, or all (default: all, if that is not long)',
    excludes: [
      {
        options: ['backward'],
        says: '--backward bounds gradients, to which every row adds; leave out --rows',
      },
    ],
  },
  seed: rowOptions.seed,
  threads: {
    argument: '<n>',
    description: 'worker threads (default: one per core)',
    parse: threadCount,
  },
  ...problemOptions,
  save: {
    argument: '<file>',
    description: 'write exact O and LSE and the bound of each element as .safetensors',
    excludes: [
      { options: ['rows'], says: '--save keeps the bounds of all rows; leave out --rows' },
    ],
  },
  json: {
    argument: '<file>',
    description: 'write the bounds as JSON (- for standard output)',
    stdout: true,
  },
  quiet: { short: 'q', description: 'print nothing, since there is no verdict' },
});

/** The options of `flashproof bound` as they are given. */
export type BoundCommandOptions = ParsedOptions<typeof boundOptions>;

const examples = `
Examples:
  flashproof bound problem.safetensors
  flashproof bound problem.safetensors --kernel fa4 --set rescale.threshold=0
  flashproof bound training.safetensors --backward --as naive-fp32
  flashproof bound problem.safetensors --kernel fa4 \\
    --set architecture=sm_90 --json bounds.json

Exit status: 0 done, 2 the request is wrong.`;

/** `flashproof bound`. */
export const boundCommand = commandRow({
  name: 'bound',
  description: 'how far each technique of a kernel may move the output, without running anything',
  arguments: [{ syntax: '<problem>', description: problemDescription, completes: 'path' }],
  options: boundOptions,
  details: examples,
  topics: [
    problemTopic,
    { ...premiseTopic, options: ['premise'] },
    {
      name: 'gradients',
      title: 'Gradients',
      options: ['backward', 'dout', 'gradientPremise'],
      text: gradientPremiseHelp,
    },
  ],
});
