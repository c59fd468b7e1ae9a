import { InvalidArgumentError } from 'commander';
import type { MemoryModelName } from '../../machine/index.js';
import { commandRow } from '../options/command-rows.js';
import { type OptionRow, optionRows, type ParsedOptions } from '../options/option-rows.js';
import { threadCount } from '../options/parse-values.js';
import { problemDescription, problemOptions, problemTopic } from '../options/shared-options.js';

/** The names alone: to import the models would load the machine at the start of every command. */
const modelNames = {
  practice: true,
  ptx: true,
  'ptx-9.2': true,
  pipe: true,
} as const satisfies Readonly<Record<MemoryModelName, true>>;

function ctaCount(text: string): 1 | 2 {
  if (text !== '1' && text !== '2') throw new InvalidArgumentError('give 1 or 2.');
  return text === '1' ? 1 : 2;
}

function clusterCount(text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1 || count > 0xffff)
    throw new InvalidArgumentError('give a whole number from 1 to 65535.');
  return count;
}

/** The need of an option for the emulated machine. */
function theMachine(flag: string) {
  return {
    oneOf: ['machine'],
    says: `${flag} is about the emulated machine; add --machine`,
  } as const;
}

const machineOptions = optionRows({
  machine: { description: 'run it on an emulated Blackwell: warps, tensor memory, TMA, barriers' },
  ctas: {
    argument: '<n>',
    description: 'CTAs of a cluster, 1 or 2 (default: as the kernel chooses)',
    parse: ctaCount,
    completes: ['1', '2'],
    needs: theMachine('--ctas'),
  },
  clusters: {
    argument: '<n>',
    description: 'clusters that share the tiles (default: one per SM)',
    parse: clusterCount,
    needs: theMachine('--clusters'),
  },
  schedule: {
    argument: '<name>',
    description:
      'in-order (default), timed, random:<seed>, or an adversarial one (see list --machine)',
    completes: 'schedule',
    needs: theMachine('--schedule'),
  },
  races: {
    without: 'do not look for races: some three times faster, but proves nothing',
    needs: theMachine('--no-races'),
  },
  model: {
    argument: '<name>',
    description: `memory model: ${Object.keys(modelNames).join(', ')}`,
    completes: 'memory-model',
    needs: theMachine('--model'),
  },
  isaFences: {
    description: 'with the tcgen05 fences and waits that the PTX ISA asks for',
    needs: theMachine('--isa-fences'),
  },
  mutant: {
    argument: '<id>',
    description: 'with one mistake in its synchronisation (see list --machine)',
    completes: 'mutant',
    needs: theMachine('--mutant'),
  },
  trace: {
    argument: '<file>',
    description: 'write a trace for Perfetto, of the timed schedule unless --schedule is given',
    needs: theMachine('--trace'),
  },
});

const backwardOptions = {
  backward: {
    description: 'its backward pass too: dq, dk and dv for a gradient of the output',
    excludes: [
      {
        options: ['machine'],
        says: 'the emulated machine runs the forward pass; leave out --backward',
      },
    ],
  },
  dout: {
    argument: '<file[:tensor]>',
    description: "the gradient of O (default: the file's dout)",
    needs: { oneOf: ['backward'], says: '--dout is for the backward pass; add --backward' },
  },
} as const satisfies Readonly<Record<string, OptionRow>>;

/** The options of `flashproof emulate`. */
export const emulateOptions = optionRows({
  save: {
    argument: '<file>',
    description: 'write out, lse, rescales, and dq, dk, dv, as .safetensors',
  },
  set: {
    argument: '<key=value>',
    description: 'change a setting of the kernel (repeatable)',
    repeats: true,
    completes: 'setting',
  },
  threads: {
    argument: '<n>',
    description: 'worker threads (default: one per core)',
    parse: threadCount,
  },
  ...backwardOptions,
  ...machineOptions,
  ...problemOptions,
  json: {
    argument: '<file>',
    description: 'write settings, evidence and counters, or the list, as JSON (- for stdout)',
    stdout: true,
  },
  quiet: { short: 'q', description: 'print nothing; with --machine the verdict only' },
});

/** The options of `flashproof emulate` as they are given. */
export type EmulateCommandOptions = ParsedOptions<typeof emulateOptions>;

const examples = `
Examples:
  flashproof emulate fa4 problem.safetensors --save out.safetensors
  flashproof emulate fa4 problem.safetensors --set rescale.threshold=0 \\
    --set exp2.degree=4
  flashproof emulate naive-fp32 training.safetensors --backward \\
    --dout :do --save gradients.safetensors
  flashproof emulate fa4 problem.safetensors --machine
  flashproof emulate fa4 problem.safetensors --machine --ctas 2 \\
    --clusters 1 --trace trace.json
  flashproof emulate fa4 problem.safetensors --machine --no-races \\
    --schedule random:7
  flashproof emulate fa4 problem.safetensors --machine \\
    --mutant "remove: K/V empty: load waits"
  flashproof emulate list
  flashproof emulate list --machine
  flashproof emulate list --json -

--machine runs the kernel's program, warp by warp, on one thread. It looks for
races, deadlocks and misuse, counts what every unit does, and computes the same
bits. Open a trace at https://ui.perfetto.dev, or in chrome://tracing; 1 ns
there is 1 clock (1 step if not timed).

Exit status: 0 done, 1 --machine has findings, 2 the request is wrong.`;

/** `flashproof emulate`. */
export const emulateCommand = commandRow({
  name: 'emulate',
  description: 'run an emulated kernel on a problem; "list" names the kernels and their settings',
  arguments: [
    { syntax: '<model>', description: 'kernel model, as fa4', completes: 'listed-model' },
    { syntax: '[problem]', description: problemDescription, completes: 'path' },
  ],
  options: emulateOptions,
  topics: [
    problemTopic,
    {
      name: 'machine',
      title: 'The emulated machine: schedules, races, traces',
      options: Object.keys(machineOptions) as (keyof typeof machineOptions)[],
    },
  ],
  details: examples,
});
