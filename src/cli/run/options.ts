import type { MemoryModelName } from '../../machine/index.js';
import { commandRow } from '../options/command-rows.js';
import { optionRows, type ParsedOptions } from '../options/option-rows.js';
import { atLeastOne, threadCount } from '../options/parse-values.js';
import { computingOptions, launchFileOptions } from '../options/shared-options.js';

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
  ...launchFileOptions,
  contract: {
    description: 'execute each mul and add that an assembler may contract as one fma',
  },
  schedule: {
    argument: '<name>',
    description: 'in-turns (default), timed, random:<seed>, explored:…, or an adversarial one',
    completes: 'schedule',
  },
  starts: {
    argument: '<order>',
    description: 'order in which clusters start: ascending (default), descending, random:<seed>',
    completes: ['ascending', 'descending', 'random:1'],
  },
  ...computingOptions,
  races: { without: 'do not look for races: faster, but proves nothing' },
  hints: { description: 'print hints too, which are illegal in no schedule' },
  model: {
    argument: '<name>',
    description: `memory model: ${Object.keys(modelNames).join(', ')} (default: practice)`,
    completes: 'memory-model',
  },
  break: {
    argument: '<line[,thread]>',
    description: 'print registers before that line of the PTX (repeatable; below)',
    repeats: true,
  },
  breakTimes: {
    argument: '<n>',
    description: 'how many executions of a line --break prints',
    initial: '1',
    needs: {
      oneOf: ['break'],
      says: '--break-times is how often --break prints; give --break <line> too',
    },
  },
  schedules: {
    argument: '<n>',
    description: 'run up to n schedules that differ in what the schedule decides (below)',
    parse: atLeastOne,
    excludes: [
      {
        options: ['races'],
        says: '--schedules goes by what races are looked for by; leave out --no-races',
      },
      {
        options: ['schedule', 'starts'],
        says: '--schedules begins with the usual schedule; leave out --schedule and --starts',
      },
    ],
  },
  mutants: {
    description: 'run each change of a barrier, wait, fence or commit too (below)',
    excludes: [
      {
        options: ['races'],
        says: '--mutants looks for races in each mutant; leave out --no-races',
      },
    ],
  },
  mostMutants: {
    argument: '<n>',
    description: 'judge that many mutants at most, evenly spread (default: all)',
    parse: atLeastOne,
    needs: { oneOf: ['mutants'], says: '--most-mutants counts mutants; give --mutants too' },
  },
  threads: {
    argument: '<n>',
    description: 'worker threads, for clusters of the grid and mutants (default: one per core)',
    parse: threadCount,
  },
  trace: {
    argument: '<file>',
    description: 'write a trace for Perfetto: what warps and units do, step by step (below)',
  },
  stats: { description: 'print how many threads ran the clusters, and why (below)' },
  lines: { description: 'print the PTX with how often each line was executed' },
  json: {
    argument: '<file>',
    description: 'write findings, outputs and counts as JSON (- for stdout)',
    stdout: true,
  },
  quiet: { short: 'q', description: 'print the verdict only' },
});

/** The options of `flashproof run` as they are given. */
export type RunCommandOptions = ParsedOptions<typeof runOptions>;

const examples = `
Examples:
  flashproof run launch.json
  flashproof run launch.json --save out.safetensors --lines
  flashproof run launch.json --tensors other.safetensors --contract
  flashproof run launch.json --break 15,40 --break-times 3
  flashproof run launch.json --schedules 100
  flashproof run launch.json --mutants
  flashproof run launch.json --trace trace.json
  flashproof run template.json --problem problem.safetensors

--break 120 prints the registers of the instruction at line 120 for the 32 lanes
of the first warp, 120,w3 for those of warp 3, 120,40 for thread 40 alone; a CTA
other than the first comes last: 120,40,2.

The launch file is JSON: entry, grid, block, cluster, dynamicSharedBytes,
parameters and outputs, in the words of the CUDA driver; kernel.ptx and
tensors.safetensors lie beside it. Where the tensors have T.fused or T.unfused,
what a GPU made of an output T, the result is compared with it.

--schedules runs the kernel in each order of accesses that come in none
(atomics, flags, tests of barriers), and says whether results or findings depend
on it and whether an order is left; --schedule explored:… runs one again.

Parts of a grid that takes more than some seconds run in worker threads where
they touch no memory of one another, with the same result; with --threads n they
run there from the start, in n threads, with --threads 1 never. Where CTAs may
meet by atomics or flags, and with --no-races, --schedule, --starts, --break or
--trace, all run on one thread: --stats says how many there were, and why.

--mutants removes, weakens and moves each instruction that orders others, one at
a time, and says of each whether the machine finds it, the kernel hangs, its
results change, or every schedule gives the same.

Open a trace at https://ui.perfetto.dev, or in chrome://tracing; 1 ns there is
1 step, or 1 clock with --schedule timed, where code on registers takes none.

The first line is the verdict, by the memory model: what it says of schedules
it says of those that the model allows. Findings of a kind at the same lines are
one.

Exit status: 0 PASS, 1 FAIL: findings or other results than were recorded, or
results that depend on the schedule; also 1 where the machine has overlooked a
mutant, 2 the request is wrong.`;

/** `flashproof run`. */
export const runCommand = commandRow({
  name: 'run',
  description: 'run a compiled kernel (PTX) on the emulated machine',
  arguments: [{ syntax: '<launch>', description: 'launch file (JSON)', completes: 'path' }],
  options: runOptions,
  details: examples,
});
