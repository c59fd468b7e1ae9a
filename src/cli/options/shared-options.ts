import { type OptionRow, optionRows, type ParsedOptions } from './option-rows.js';
import { inputOptions } from './problem-inputs.js';

/** The description of the problem argument of commands. */
export const problemDescription = 'tensors q, k, v, …: .safetensors, .npz or a folder of .npy';

/** The options that define the computation on a problem file's q, k, v; `settings.ts` reads them. */
export const problemOptions = optionRows({
  scale: { argument: '<x>', description: "factor on Q·K (default: the file's, else 1/√d)" },
  causal: {
    description: 'causal mask, aligned to the bottom right',
    without: "no causal mask, whatever the file's metadata says",
  },
  window: {
    argument: '<left,right>',
    description: 'sliding window in keys, -1 for no limit on a side',
  },
  softcap: { argument: '<x>', description: 'scores become x·tanh(score/x)' },
  layout: {
    argument: '<layout>',
    description: 'order of the dimensions: bhsd (the default) or bshd',
    completes: 'layout',
  },
  format: {
    argument: '<tensor=format>',
    description: 'format of a tensor whose dtype does not tell, or that was widened (repeatable)',
    repeats: true,
    completes: 'tensor-format',
  },
  ...inputOptions,
});

/** The options for the number of rows to judge; `settings.ts` reads them. */
export const rowOptions = optionRows({
  rows: {
    argument: '<n>',
    description: 'judge a sample of so many rows, or all (default: all, if that is not long)',
  },
  seed: {
    argument: '<n>',
    description: 'the same seed samples the same rows (default: random)',
  },
});

/** The options that name what a launch file is run with, in place of what it names. */
export const launchFileOptions = optionRows({
  ptx: { argument: '<file>', description: 'the PTX, in place of the one that the file names' },
  tensors: {
    argument: '<file>',
    description: 'the tensors, in place of those that the file names',
  },
  problem: {
    argument: '<file>',
    description: 'of a template: the problem (.safetensors, .npz or folder) that it is run on',
    excludes: [
      {
        options: ['tensors'],
        says: '--problem is where the tensors of a template are; leave out --tensors',
      },
    ],
  },
});

/** The option for the GPU that computes. */
export const computingOptions = optionRows({
  architecture: {
    argument: '<name>',
    description: "the GPU whose tensor cores compute, as sm_90 (default: the PTX's target)",
    completes: ['sm_80', 'sm_89', 'sm_90', 'sm_100', 'sm_103', 'sm_110', 'sm_120'],
  },
});

/** The topic of a problem's inputs beside q, k and v, but for the most usual. */
export const problemTopic = {
  name: 'problem',
  title: 'The problem: masks, biases, heads, packed and paged keys',
  options: (Object.keys(problemOptions) as (keyof typeof problemOptions)[]).filter(
    (key) => !['causal', 'layout', 'scale'].includes(key),
  ),
} as const;

/** The options of rows as they are given. */
export type RowOptions = ParsedOptions<typeof rowOptions>;

/** The problem options as they are given. */
export type ProblemOptions = ParsedOptions<typeof problemOptions>;

/**
 * The section on --premise in the help of audit, bound and check. The names are written out so that
 * showing help loads no bounds; test/cli/premises.test.ts compares them with the vocabulary.
 */
export const premiseHelp = `
Premises, as name=value: what a kernel does otherwise than any correct one.
  scores, weights, partials    a format, or input for that of Q
  dequantized                  a format
  qkAccumulator, pvAccumulator fp64, fp32, tf32, fp16, bf16
  scale                        scores, folded-log2e, q-after-rounding,
                               q-before-rounding, root-of-both
  rowSum                       before-rounding, after-rounding
  outputRounding               nearest, stochastic, truncated
  maximum                      row, group, none
  exponential                  correctly-rounded, hardware, or its error
  factors                      hardware, as-weights
  scoreLimit, weightScale      a number
  pvTile                       keys of a sum P·V of its own in pvAccumulator
What the kernel itself quantises Q, K and V to:
  qk                           int8, int4, nvfp4
  qkGroups                     blocks, threads
  qBlock, kBlock               rows that share a factor; 1 for each token
  smoothing                    none, keys
  qkRounding                   half-away, half-even
  qkDivision                   full, nearest
  qkScale                      folded, scores
  values                       fp16, e4m3, nvfp4
  smoothedLse                  corrected, as-smoothed
Presets: fused (the default), eager, torch-math, fp16-accumulate, fa3-fp8,
fa4-fp8, flashinfer-fp8, sageattention2-fp16, sageattention2-fp8,
sageattention2-int4, polynomial. docs/guide/auditing.md says when to
declare what.
`;

