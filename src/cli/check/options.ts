import {
  campaignDetails,
  campaignOptions,
  campaignTopic,
  kernelOptions,
  premiseOption,
  premiseTopic,
  strictPremisesOption,
  timeoutOption,
} from '../options/shared-options.js';
import { commandRow } from '../options/command-rows.js';
import { optionRows, type ParsedOptions } from '../options/option-rows.js';
import { threadCount } from '../options/parse-values.js';

/** The options for promises of a kernel; each flag has its opposite, to undo one in a file. */
export const promiseOptions = optionRows({
  promises: { argument: '<file>', description: 'what the kernel promises, as JSON; flags win' },
  formats: {
    argument: '<names>',
    description: 'formats of Q, K and V, as in bf16,fp16',
    completes: 'format',
  },
  dims: { argument: '<sizes>', description: 'the only head dimensions, as in 64,128' },
  groupSizes: { argument: '<sizes>', description: 'query heads of a kv head, as in 1,4,8' },
  multiples: {
    argument: '<size=n>',
    description: 'what sizes are multiples of, as in keys=64',
    completes: 'multiple',
  },
  causalOnly: { description: 'takes no problem without a causal mask' },
  causal: { without: 'takes no causal mask', undo: true },
  window: { without: 'takes no sliding window', undo: true },
  softcap: { description: 'takes a softcap', undo: true },
  features: {
    argument: '<names>',
    description: 'what else it takes, as in mask,packed (default: nothing; --list has all)',
    completes: 'feature',
  },
  groupedHeads: { without: 'takes as many heads of K and V as of Q only', undo: true },
  emptyRows: { without: 'takes no mask that leaves a query without a key', undo: true },
  specialValues: {
    description: 'makes of infinities and NaNs what IEEE arithmetic makes, in the LSE too',
    undo: true,
  },
  needsLse: { description: 'gives an LSE, and fails without', undo: true },
  gradients: { description: 'gives dQ, dK and dV where it is asked for them', undo: true },
  deterministic: { description: 'gives the same bits of gradients again', undo: true },
  blockKeys: {
    argument: '<n>',
    description: 'keys that it works on at a time, at which problems are aimed',
  },
  rescaleThreshold: {
    argument: '<x>',
    description: 'log2 of how far its running maximum may lag',
  },
  promise: {
    argument: '<property=how>',
    description: 'how well it obeys a property: bits, bound or none (repeatable)',
    repeats: true,
    completes: 'promise',
  },
});

/** The promises as they are given. */
export type PromiseOptions = ParsedOptions<typeof promiseOptions>;

/** What a kernel may have to compute. */
export const contracts = ['attention', 'recurrent'] as const;

