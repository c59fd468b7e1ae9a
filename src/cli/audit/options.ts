import type { AuditContract } from '../../jobs/index.js';
import type { JudgedGradientName } from '../../audit/index.js';
import type { quantities, recurrentQuantities } from '../../problem/index.js';
import { commandRow } from '../options/command-rows.js';
import { flagOf, type OptionRow, optionRows, type ParsedOptions } from '../options/option-rows.js';
import { threadCount } from '../options/parse-values.js';
import {
  campaignOptions,
  campaignTopic,
  gradientPremiseHelp,
  premiseOption,
  premiseTopic,
  problemDescription,
  problemOptions,
  problemTopic,
  recurrentHelp,
  rowOptions,
  strictPremisesOption,
} from '../options/shared-options.js';

type RecurrentResultOption =
  (typeof recurrentQuantities)[keyof typeof recurrentQuantities]['option'];

type OutputOption = (typeof quantities)[number]['option'];

/** The options for the outputs to judge; the compiler reports a quantity without one. */
const outputOptions = {
  output: {
    argument: '<file[:tensor]>',
    description: "the kernel's O; an empty file part means the problem file",
  },
  lse: { argument: '<file[:tensor]>', description: "the kernel's LSE (natural logarithm)" },
} as const satisfies Readonly<Record<OutputOption, OptionRow>>;

/** The keys of the options for the outputs to judge. */
export const outputKeys = Object.keys(outputOptions) as readonly OutputOption[];

/** Excludes live kernels and kernel models from an option for gradients in files. */
const filesOnly = (flag: string) => [
  {
    options: ['exec', 'kernel'] as const,
    says: `${flag} is of gradients in files; leave out --exec and --kernel`,
  },
];

/** Excludes compiled kernels from an option for gradients in files: their gradients are their own. */
const namedInFiles = (flag: string) => [
  ...filesOnly(flag),
  { options: ['launch'] as const, says: `--launch makes its own gradients; leave out ${flag}` },
];

const gradientOptions = {
  dout: {
    argument: '<file[:tensor]>',
    description: "the gradient of O that the backward pass got (default: the file's dout)",
    excludes: [
      {
        options: ['exec'],
        says: '--dout is of gradients in files, or of --kernel; leave out --exec',
      },
    ],
  },
  dq: {
    argument: '<file[:tensor]>',
    description: "the kernel's dQ (default: the file's dq where no output is named; so dK and dV)",
    excludes: namedInFiles('--dq'),
  },
  dk: {
    argument: '<file[:tensor]>',
    description: "the kernel's dK",
    excludes: namedInFiles('--dk'),
  },
  dv: {
    argument: '<file[:tensor]>',
    description: "the kernel's dV",
    excludes: namedInFiles('--dv'),
  },
  dbias: {
    argument: '<file[:tensor]>',
    description: "the kernel's gradient of the bias, in the bias's own shape",
    excludes: namedInFiles('--dbias'),
  },
  dsink: {
    argument: '<file[:tensor]>',
    description: "the kernel's gradient of the sinks, [heads]",
    excludes: namedInFiles('--dsink'),
  },
} as const satisfies Readonly<Record<'dout' | JudgedGradientName, OptionRow>>;

/** The options for gradients. */
export const gradientKeys = Object.keys(
  gradientOptions,
) as readonly (keyof typeof gradientOptions)[];

/** An option for what a kernel of linear attention was given. */
function recurrentTensor(description: string) {
  return { argument: '<file[:tensor]>', description } as const satisfies OptionRow;
}

/** Excludes kernels that are run from an option for results in files. */
const resultsInFiles = (flag: string) => [
  {
    options: ['exec', 'kernel', 'launch'] as const,
    says: `${flag} is of results in files; leave out --exec, --kernel and --launch`,
  },
];

/** An option for a result of a kernel of linear attention. */
function recurrentResult(flag: string, description: string) {
  return {
    ...recurrentTensor(description),
    excludes: resultsInFiles(flag),
  } as const satisfies OptionRow;
}

