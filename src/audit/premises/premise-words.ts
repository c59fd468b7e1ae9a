import { formats, type FormatName } from '../../formats/index.js';
import {
  accumulatorFormats,
  divisionQualities,
  exponentialQualities,
  factorQualities,
  integerRoundings,
  operandFormats,
  operandGroups,
  outputRoundings,
  quantisedScalePlaces,
  rowSumOrders,
  scalePlaces,
  sharedMaxima,
  smoothedLseKinds,
  smoothings,
  valueFormats,
  type PremiseDeclaration,
} from '../../../kernels/index.js';

/** The name of one premise. */
export type PremiseName = keyof PremiseDeclaration;

/** One premise as users write it. */
interface PremiseWord {
  /** The values that may be declared, by name. */
  readonly values: readonly string[];
  /** The meaning of a number that may be declared too; null where none may. */
  readonly number: string | null;
  /** The subject of the premise, for help and documents. */
  readonly description: string;
  /** The words of a declared value in a report: "with scores in bf16". */
  readonly clause: (value: string) => string;
}

const formatNames = Object.keys(formats) as FormatName[];
const ofInput = (value: string) => (value === 'input' ? "the input's format" : value);

const rowsOf = (value: string) => (value === '1' ? 'each row' : `${value} rows`);

/** Every premise that can be declared: one vocabulary for flags, metadata, promises and the library. */
export const premiseWords: Readonly<Record<PremiseName, PremiseWord>> = {
  scores: {
    values: ['input', ...formatNames],
    number: null,
    description: 'the format that scores are written in',
    clause: (value) => `scores in ${ofInput(value)}`,
  },
  weights: {
    values: ['input', ...formatNames],
    number: null,
    description: 'the format that P is rounded to',
    clause: (value) => `P in ${ofInput(value)}`,
  },
  weightScale: {
    values: [],
    number:
      'what P, 1 at most, is multiplied by before it is rounded: 256 or 2^8 (an offset of 8), 448',
    description: 'the factor on P before it is rounded',
    clause: (value) => `P times ${value} before it is rounded`,
  },
  dequantized: {
    values: formatNames,
    number: null,
    description: 'the format that inputs are rounded to once their factors are applied',
    clause: (value) => `inputs dequantized to ${value}`,
  },
  scale: {
    values: scalePlaces,
    number: null,
    description: 'where the scale enters',
    clause: (value) =>
      ({
        scores: 'the scale on the scores',
        'folded-log2e': 'the scale folded with log2 e',
        'q-after-rounding': 'the scale on Q in fp32',
        'q-before-rounding': 'Q rounded after it is scaled',
        'root-of-both': 'Q and K rounded after they are scaled by its root',
      })[value] ?? value,
  },
  qkAccumulator: {
    values: accumulatorFormats,
    number: null,
    description: 'the format of the sums Q·K',
    clause: (value) => `sums Q·K in ${value}`,
  },
  pvAccumulator: {
    values: accumulatorFormats,
    number: null,
    description: 'the format of the sums P·V',
    clause: (value) => `sums P·V in ${value}`,
  },
  rowSum: {
    values: rowSumOrders,
    number: null,
    description: 'whether the row sum adds P before or after it is rounded',
    clause: (value) => `a row sum of P ${value.replace('-', ' ')}`,
  },
  partials: {
    values: formatNames,
    number: null,
    description: 'the format of partial results of splits',
    clause: (value) => `partial results in ${value}`,
  },
  outputRounding: {
    values: outputRoundings,
    number: null,
    description: 'how the output is rounded',
    clause: (value) => `an output rounded ${value === 'nearest' ? 'to nearest' : value}`,
  },
  maximum: {
    values: sharedMaxima,
    number: null,
    description: 'whose maximum scores are relative to',
    clause: (value) =>
      ({ row: 'a maximum for each row', group: 'a maximum shared by rows', none: 'no maximum' })[
        value
      ] ?? value,
  },
  scoreLimit: {
    values: [],
    number: 'scaled scores from here on are not promised to be right',
    description: 'how large scores may be',
    clause: (value) => `scores below ${value}`,
  },
  exponential: {
    values: exponentialQualities,
    number: 'its largest relative error, above 0 and below 1',
    description: 'the quality of the exponential',
    clause: (value) =>
      ({
        'correctly-rounded': 'a correctly rounded exponential',
        hardware: "the hardware's exponential",
      })[value] ?? `an exponential within ${value}`,
  },
  factors: {
    values: factorQualities,
    number: null,
    description: 'the quality of the factors of rescales',
    clause: (value) =>
      value === 'hardware'
        ? 'rescale factors as good as the hardware makes them'
        : 'rescale factors as good as the weights',
  },
  qk: {
    values: operandFormats,
    number: null,
    description: 'what the kernel itself quantises Q and K to',
    clause: (value) => `Q and K quantised to ${value}`,
  },
  qkGroups: {
    values: operandGroups,
    number: null,
    description: 'which rows share a factor',
    clause: (value) =>
      `a factor for ${value === 'blocks' ? 'blocks of rows' : 'the rows of a thread'}`,
  },
  qBlock: {
    values: [],
    number: 'rows of Q that share a factor; 1 for each token',
    description: 'rows of a block of Q',
    clause: (value) => `a factor for ${rowsOf(value)} of Q`,
  },
  kBlock: {
    values: [],
    number: 'rows of K that share a factor; 1 for each token',
    description: 'rows of a block of K',
    clause: (value) => `a factor for ${rowsOf(value)} of K`,
  },
  smoothing: {
    values: smoothings,
    number: null,
    description: 'what is subtracted before they are quantised',
    clause: (value) => (value === 'keys' ? 'K less its mean over the keys' : 'K as it is'),
  },
  qkRounding: {
    values: integerRoundings,
    number: null,
    description: 'how integers are rounded',
    clause: (value) =>
      `integers rounded ${value === 'half-even' ? 'half to even' : 'half away from zero'}`,
  },
  qkDivision: {
    values: divisionQualities,
    number: null,
    description: 'how quantisation divides',
    clause: (value) => (value === 'full' ? "the GPU's div.full" : 'divisions rounded once'),
  },
  qkScale: {
    values: quantisedScalePlaces,
    number: null,
    description: 'where the scale enters beside quantisation',
    clause: (value) =>
      value === 'folded' ? 'the scale and log2 e in Q before it' : 'the scale on the scores',
  },
  values: {
    values: valueFormats,
    number: null,
    description: 'what the kernel itself rounds V to',
    clause: (value) => `V in ${value}`,
  },
  pvTile: {
    values: [],
    number: 'keys of a sum P·V in pvAccumulator, which is added in fp32',
    description: 'keys whose P·V have a sum of their own',
    clause: (value) => `a sum P·V for ${value} keys`,
  },
  smoothedLse: {
    values: smoothedLseKinds,
    number: null,
    description: 'what the LSE of smoothed keys is of',
    clause: (value) =>
      value === 'corrected' ? "an LSE of K's own scores" : "an LSE of the smoothed K's scores",
  },
};

