import { encodeFromFloat64, formats, patternsOf } from '../../src/formats/index.js';
import {
  findTensorCoreArithmetic,
  hardwareExp2Error,
  hardwareExp2Flush,
  hardwareLog2Error,
  specialFunctionEvidence,
  tensorCoreEvidence,
} from '../../src/hardware/index.js';
import { problemShape, type Problem, type ProblemShape } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { largestScore32, roundoff32, type KernelArithmetic } from '../arithmetic.js';
import { kernelModel } from '../kernel-features.js';
import type { KernelModel, KernelSetting, KernelSettings } from '../kernel-model.js';
import { attributeLumped } from '../lumped-attribution.js';
import { normaliseError } from '../online-softmax/first-last-arithmetic.js';
import { unitExponentials } from '../online-softmax/lumped-model.js';
import type { ModelPromises, PremiseDeclaration } from '../promises.js';
import { quantisationOf, quantiseProblem } from '../quantised/index.js';
import { checkKeys, choiceValue } from '../setting-values.js';
import { largestRowNorm } from '../row-features.js';
import { halfArithmetic, sageForward, tileKeys, tileQueries } from './forward.js';

const name = 'sageattention';

const settings: readonly KernelSetting[] = [
  {
    key: 'smoothing',
    description: 'keys (default): K less its mean over the keys; none',
  },
  {
    key: 'padding',
    description: 'refused (default), or counted: keys that fill the last 64 count as scores of 0',
  },
];

const smoothings = ['keys', 'none'] as const;
const paddings = ['refused', 'counted'] as const;

interface Choices {
  readonly smoothing: (typeof smoothings)[number];
  readonly padding: (typeof paddings)[number];
}

function choicesOf(texts: KernelSettings): Choices {
  checkKeys(name, settings, texts);
  return {
    smoothing: choiceValue('smoothing', texts.get('smoothing') ?? 'keys', smoothings),
    padding: choiceValue('padding', texts.get('padding') ?? 'refused', paddings),
  };
}

/** The declaration of SageAttention 1. Source: sageattention 1.0.6. */
function premises(texts: KernelSettings): PremiseDeclaration {
  return {
    qk: 'int8',
    qBlock: tileQueries,
    kBlock: tileKeys,
    smoothing: choicesOf(texts).smoothing,
    smoothedLse: 'as-smoothed',
    values: 'fp16',
    weights: 'fp16',
    pvAccumulator: 'fp16',
    pvTile: tileKeys,
    exponential: 'hardware',
  };
}

/** @throws RequestError for sizes, masks and scales that the kernel has no path for */
function checkProblem(
  problem: Problem,
  { qkDim, vDim, keys }: ProblemShape,
  padding: string,
): void {
  if (problem.causal || problem.window !== null || problem.softcap !== null)
    throw new RequestError(`the ${name} model has no causal mask, window or softcap; leave it out`);
  if (qkDim !== vDim || (qkDim !== 64 && qkDim !== 128))
    throw new RequestError(
      `head dimensions ${qkDim} and ${vDim}; the ${name} model takes 64 or 128 for both`,
    );
  if (keys % tileKeys !== 0 && padding === 'refused')
    throw new RequestError(
      `${keys} keys; the kernel counts keys that fill the last ${tileKeys} as scores of 0, which is no attention: give a multiple of ${tileKeys}, or --set padding=counted`,
    );
  if (keys === 0) throw new RequestError(`no keys; the ${name} model takes ${tileKeys} or more`);
}

/** @throws RequestError for Q, K and V that are quantised in another way than the kernel's */
function checkQuantised({ q, k, v, scale }: Problem): void {
  for (const [tensor, { integers }] of Object.entries({ q, k }))
    if (integers !== 'int8')
      throw new RequestError(
        `${tensor} has factors and is no int8; the ${name} model takes bf16, fp16 or fp32, or int8 with factors`,
      );
  if (v.format !== 'fp16')
    throw new RequestError(`v is ${v.format}; beside int8 the ${name} model takes fp16`);
  if (scale !== Math.LN2)
    throw new RequestError(
      `scale is ${scale}; the kernel takes the scale and log2 e with the factors of int8 Q: fold them in, and say --scale ${Math.LN2}`,
    );
}

/** The problem that the kernel's tensor cores multiply, and the format of its output. */
function multiplied(problem: Problem, texts: KernelSettings) {
  const choices = choicesOf(texts);
  const shape = problemShape(problem);
  checkProblem(problem, shape, choices.padding);
  const isGiven = problem.q.scales !== undefined || problem.k.scales !== undefined;
  if (isGiven) checkQuantised(problem);
  const inner = isGiven
    ? problem
    : quantiseProblem(problem, quantisationOf(premises(texts))!).problem;
  const outFormat = isGiven ? 'fp16' : problem.q.format;
  return { shape, inner, outFormat, settings: { ...choices } };
}

const evidence = [
  `matrix products: Q·K of integers is exact; P·V ${tensorCoreEvidence(
    findTensorCoreArithmetic({
      instruction: 'wgmma',
      architecture: 'sm_90',
      a: 'fp16',
      accumulator: 'fp16',
    }),
  )}`,
  `ex2, rcp: ${specialFunctionEvidence.sm_90.label}`,
  'fp32 add, mul and fma: IEEE 754',
  'order of operations: [silicon] an H100, sageattention 1.0.6 by Triton 3.6, head dimension 64; its quantisation, compiled by Triton 3.9 and run on the emulated machine; the LSE is none of its outputs',
];

/** Queries of a piece. */
const pieceRows = tileQueries;