/** The options of linear attention alone; the compiler reports a quantity without one. */
const recurrentOptions = {
  family: {
    argument: '<name>',
    description:
      'linear attention: linear, retention, simple-gla, gla, delta, gated-delta, kda, mamba2',
    completes: [
      ...['linear', 'retention', 'simple-gla', 'gla', 'delta', 'gated-delta', 'kda', 'mamba2'],
    ],
  },
  results: {
    argument: '<text>',
    description:
      'the prefix of all results, behind a file and a colon: chunk of chunk.out, chunk.dq, …',
    excludes: resultsInFiles('--results'),
  },
  finalState: recurrentResult('--final-state', "the kernel's state after the last token"),
  initialState: recurrentTensor("the state before the first (default: the file's initial_state)"),
  stateLayout: {
    argument: '<layout>',
    description: 'order of the dimensions of states: kv (the default), or vk, that of mamba2',
    completes: ['kv', 'vk'],
  },
  normalisation: {
    argument: '<x>',
    description: 'q and k are divided by √(Σ² + x); true for 1e-6, or none',
  },
  dg: recurrentResult('--dg', "the kernel's gradient of g"),
  dbeta: recurrentResult('--dbeta', "the kernel's gradient of beta"),
  ddt: recurrentResult('--ddt', "the kernel's gradient of dt, of mamba2"),
  da: recurrentResult('--da', "the kernel's gradient of A, of mamba2"),
  dd: recurrentResult('--dd', "the kernel's gradient of D, of mamba2"),
  ddtBias: recurrentResult('--ddt-bias', "the kernel's gradient of dt_bias, of mamba2"),
  dinitialState: recurrentResult('--dinitial-state', "the kernel's gradient of the initial state"),
  dfinalState: recurrentTensor('the gradient of the final state that the backward pass got'),
} as const satisfies Readonly<
  Record<
    | Exclude<RecurrentResultOption, 'output' | 'dq' | 'dk' | 'dv'>
    | ('family' | 'results' | 'initialState' | 'stateLayout' | 'normalisation' | 'dfinalState'),
    OptionRow
  >
>;

/** The contracts by which files are judged; literal, since a command line is read before anything is loaded. */
const contracts = [
  'attention',
  'recurrent',
  'prologue',
  'selection',
  'merge',
  'cache-write',
] as const satisfies readonly AuditContract[];

/** The options of links of the decode chain alone, and the choice of a contract. */
const linkOptions = {
  contract: {
    argument: '<name>',
    description: `what the file is of: ${contracts.join(', ')}`,
    completes: contracts,
  },
  note: {
    argument: '<text>',
    description: "a link's setting name=value, not the metadata's (repeatable)",
    repeats: true,
  },
} as const satisfies Readonly<Record<string, OptionRow>>;

/** Flags in a sentence: `--output, --lse and --exec`. */
function flagList(keys: readonly string[]): string {
  const flags = keys.map(flagOf);
  return [...flags.slice(0, -2), flags.slice(-2).join(' and ')].join(', ');
}

/** The options for partial results of a split problem. */
const splitOptions = {
  outPartial: {
    argument: '<file[:tensor]>',
    description: "O of each split, [splits, …] (default: the file's out_partial)",
    excludes: [
      {
        options: ['exec', 'kernel', 'launch'],
        says: '--out-partial is of outputs in files; leave out --exec, --kernel and --launch',
      },
    ],
  },
  lsePartial: {
    argument: '<file[:tensor]>',
    description: "the LSE of each split (default: the file's lse_partial)",
    excludes: [
      {
        options: ['exec', 'kernel', 'launch'],
        says: '--lse-partial is of outputs in files; leave out --exec, --kernel and --launch',
      },
    ],
  },
  splitBlock: {
    argument: '<keys>',
    description: 'keys of a block, of which each split has as many',
  },
  splitBoundaries: {
    argument: '<keys>',
    description: 'where splits begin and the last ends, as in 0,512,1024',
  },
} as const;

