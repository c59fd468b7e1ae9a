import { commandRow } from '../options/command-rows.js';
import { optionRows, type ParsedOptions } from '../options/option-rows.js';
import { threadCount } from '../options/parse-values.js';
import {
  premiseHelp,
  premiseOption,
  problemDescription,
  problemOptions,
  rowOptions,
} from '../options/shared-options.js';

const boundOptions = optionRows({
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
  },
  seed: rowOptions.seed,
  threads: {
    argument: '<n>',
    description: 'worker threads (default: one per core)',
    parse: threadCount,
  },
  ...problemOptions,
  json: {
    argument: '<file>',
    description: 'write the bounds as JSON (- for standard output)',
    stdout: true,
  },
  quiet: { short: 'q', description: 'print nothing' },
});

/** The options of `flashproof bound` as they are given. */
export type BoundCommandOptions = ParsedOptions<typeof boundOptions>;

const examples = `
Examples:
  flashproof bound problem.safetensors
  flashproof bound problem.safetensors --kernel fa4 --set rescale.threshold=0
  flashproof bound problem.safetensors --kernel fa4 \\
    --set architecture=sm_90 --json bounds.json

Exit status: 0 done, 2 the request is wrong.`;

/** `flashproof bound`. */
export const boundCommand = commandRow({
  name: 'bound',
  description: 'how far each technique of a kernel may move the output, without running anything',
  arguments: [{ syntax: '<problem>', description: problemDescription, completes: 'path' }],
  options: boundOptions,
  details: premiseHelp + examples,
});