/** The options of `flashproof check`. */
export const checkOptions = optionRows({
  contract: {
    argument: '<name>',
    description: 'attention (the default), or recurrent: linear attention',
    completes: contracts,
  },
  kernel: {
    ...kernelOptions.kernel,
    completes: 'checked-kernel',
    excludes: [
      ...kernelOptions.kernel.excludes,
      { options: ['as'], says: '--kernel is judged by its own arithmetic; leave out --as' },
    ],
  },
  exec: kernelOptions.exec,
  launch: kernelOptions.launch,
  set: {
    argument: '<key=value>',
    description: 'change a setting of --kernel or --as (repeatable)',
    repeats: true,
    completes: 'setting',
    needs: {
      oneOf: ['kernel', 'as'],
      says: '--set changes a kernel model; name one with --kernel or --as',
    },
  },
  variant: { ...kernelOptions.variant, completes: 'checked-variant' },
  as: {
    argument: '<name>',
    description: "judge --exec or --launch by a model's own arithmetic, or a preset's premises",
    completes: 'judged-name',
  },
  premise: premiseOption,
  strictPremises: strictPremisesOption,
  property: {
    argument: '<names>',
    description: 'properties to try (repeatable; default: all)',
    repeats: true,
    completes: 'property',
  },
  regime: {
    argument: '<names>',
    description: 'regimes to draw problems in (repeatable; default: all)',
    repeats: true,
    completes: 'regime',
  },
  runs: { argument: '<n>', description: 'problems per property', initial: '100' },
  seed: {
    argument: '<n>',
    description: 'the same seed draws the same problems (default: random)',
  },
  seconds: { argument: '<n>', description: 'how long the whole check may take', initial: '60' },
  threads: {
    argument: '<n>',
    description: 'threads that try an emulated kernel (default: one per core)',
    parse: threadCount,
  },
  bail: { description: 'stop at the first violation' },
  strict: { description: 'fail as well where a property that is promised was never tried' },
  timeout: timeoutOption,
  ...campaignOptions,
  ...promiseOptions,
  list: { description: 'list properties, regimes and features' },
  replay: { argument: '<file>', description: 'try the saved problem of a failure again' },
  saveDir: {
    argument: '<folder>',
    description: 'where failures are saved',
    initial: 'flashproof-failures',
  },
  json: {
    argument: '<file>',
    description: 'write the report, or the list, as JSON (- for standard output)',
    stdout: true,
    excludes: [
      {
        options: ['replay'],
        says: '--replay prints a verdict and makes no report; leave out --json and --junit',
      },
    ],
  },
  junit: {
    argument: '<file>',
    description: 'write the report as JUnit XML (- for standard output)',
    stdout: true,
    excludes: [
      {
        options: ['replay'],
        says: '--replay prints a verdict and makes no report; leave out --json and --junit',
      },
    ],
  },
  quiet: { short: 'q', description: 'print the verdict only' },
});

/** The options of `flashproof check` as they are given. */
export type CheckCommandOptions = ParsedOptions<typeof checkOptions>;

const promiseHelp = `
What is promised decides which problems are tried: a kernel without sliding
windows gets none with --no-window. A file for --promises says so in JSON:
  {"formats": ["bf16"], "dims": [64, 128], "softcap": true,
   "laws": {"determinism": "bits"}}
`;

const details = `
Examples:
  flashproof check --list
  flashproof check --kernel fa4
  flashproof check --kernel fa4 --variant causal-one-more --runs 20
  flashproof check --kernel naive-fp32 --property within-bound --seed 1 \\
    --json check.json
  flashproof check --exec "python my_kernel.py" --formats bf16 --dims 64,128 \\
    --no-window
  flashproof check --exec "python my_kernel.py" \\
    --replay flashproof-failures/within-bound-1-3.safetensors
  flashproof check --contract recurrent --kernel chunked --set chunk=32

With --contract recurrent, of linear attention, promises are families, dims,
chunk and others, and options of attention such as --window are refused.

The command of --exec reads one JSON request a line and answers one line each;
docs/reference/properties.md in the repository has the protocol.
{"id":1,"ok":false,"error":"…","unsupported":true} declines a problem.
It is one process, which gets its problems one after the other: --threads is
for --kernel, without --bail.

Exit status: 0 every property that was tried holds, 1 one is violated, 2 the
request is wrong or nothing could be tried.`;

/** `flashproof check`. */
export const checkCommand = commandRow({
  name: 'check',
  description: 'try the properties of attention on a kernel, and simplify what violates them',
  arguments: [],
  options: checkOptions,
  details,
  topics: [
    {
      name: 'promises',
      title: 'Promises: what problems the kernel takes, and how well it obeys',
      options: Object.keys(promiseOptions) as (keyof typeof promiseOptions)[],
      text: promiseHelp,
    },
    premiseTopic,
    {
      ...campaignTopic,
      text: `${campaignDetails}--seconds is the time of each shard, and of each command that goes on: when it
is up, the unit of work that was begun is finished, and the report names the
shard. Each shard is one thread.
`,
    },
  ],
});
