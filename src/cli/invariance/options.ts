import { promiseOptions } from '../check/options.js';
import { commandRow } from '../options/command-rows.js';
import { optionRows, type ParsedOptions } from '../options/option-rows.js';
import { atLeastOne } from '../options/parse-values.js';
import {
  kernelOptions,
  problemDescription,
  problemOptions,
  problemTopic,
  timeoutOption,
} from '../options/shared-options.js';

/** The options of `flashproof invariance`. */
export const invarianceOptions = optionRows({
  ...kernelOptions,
  set: {
    argument: '<key=value>',
    description: 'change a setting of --kernel (repeatable)',
    repeats: true,
    completes: 'setting',
    needs: {
      oneOf: ['kernel'],
      says: '--set changes a kernel model; name one with --kernel',
    },
  },
  dimension: {
    argument: '<names>',
    description: 'what to change (repeatable; default: all, below)',
    repeats: true,
    completes: 'dimension',
  },
  upTo: {
    argument: '<name=n>',
    description: 'the largest value of a dimension (repeatable)',
    repeats: true,
    completes: 'limit',
  },
  every: { description: 'try every value, not only small ones and those beside powers of two' },
  sequence: {
    argument: '<n>',
    description: 'the sequence or batch whose rows are compared (default: the first with a query)',
  },
  features: promiseOptions.features,
  splits: {
    argument: '<sizes>',
    description: 'numbers of splits that --exec takes, as in 1,2,4',
    needs: {
      oneOf: ['exec'],
      says: '--splits are asked of a command; name one with --exec, or use --set for a model',
    },
  },
  runs: {
    argument: '<n>',
    description: 'runs of the same problem, two at least (default: 3)',
    parse: atLeastOne,
  },
  timeout: timeoutOption,
  ...problemOptions,
  json: {
    argument: '<file>',
    description: 'write the report as JSON (- for standard output)',
    stdout: true,
  },
  quiet: { short: 'q', description: 'print the verdict only' },
});

/** The options of `flashproof invariance` as they are given. */
export type InvarianceCommandOptions = ParsedOptions<typeof invarianceOptions>;

const details = `
Dimensions, and the largest value that is tried:
  determinism        the same problem again; always first
  batch              sequences of the batch                                64
  place              place of the sequence in a batch                       7
  neighbour-queries  queries of the other sequence of two                 256
  neighbour-keys     keys of the other sequence of two                   1024
  queries            queries of the sequence; its last is compared        256
  heads              kv heads; the first is compared                       16
  splits             numbers of splits of the keys (--splits)
  page-size          keys of a page, by powers of two                     256
  page-order         orders of the pages                                    5

Each begins with its smallest value and goes up to the first that changes a bit
of O or of the LSE; between the last equal one and that one it bisects, so that
both sides of a change are run, and run again. Neighbours and pages need
sequences of their own lengths: a problem that has them, or --features packed,
padded or paged. With --splits the request has "splits".

Examples:
  flashproof invariance problem.safetensors --kernel fa4
  flashproof invariance problem.safetensors --kernel naive-fp32 \\
    --features packed,paged --dimension batch,page-size --up-to batch=128
  flashproof invariance decode.safetensors --exec "python my_kernel.py" \\
    --splits 1,2,4,8 --json invariance.json

Exit status: 0 nothing that was tried changes a bit, 1 something does, or the
kernel fails somewhere, 2 the request is wrong, or the problem has no output.`;

/** `flashproof invariance`. */
export const invarianceCommand = commandRow({
  name: 'invariance',
  description: "find the smallest change of a batch that changes a row's bits",
  arguments: [{ syntax: '<problem>', description: problemDescription, completes: 'path' }],
  options: invarianceOptions,
  details,
  topics: [problemTopic],
});
