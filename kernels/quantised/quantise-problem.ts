import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  tensorScales,
  type ScaleFactors,
  type Tensor,
} from '../../src/formats/index.js';
import { problemShape, type Problem, type ProblemShape } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { quantiseIntegers, type IntegerRule } from './integers.js';
import { microBlock, quantiseMicroBlocks } from './micro-blocks.js';
import type { OperandQuantisation, Quantisation } from './quantisation.js';
import { rowGroups } from './row-groups.js';
import { smoothKeys } from './smoothing.js';
import { quantiseValues } from './values.js';

/** What Q and K become on the way to their quantisation, and what they are quantised to: for kernels with a fault. */
export interface QuantisationSteps {
  /** fp32 numbers of Q or K that are quantised, [heads × rows × dim]; changed in place or returned anew. */
  readonly entering?: (name: 'q' | 'k', values: Float64Array) => Float64Array;
  /** K less its mean; default {@link smoothKeys}. */
  readonly smoothed?: typeof smoothKeys;
  readonly quantise?: typeof quantiseIntegers;
  readonly groups?: typeof rowGroups;
}

/** A problem as a quantising kernel multiplies it. */
export interface QuantisedProblem {
  /** Q̂, K̂ and V̂ in place of Q, K and V, and the scale that is left for the scores. */
  readonly problem: Problem;
  /** [batch × kv heads × dim]: what was subtracted from every key; null for nothing. */
  readonly mean: Float64Array | null;
}

/** The largest integer of a format. */
const largestIntegers = { int8: 127, int4: 7 } as const;
/** What SageAttention 2 adds to the factors of threads. */
const threadFloor = Math.fround(1e-7);
/** log2 e as SageAttention folds it into Q, in double precision with the scale. */
const foldedLog2e = 1.44269504;

/** The number that Q is multiplied by in fp32. */
function queryFactor({ scale }: Problem, operands: OperandQuantisation): number {
  return operands.scale === 'folded' ? Math.fround(scale * foldedLog2e) : 1;
}

function integerRule(operands: OperandQuantisation, elements: 'int8' | 'int4'): IntegerRule {
  const { groups, rounding, division } = operands;
  const floor = groups === 'threads' ? threadFloor : 0;
  return { largest: largestIntegers[elements], rounding, division, floor };
}

function withFactors(
  { format, shape }: Pick<Tensor, 'format' | 'shape'>,
  elements: Float64Array,
  factors: readonly Omit<ScaleFactors, 'format'>[],
): Tensor {
  const data = encodeFromFloat64(formats[format], elements);
  const all = factors.map((one): ScaleFactors => ({ format: 'fp32', ...one }));
  return { format, shape, data, scales: tensorScales({ format, shape }, all) };
}

/** Q or K as fp32 numbers, quantised. */
function quantised(
  name: 'q' | 'k',
  values: Float64Array,
  { problem, shape, operands, steps }: Context,
): Tensor {
  const tensorShape = problem[name].shape;
  const leading = tensorShape.slice(0, -2);
  const { qkDim } = shape;
  const { elements } = operands;
  const rows = name === 'q' ? shape.queries : shape.keys;
  if (elements === 'nvfp4') {
    const micro = quantiseMicroBlocks(values, qkDim);
    return withFactors({ format: 'e2m1', shape: tensorShape }, micro.elements, [
      {
        name: 'block_scale',
        values: micro.factors,
        shape: [...leading, rows, Math.ceil(qkDim / microBlock)],
        blocks: [...leading.map(() => 1), 1, microBlock],
      },
    ]);
  }
  const block = operands.blocks[name];
  const grouping = { groups: operands.groups, block };
  const groups = (steps.groups ?? rowGroups)(name, rows, grouping, problem.sequences);
  const rule = integerRule(operands, elements);
  const quantise = steps.quantise ?? quantiseIntegers;
  const heads = rows * qkDim === 0 ? 0 : values.length / (rows * qkDim);
  const integers = new Float64Array(values.length);
  // Where groups are blocks of every head alike, a factor is one for a block of rows; else one for each row.
  const isBlocks = operands.groups === 'blocks' && problem.sequences === undefined;
  const perHead = isBlocks ? Math.max(1, groups.count) : rows;
  const factors = new Float64Array(heads * perHead);
  for (let head = 0; head < heads; head++) {
    const from = head * rows * qkDim;
    const one = quantise(values.subarray(from, from + rows * qkDim), qkDim, groups, rule);
    integers.set(one.elements, from);
    if (isBlocks) factors.set(one.factors, head * perHead);
    else groups.of.forEach((group, row) => (factors[head * rows + row] = one.factors[group]));
  }
  const tensor = withFactors({ format: 'fp16', shape: tensorShape }, integers, [
    {
      name: 'descale',
      values: factors,
      shape: [...leading, perHead, 1],
      blocks: [...leading.map(() => 1), isBlocks ? block : 1, Math.max(1, qkDim)],
    },
  ]);
  return { ...tensor, integers: elements };
}