/** The options of `flashproof audit`. */
export const auditOptions = optionRows({
  ...outputOptions,
  lseBase: {
    argument: '<base>',
    description: 'of all LSEs that are read: e (the default) or 2',
    completes: ['e', '2'],
  },
  ...gradientOptions,
  ...splitOptions,
  ...recurrentOptions,
  ...linkOptions,
  exec: {
    argument: '<command>',
    description: 'run a live kernel over the process protocol instead',
    excludes: [
      {
        options: outputKeys,
        says: `--exec makes its own output; leave out ${flagList(outputKeys)}`,
      },
    ],
  },
  kernel: {
    argument: '<model>',
    description: 'run an emulated kernel instead (flashproof emulate list)',
    completes: 'kernel-model',
    excludes: [
      {
        options: [...outputKeys, 'exec'],
        says: `--kernel makes its own output; leave out ${flagList([...outputKeys, 'exec'])}, or leave out --kernel`,
      },
      {
        options: ['as'],
        says: '--kernel judges its output by its own arithmetic; leave out --as',
      },
    ],
  },
  launch: {
    argument: '<file>',
    description: 'run a compiled kernel (PTX) instead, by a launch file that is a template',
    excludes: [
      {
        options: [...outputKeys, 'exec', 'kernel'],
        says: `--launch makes its own output; leave out ${flagList([...outputKeys, 'exec', 'kernel'])}, or leave out --launch`,
      },
    ],
  },
  as: {
    argument: '<name>',
    description: "judge by a kernel model's own arithmetic, or by a preset's premises",
    completes: 'judged-name',
  },
  premise: premiseOption,
  strictPremises: strictPremisesOption,
  gradientPremise: {
    argument: '<name=value>',
    description: 'how the kernel computes gradients (repeatable; below)',
    repeats: true,
    completes: 'gradient-premise',
    excludes: filesOnly('--gradient-premise'),
  },
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
  threads: {
    argument: '<n>',
    description: 'threads of the audit and the emulated kernel (default: one per core)',
    parse: threadCount,
  },
  timeout: {
    argument: '<seconds>',
    description: 'how long the live kernel may take',
    initial: '60',
  },
  falseAlarmRate: {
    argument: '<p>',
    description: 'probability that the statistical tests fail a correct kernel',
    initial: '1e-9',
  },
  ...rowOptions,
  keys: {
    argument: '<n>',
    description: 'judge dK and dV of a sample of so many keys, or all (default: all)',
    excludes: filesOnly('--keys'),
  },
  ...problemOptions,
  tensor: {
    ...problemOptions.tensor,
    description:
      "a tensor under another name, as q=:query; a link's may be in another file (repeatable)",
  },
  techniques: { without: 'leave out the table of techniques' },
  identify: {
    description: 'tell which kernel model, or techniques, the output is of; which the gradients',
  },
  json: {
    argument: '<file>',
    description: 'write the report as JSON (- for standard output)',
    stdout: true,
  },
  junit: {
    argument: '<file>',
    description: 'write the report as JUnit XML (- for standard output)',
    stdout: true,
  },
  html: {
    argument: '<file>',
    description: 'write the report as one HTML page with plots (- for standard output)',
    stdout: true,
  },
  compare: {
    argument: '<name=file:tensor>',
    description: 'another output of the problem, judged beside the first (repeatable)',
    repeats: true,
  },
  ...campaignOptions,
  full: { description: 'print every test and number, the techniques and the inputs' },
  quiet: { short: 'q', description: 'print the verdict only' },
});

/** The options of `flashproof audit` as they are given. */
export type AuditCommandOptions = ParsedOptions<typeof auditOptions>;

/** The options that audits of linear attention alone take. */
export const recurrentKeys = Object.keys(
  recurrentOptions,
) as readonly (keyof typeof recurrentOptions)[];

/** The options that say what a link of the decode chain is. */
export const linkKeys = Object.keys(linkOptions) as readonly (keyof typeof linkOptions)[];