function prepared(problem: Problem, texts: KernelSettings) {
  const { shape, inner, outFormat, settings: chosen } = multiplied(problem, texts);
  const forward = sageForward(inner, shape);
  const { batch, heads, queries, vDim } = shape;
  const perHead = Math.ceil(queries / pieceRows);
  const rowsOf = (piece: number) => {
    const head = Math.floor(piece / perHead);
    const first = (piece % perHead) * pieceRows;
    return { first: head * queries + first, rows: Math.min(pieceRows, queries - first) };
  };
  return {
    shape,
    outFormat,
    settings: chosen,
    pieces: batch * heads * perHead,
    rowsOf,
    unrounded: (piece: number) => {
      const { first, rows } = rowsOf(piece);
      const head = Math.floor(first / queries);
      const results = forward(head, first - head * queries, rows);
      const out = new Float64Array(rows * vDim);
      results.forEach((row, i) => out.set(row.out, i * vDim));
      return { out, lse: Float64Array.from(results, ({ lse }) => lse) };
    },
  };
}

/** Sums of a tile in fp16, each rounded to nearest. */
const halfRoundoff = 2 ** -11;

function arithmetic(problem: Problem, texts: KernelSettings): KernelArithmetic {
  const { shape, inner, outFormat } = multiplied(problem, texts);
  const { keys, qkDim } = shape;
  const largest = Math.LN2 * largestRowNorm(inner.q, qkDim) * largestRowNorm(inner.k, qkDim);
  const { productsPerSum, alignedFractionBits } = halfArithmetic;
  const sums = Math.ceil(keys / tileKeys) * (tileKeys / productsPerSum);
  return {
    description: `${name}: Q and K in int8, P·V of ${tileKeys} keys in fp16`,
    // Sums of integers are exact; the product with the factor of Q rounds once.
    scores: { kind: 'any-order', perProduct: 0, ofOperands: 0, smallestOperand: 0 },
    scaleError: 0,
    largestScore: largestScore32,
    scoreLimit: Infinity,
    exponent: {
      ofDistance: roundoff32,
      ofScore: 2 * roundoff32 * (1 + 2 ** -6),
      common: roundoff32,
      ofSoftcap: 0,
      absolute: 2 ** -126,
    },
    exponential: {
      hardware: hardwareExp2Error,
      polynomial: 0,
      polynomialMean: 0,
      polynomialColumns: [],
    },
    maximum: {
      kind: 'unknown',
      shared: 'row',
      // The difference of maxima, each a rounded product, and the product with the factor.
      factors: { error: hardwareExp2Error + 4 * roundoff32 * (1 + 2 * largest), tileKeys },
    },
    weightFormat: 'fp16',
    overflow: 'fault',
    // The sum of a tile is added once for 64 keys; √(n / 64) of these roundings are a random walk's.
    values: { kind: 'any-order', perProduct: roundoff32 / 8, ofOperands: 0, smallestOperand: 0 },
    valueTiles: {
      keys: tileKeys,
      productsPerSum,
      roundoff: halfRoundoff + (productsPerSum + 1) * 2 ** -alignedFractionBits,
    },
    rowSumAdditions: 0,
    rowSumAddition: roundoff32,
    rowSumRounded: false,
    partials: 0,
    finish: {
      normalise: normaliseError,
      logarithm: hardwareLog2Error,
      elementwise: 2 * roundoff32,
    },
    outputFormat: outFormat,
    outputRounding: 'nearest',
    // Sums of a tile in fp16, whose weights are at most 1: no more than all keys' together.
    largestSum: formats.fp16.maxFinite,
    // One for each key and one more is what bounds of sums in any order count.
    underflow: { weights: hardwareExp2Flush, sums: (sums * 2 ** -25 + 2 ** -149) / (keys + 1) },
  };
}

/**
 * Laws of what becomes of a result where rows, keys or values change: all rows of a block share a factor, and all keys the mean
 * that is subtracted, so that other integers come out.
 */
const unpromisedLaws = [
  ...['query-order', 'value-scaling', 'nan-containment', 'decode-equals-prefill', 'padding'],
  ...['weights-sum-to-one', 'convexity', 'score-shift', 'key-permutation', 'key-splitting'],
  ...['repeated-keys', 'lse-monotone', 'unbiased', 'exact', 'means', 'same-expression'],
];

const promises: ModelPromises = {
  formats: ['fp16', 'bf16'],
  causal: false,
  window: false,
  emptyRows: false,
  scales: ['default'],
  dims: [64],
  lse: false,
  blockKeys: tileKeys,
  laws: Object.fromEntries(unpromisedLaws.map((id) => [id, 'none'])),
};

/** SageAttention 1's forward: Q and K in int8, which it quantises itself, P·V in fp16. */
export const sageAttentionModel: KernelModel = kernelModel({
  name,
  description: "SageAttention 1's forward: Q and K quantised to int8, P·V of 64 keys in fp16",
  settings,
  features: ['scales'],
  prepare: (problem, texts) => {
    const { unrounded, ...kernel } = prepared(problem, texts);
    const format = formats[kernel.outFormat];
    return {
      ...kernel,
      evidence,
      run: (piece) => {
        const { out, lse } = unrounded(piece);
        const { first, rows } = kernel.rowsOf(piece);
        return {
          firstRow: first,
          rows,
          out: patternsOf(encodeFromFloat64(format, out), format),
          lse: Float32Array.from(lse),
          rescales: null,
          counters: {},
        };
      },
    };
  },
  attribute: (problem, texts) => {
    const kernel = prepared(problem, texts);
    return attributeLumped(problem, { model: name, ...kernel });
  },
  arithmetic,
  premises,
  promises: () => promises,
  // A failed audit tells by itself of Q and K that look quantised.
  candidates: [],
  unlagged: null,
  exponentials: () => unitExponentials('ex2.approx.ftz.f32'),
  program: null,
  backward: null,
});
