import type { MemoryModelName } from '../../machine/index.js';
import { commandRow } from '../options/command-rows.js';
import { optionRows, type ParsedOptions } from '../options/option-rows.js';

/** The names alone: to import the models would load the machine at the start of every command. */
const modelNames = {
  practice: true,
  ptx: true,
  'ptx-9.2': true,
  pipe: true,
} as const satisfies Readonly<Record<MemoryModelName, true>>;

/** The options of `flashproof run`. */
export const runOptions = optionRows({
  save: {
    argument: '<file>',
    description: 'write the outputs as .safetensors',
  },
  ptx: { argument: '<file>', description: 'the PTX, in place of the one that the file names' },
  tensors: {
    argument: '<file>',
    description: 'the tensors, in place of those that the file names',
  },
  contract: {
    description: 'execute each mul and add that an assembler may contract as one fma',
  },
  schedule: {
    argument: '<name>',
    description: 'in-turns (default), timed, random:<seed>, or an adversarial one',
    completes: 'schedule',
  },
  architecture: {
    argument: '<name>',
    description: "the GPU whose tensor cores compute, as sm_90 (default: the PTX's target)",
    completes: ['sm_80', 'sm_89', 'sm_90', 'sm_100', 'sm_103'],
  },
  races: { without: 'do not look for races: faster, but proves nothing' },
  model: {
    argument: '<name>',
    description: `memory model: ${Object.keys(modelNames).join(', ')}`,
    completes: 'memory-model',
  },
  lines: { description: 'print the PTX with how often each line was executed' },
  json: {
    argument: '<file>',
    description: 'write findings, outputs and counts as JSON (- for stdout)',
    stdout: true,
  },
  quiet: { short: 'q', description: 'print nothing' },
});

/** The options of `flashproof run` as they are given. */
export type RunCommandOptions = ParsedOptions<typeof runOptions>;

const examples = `
Examples:
  flashproof run launch.json
  flashproof run launch.json --save out.safetensors --lines
  flashproof run launch.json --tensors other.safetensors --contract

The launch file is JSON: entry, grid, block, cluster, dynamicSharedBytes,
parameters and outputs, in the words of the CUDA driver; kernel.ptx and
tensors.safetensors lie beside it. Where the tensors have T.fused or T.unfused,
what a GPU made of an output T, the result is compared with it.

Exit status: 0 done, 1 findings or other results than were recorded, 2 the
request is wrong.`;

/** `flashproof run`. */
export const runCommand = commandRow({
  name: 'run',
  description: 'run a compiled kernel (PTX) on the emulated machine',
  arguments: [{ syntax: '<launch>', description: 'launch file (JSON)', completes: 'path' }],
  options: runOptions,
  details: examples,
});