interface Context {
  readonly problem: Problem;
  readonly shape: ProblemShape;
  readonly operands: OperandQuantisation;
  readonly steps: QuantisationSteps;
}

/** @throws RequestError for inputs that a quantising kernel does not take */
function checkQuantisable({ q, k, softcap, bias, alibiSlopes, sink, rows }: Problem): void {
  for (const [name, { format, scales }] of Object.entries({ q, k }))
    if (!['bf16', 'fp16', 'fp32'].includes(format) || scales !== undefined)
      throw new RequestError(
        `${name} is ${scales === undefined ? format : `${format} with factors`}; a kernel that quantises Q and K itself takes bf16, fp16 or fp32: leave out what declares the quantisation, or give the inputs before it`,
      );
  if (softcap !== null || bias !== undefined || alibiSlopes !== undefined || sink !== undefined)
    throw new RequestError(
      'a softcap, a bias, ALiBi or a sink beside a kernel that quantises Q and K itself is not judged; leave out what declares the quantisation',
    );
  if (rows !== undefined)
    throw new RequestError(
      'a sample of rows does not say how the rows beside were quantised; judge all rows with --rows all',
    );
}

/**
 * A problem as a kernel multiplies it that quantises Q, K and V itself: the numbers that its tensor cores see, which are a
 * function of the inputs, with its factors as `scales`. Its scores are those of the kernel, less what smoothing takes from all
 * keys of a row alike.
 * @param steps replaces steps of the quantisation, for kernels with a fault
 * @throws RequestError for a problem that is not known to be quantised so
 */
export function quantiseProblem(
  problem: Problem,
  { operands, values }: Quantisation,
  steps: QuantisationSteps = {},
): QuantisedProblem {
  const shape = problemShape(problem);
  const v = values === null ? problem.v : quantiseValues(problem, shape, values);
  if (operands === null) return { problem: { ...problem, v }, mean: null };
  checkQuantisable(problem);
  const smoothed =
    operands.smoothing === 'keys' ? (steps.smoothed ?? smoothKeys)(problem, shape) : null;
  const factor = queryFactor(problem, operands);
  const queries = decodeTensor(problem.q);
  if (factor !== 1) queries.forEach((x, at) => (queries[at] = Math.fround(x * factor)));
  const entering = steps.entering ?? ((_, numbers) => numbers);
  const context = { problem, shape, operands, steps };
  return {
    problem: {
      ...problem,
      q: quantised('q', entering('q', queries), context),
      k: quantised('k', entering('k', smoothed?.keys ?? decodeTensor(problem.k)), context),
      v,
      // 2^x of a score that holds log2 e is e^(x·ln 2).
      scale: operands.scale === 'folded' ? Math.LN2 : problem.scale,
    },
    mean: smoothed?.mean ?? null,
  };
}