/** The names of all premises. */
export const premiseNames = Object.keys(premiseWords) as PremiseName[];

/** Premises whose numbers may be 1 and more. */
export const unboundedPremises: readonly string[] = [
  'scoreLimit',
  'weightScale',
  'qBlock',
  'kBlock',
  'pvTile',
] satisfies PremiseName[];

/** SageAttention 2's Q and K. Source: its quant_per_thread.py and core.py. */
const sageAttention2 = {
  qk: 'int8',
  qkGroups: 'threads',
  smoothing: 'keys',
  qkScale: 'scores',
  exponential: 'hardware',
} as const satisfies PremiseDeclaration;

/** Declarations that have a name. */
export const premisePresets: Readonly<
  Record<string, { readonly description: string; readonly premises: PremiseDeclaration }>
> = {
  fused: {
    description: 'any correct fused kernel: the default',
    premises: {},
  },
  eager: {
    description: 'matrix products and softmax of a framework, each writing the format of its input',
    premises: { scores: 'input', weights: 'input' },
  },
  'torch-math': {
    description: "PyTorch's math backend: eager, Q and K scaled by the root of the scale before",
    premises: { scores: 'input', weights: 'input', scale: 'root-of-both' },
  },
  'fp16-accumulate': {
    description: 'sums of products in fp16, as on consumer GPUs at full speed',
    premises: { qkAccumulator: 'fp16', pvAccumulator: 'fp16' },
  },
  'fa4-fp8': {
    description:
      "FlashAttention-4's fp8 path on Blackwell: fp32 sums, hardware and cubic exponentials",
    premises: { qkAccumulator: 'fp32', pvAccumulator: 'fp32', weightScale: 2 ** 8 },
  },
  'fa3-fp8': {
    description: "FlashAttention-3's fp8 path on Hopper: P raised by 2^8 in V's format",
    premises: { weights: 'input', weightScale: 2 ** 8 },
  },
  'flashinfer-fp8': {
    description: "FlashInfer's fp8 path on Hopper: P times 448, the largest number of e4m3",
    premises: { weights: 'e4m3', weightScale: 448 },
  },
  'sageattention2-fp16': {
    description: "SageAttention 2's int8 path with P·V in fp16: factors by thread, sums of 64 keys",
    premises: {
      ...sageAttention2,
      values: 'fp16',
      weights: 'fp16',
      pvAccumulator: 'fp16',
      pvTile: 64,
    },
  },
  'sageattention2-fp8': {
    description: "SageAttention 2's int8 path with P and V in e4m3: factors of V by column",
    premises: { ...sageAttention2, values: 'e4m3', weights: 'e4m3', weightScale: 448 },
  },
  'sageattention2-int4': {
    description: "SageAttention 2's int4 path: as sageattention2-fp8, Q and K in int4",
    premises: { ...sageAttention2, qk: 'int4', values: 'e4m3', weights: 'e4m3', weightScale: 448 },
  },
  polynomial: {
    description: 'a cubic exponential for weights and for the factors of rescales',
    premises: { factors: 'as-weights' },
  },
};