/** The section on --gradient-premise in the help of audit; the same test compares its names with the vocabulary. */
export const gradientPremiseHelp = `
Premises of gradients, as name=value: what the kernel is known to do of what any
correct one may, or beyond that.
  delta                        any, stored-output, weights
  deltaProducts, deltaSums     a format, or input; of dO·O and of D
  sinkTerms                    any, a format, or input; of dSink's terms
  p, ds, weights, scores, dp   a format, or input for that of Q
  partials                     a format, or input
  scale                        any, after-rounding
  sums                         any, nearest
  tanh                         any, promised, hardware, accurate
With fit beside them audit says which narrower ones the gradients agree with.
`;

/** The section on linear attention in the help of audit; test/cli/premises.test.ts compares its names with the vocabulary. */
export const recurrentHelp = `
Linear attention and delta rules: a file whose metadata has family, or --family.
Tensors q, k, v, g, beta, initial_state, cu_seqlens, dout are [batch, tokens,
heads, …] (--layout bthd or bhtd). Premises of such kernels, as name=value:
  form                         recurrent, chunked
  chunk                        a number of tokens
  state, intermediate          a format
Presets for --as: recurrent, chunked, fla. Kernels to run: --kernel chunked or
naive-recurrent (--set chunk, inverse, state, variant), --exec and --launch.
`;

/** --premise, which `premiseHelp` explains. */
export const premiseOption = {
  argument: '<name=value>',
  description: 'what the kernel does otherwise than any (repeatable; below)',
  repeats: true,
  completes: 'premise',
} as const satisfies OptionRow;

/** --strict-premises. */
export const strictPremisesOption = {
  description: 'the judge alone says what may be coarse: no file does, and no hint is told',
} as const satisfies OptionRow;

/** The topic of premises. */
export const premiseTopic = {
  name: 'premises',
  title: 'Premises: what the kernel does otherwise than any correct one',
  options: ['premise', 'strictPremises'],
  text: premiseHelp,
} as const;

/** The options that name a kernel to run; `kernel-under-test.ts` reads them. */
export const kernelOptions = optionRows({
  kernel: {
    argument: '<model>',
    description: 'an emulated kernel (flashproof emulate list)',
    completes: 'kernel-model',
    required: {
      oneOf: ['exec', 'launch'],
      says: 'there is no kernel to check; name one with --kernel <model>, --exec "<command>" or --launch <file>',
    },
    excludes: [
      { options: ['exec'], says: '--kernel and --exec name two kernels; leave out one' },
      { options: ['launch'], says: '--kernel and --launch name two kernels; leave out one' },
    ],
  },
  exec: {
    argument: '<command>',
    description: 'a live kernel over the process protocol',
    excludes: [
      {
        options: ['variant'],
        says: '--variant is a bug of a kernel model; name one with --kernel',
      },
    ],
  },
  launch: {
    argument: '<file>',
    description: 'a compiled kernel, by a launch file that is a template',
    excludes: [
      { options: ['exec'], says: '--exec and --launch name two kernels; leave out one' },
      {
        options: ['variant'],
        says: '--variant is a bug of a kernel model; name one with --kernel',
      },
    ],
  },
  variant: {
    argument: '<id>',
    description: 'the emulated kernel with one bug: --set variant=<id>',
    completes: 'variant',
  },
});

/** The option for the time of an answer. */
export const timeoutOption = {
  argument: '<seconds>',
  description: 'how long one answer of --exec may take',
  initial: '10',
} as const satisfies OptionRow;

/** The options of commands whose work can be divided and resumed. */
export const campaignOptions = optionRows({
  shard: {
    argument: '<i/n>',
    description: "do one of n shares of the work, from 1/n; auto: the scheduler's",
    completes: ['auto'],
  },
  shardCount: {
    argument: '<n>',
    description: 'of how many shards the scheduler numbers this one',
  },
  journal: { argument: '<file>', description: 'keep what is done in a file, and go on from it' },
});

/** The campaign options as they are given. */
export type CampaignOptions = ParsedOptions<typeof campaignOptions>;

/** The text on them below the help of each such command. */
export const campaignDetails = `
Shards together try exactly what one run tries; flashproof merge joins what
their --json or --journal writes to the report of one run. --shard auto takes
the shard from JOB_COMPLETION_INDEX (Kubernetes), SLURM_ARRAY_TASK_ID,
CI_NODE_INDEX (GitLab) or CIRCLE_NODE_INDEX, and how many there are from the
scheduler, --shard-count or FLASHPROOF_SHARDS. With --journal, the same command
again goes on where it was stopped, even by SIGKILL.
`;

/** The topic of divided work. */
export const campaignTopic = {
  name: 'campaigns',
  title: 'Divided and resumed work',
  options: ['shard', 'shardCount', 'journal'],
  text: campaignDetails,
} as const;