/** The options that audits of any contract take. */
const anyKeys: readonly (keyof typeof auditOptions)[] = [
  ...([
    'contract',
    'format',
    'tensor',
    'ignore',
    'falseAlarmRate',
    'threads',
    'json',
    'junit',
    'html',
  ] as const),
  ...(['full', 'quiet', 'shard', 'shardCount', 'journal'] as const),
];

/** The options of attention, of either kind, that no link of the decode chain takes. */
export const attentionKeys = (Object.keys(auditOptions) as (keyof typeof auditOptions)[]).filter(
  (key) => !anyKeys.includes(key) && !linkKeys.some((one) => one === key),
);

/** The options that audits of linear attention and of softmax attention take. */
const commonKeys: readonly (keyof typeof auditOptions)[] = [
  ...(['output', 'dout', 'dq', 'dk', 'dv', 'as', 'premise', 'strictPremises'] as const),
  ...(['scale', 'layout', 'cuSeqlens'] as const),
  ...(['exec', 'kernel', 'launch', 'set', 'timeout', 'rows', 'seed'] as const),
  ...anyKeys,
  ...linkKeys,
];

/** The options that audits of softmax attention alone take. */
export const softmaxKeys = (Object.keys(auditOptions) as (keyof typeof auditOptions)[]).filter(
  (key) => !commonKeys.includes(key) && !recurrentKeys.some((one) => one === key),
);

const examples = `
Examples:
  flashproof audit dump.safetensors --output :out --lse :lse
  flashproof audit dump.safetensors --output kernel.npy --causal --json out.json
  flashproof audit problem.safetensors --exec "python my_kernel.py"
  flashproof audit problem.safetensors --kernel fa4 --set rescale.threshold=4
  flashproof audit training.safetensors --kernel naive-fp32 --dout :do
  flashproof audit problem.safetensors --launch kernel.json
  flashproof audit dump.safetensors --as fa4 --set architecture=sm_100
  flashproof audit dump.safetensors --as eager
  flashproof audit dump.safetensors --premise scores=bf16,partials=bf16
  flashproof audit dump.safetensors --output :out --identify
  flashproof audit dump.safetensors --rows 4096 --seed 7
  flashproof audit training.safetensors --dout :do --dq :dq --dk :dk --dv :dv
  flashproof audit dump.safetensors --output :mine --compare old=:torch
  flashproof audit dump.safetensors "dumps/*.safetensors" --html audit.html
  flashproof audit linear.safetensors --results chunk --as fla

Exit status: 0 the kernel passes, 1 it fails, 2 the request is wrong; of several
files 2 where one cannot be judged, which does not keep the others from it.`;

/** `flashproof audit`. */
export const auditCommand = commandRow({
  name: 'audit',
  description: "judge a kernel's output, its LSE and its gradients against the oracle",
  arguments: [
    {
      syntax: '<problem...>',
      description: `${problemDescription}; several, or a pattern, for one report of all`,
      completes: 'path',
    },
  ],
  options: auditOptions,
  details: examples,
  topics: [
    problemTopic,
    premiseTopic,
    {
      name: 'gradients',
      title: 'Gradients',
      options: [...gradientKeys, 'gradientPremise', 'keys'],
      text: gradientPremiseHelp,
    },
    {
      name: 'splits',
      title: 'Partial results of split keys',
      options: Object.keys(splitOptions) as (keyof typeof splitOptions)[],
    },
    {
      name: 'recurrent',
      title: 'Linear attention and delta rules',
      options: recurrentKeys,
      text: recurrentHelp,
    },
    {
      name: 'chain',
      title: 'Links of the decode chain: prologue, selection, merge, cache-write',
      options: linkKeys,
    },
    {
      name: 'statistics',
      title: 'Seeds, rates, threads and times',
      options: ['seed', 'falseAlarmRate', 'techniques', 'threads', 'timeout', 'lseBase'],
    },
    campaignTopic,
  ],
});
