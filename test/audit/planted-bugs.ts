import { exp2Coefficients } from '../../kernels/index.js';
import { formats, round, type FormatName, type RoundingMode } from '../../src/formats/index.js';
import type { Problem, ProblemShape } from '../../src/problem/index.js';
import {
  filledProblem,
  uniformNumbers,
  type ProblemFrame,
  type Settings,
} from '../setup/problems.js';
import type { Place, PlantedKernel } from './planted-kernel.js';

/** The problems that bugs are planted on: [2 heads, 256, 64] N(0, 1), or what a bug needs instead. */
const problems = {
  plain: [{}],
  fp16: [{ format: 'fp16' }],
  causal: [{}, { causal: true }],
  window: [{}, { window: { left: 40, right: 20 } }],
  softcap: [{}, { softcap: 2 }],
  ragged: [{ keys: 250 }],
  late: [{ queries: 128 }, { causal: true }],
  grouped: [{ heads: 4, kvHeads: 2, queries: 128 }],
  batches: [{ batch: 2, queries: 128 }],
  'unit scale': [{}, { scale: 1 }],
  'narrow values': [{ vDim: 32 }],
} as const satisfies Record<string, Drawn>;

/** One of the problems that bugs are planted on. */
export type PlantedProblem = keyof typeof problems;

type Drawn = readonly [frame: Partial<ProblemFrame>, settings?: Settings];

/** Seeded, normal: Box and Muller's transform of a linear congruential generator's numbers. */
export function normalNumbers(seed: number): () => number {
  const drawn = uniformNumbers(seed);
  const uniform = () => drawn() + 2 ** -33;
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** A problem of that name, N(0, 1) by `seed`. */
export function plantedProblem(name: PlantedProblem, seed = 20_261_122): Problem {
  const [frame, settings]: Drawn = problems[name];
  const sizes = { heads: 2, queries: 256, keys: 256, dim: 64, ...frame };
  return filledProblem(sizes, normalNumbers(seed), settings);
}

/** A bug, as a change of a sound kernel. */
export interface PlantedBug {
  readonly family: string;
  /** Default: plain. */
  readonly on?: PlantedProblem;
  readonly kernel: Partial<PlantedKernel>;
  /** What the diagnosis may say is the cause, alone or among its equivalents, besides `unexplained`. */
  readonly causes: readonly string[];
}

const kept =
  (format: FormatName, rounding: RoundingMode = 'nearest-even') =>
  (x: number) =>
    round(formats[format], x, { rounding });

/** FlashAttention-4's cubic for 2^x with one coefficient changed. */
function polynomial(change: Partial<Record<0 | 1 | 2 | 3, number>>): (x: number) => number {
  const [c0, c1, c2, c3] = exp2Coefficients[3] as [number, number, number, number];
  const at = (power: 0 | 1 | 2 | 3, value: number) => value + (change[power] ?? 0);
  return (x) => {
    const whole = Math.floor(x);
    const f = x - whole;
    return (at(0, c0) + f * (at(1, c1) + f * (at(2, c2) + f * at(3, c3)))) * 2 ** whole;
  };
}

const scaledBy =
  (factor: (problem: Problem, place: Place) => number): PlantedKernel['score'] =>
  (dot, problem, _, place) => {
    const x = dot * factor(problem, place);
    return problem.softcap === null ? x : problem.softcap * Math.tanh(x / problem.softcap);
  };

/** A bug of the scale alone. */
const scale = (
  factor: (problem: Problem, place: Place) => number,
  causes: readonly string[],
  on: PlantedProblem = 'plain',
): PlantedBug => ({ family: 'scale', on, kernel: { score: scaledBy(factor) }, causes });

const dimOf = ({ q }: Problem) => q.shape.at(-1)!;

/** Elements of the output in another order: `from` gives the flat index to read. */
const moved =
  (from: (row: number, column: number, shape: ProblemShape) => readonly [number, number]) =>
  (out: Float64Array, _: Float64Array, shape: ProblemShape): void => {
    const before = out.slice();
    out.forEach((_x, i) => {
      const [row, column] = from(Math.floor(i / shape.vDim), i % shape.vDim, shape);
      out[i] = before[row * shape.vDim + column];
    });
  };

/** Rows changed afterwards. */
const onRows =
  (
    applies: (query: number, shape: ProblemShape) => boolean,
    change: (x: number) => number,
  ): PlantedKernel['afterwards'] =>
  (out, _, shape) =>
    out.forEach((x, i) => {
      if (applies(Math.floor(i / shape.vDim) % shape.queries, shape)) out[i] = change(x);
    });

/** The LSE changed afterwards. */
const lseOn =
  (change: (lse: number, query: number, row: number) => number): PlantedKernel['afterwards'] =>
  (_, lse, { queries }) =>
    lse.forEach((x, row) => (lse[row] = change(x, row % queries, row)));

const lastKeys =
  (count: number) =>
  (key: number, { keys }: Place) =>
    key >= keys - count && key < keys;

const tile = 64;
const inSecondTile = (key: number) => key >= tile && key < 2 * tile;

/** Kernels with one number kept in too short a format. */
const narrow: Readonly<Record<string, PlantedBug>> = {
  'scores kept in bf16': {
    family: 'format',
    kernel: { score: (dot, { scale }) => kept('bf16')(dot * scale) },
    causes: ['scores-narrow'],
  },
  'scores kept in fp16': {
    family: 'format',
    kernel: { score: (dot, { scale }) => kept('fp16')(dot * scale) },
    causes: ['scores-narrow'],
  },
  'scores truncated to bf16': {
    family: 'format',
    kernel: { score: (dot, { scale }) => kept('bf16', 'toward-zero')(dot * scale) },
    causes: ['scores-narrow'],
  },
  'scores kept in bf16 with log2 e in the scale': {
    family: 'format',
    kernel: {
      score: (dot, { scale }) => kept('bf16')(dot * scale * Math.LOG2E) * Math.LN2,
    },
    causes: ['scores-narrow'],
  },
  'exponents kept in bf16': {
    family: 'format',
    kernel: { exponent: kept('bf16') },
    causes: ['exponent-narrow'],
  },
  'exponents kept in fp16': {
    family: 'format',
    kernel: { exponent: kept('fp16') },
    causes: ['exponent-narrow'],
  },
  'Q rounded after its scale': {
    family: 'format',
    kernel: {
      query: (x, { scale }) => kept('bf16')(x * scale * Math.LOG2E),
      score: (dot) => dot * Math.LN2,
    },
    causes: ['scaled-query-narrow'],
  },
  'QKᵀ summed in fp16': {
    family: 'format',
    kernel: { product: kept('fp16') },
    causes: ['product-narrow'],
  },
  'QKᵀ summed in bf16': {
    family: 'format',
    kernel: { product: kept('bf16') },
    causes: ['product-narrow'],
  },
  'P kept in bf16 beside fp16 values': {
    family: 'format',
    on: 'fp16',
    kernel: { roundWeight: kept('bf16') },
    causes: ['weights-narrow'],
  },
  'P kept in e4m3': {
    family: 'format',
    kernel: { roundWeight: kept('e4m3'), offset: 8 },
    causes: ['weights-narrow'],
  },
  'P truncated': {
    family: 'format',
    kernel: { roundWeight: (p, format) => kept(format, 'toward-zero')(p) },
    causes: ['weights-truncated'],
  },
  'accumulator kept in bf16 between tiles': {
    family: 'format',
    kernel: { keep: kept('bf16') },
    causes: ['accumulator-narrow'],
  },
  'accumulator kept in fp16 between tiles': {
    family: 'format',
    kernel: { keep: kept('fp16') },
    causes: ['accumulator-narrow'],
  },
  'accumulator of fp16 for every product': {
    family: 'format',
    on: 'fp16',
    kernel: { accumulate: kept('fp16') },
    causes: ['accumulator-narrow'],
  },
  'accumulator of bf16 for every product': {
    family: 'format',
    kernel: { accumulate: kept('bf16') },
    causes: ['accumulator-narrow'],
  },
  'row sum of bf16 for every key': {
    family: 'format',
    kernel: { addToSum: kept('bf16') },
    causes: ['row-sum-narrow'],
  },
  'row sum of fp16 for every key': {
    family: 'format',
    kernel: { addToSum: kept('fp16') },
    causes: ['row-sum-narrow'],
  },
  'row sum kept in bf16 between tiles': {
    family: 'format',
    kernel: { keepSum: kept('bf16') },
    causes: ['row-sum-narrow'],
  },
  'row sum kept in fp16 between tiles': {
    family: 'format',
    kernel: { keepSum: kept('fp16') },
    causes: ['row-sum-narrow'],
  },
  'reciprocal in bf16': {
    family: 'format',
    kernel: { normalise: (partial, sum) => partial * kept('bf16')(1 / sum) },
    causes: ['reciprocal-narrow'],
  },
  'reciprocal in fp16': {
    family: 'format',
    kernel: { normalise: (partial, sum) => partial * kept('fp16')(1 / sum) },
    causes: ['reciprocal-narrow'],
  },
  'rescale factor in bf16': {
    family: 'format',
    kernel: {
      rescale: (factor) => ({ output: kept('bf16')(factor), sum: factor }),
    },
    causes: ['rescale-narrow'],
  },
  'partial results of 4 splits in bf16': {
    family: 'format',
    kernel: { splits: 4, partial: kept('bf16') },
    causes: ['partials-narrow'],
  },
  'partial results of 2 splits in bf16': {
    family: 'format',
    kernel: { splits: 2, partial: kept('bf16') },
    causes: ['partials-narrow'],
  },
  'partial results of 4 splits in fp16': {
    family: 'format',
    on: 'fp16',
    kernel: { splits: 4, partial: kept('fp16') },
    causes: ['partials-narrow'],
  },
  'tanh in bf16': {
    family: 'format',
    on: 'softcap',
    kernel: {
      score: (dot, { scale, softcap }) =>
        softcap! * kept('bf16')(Math.tanh((dot * scale) / softcap!)),
    },
    causes: ['tanh-narrow', 'scores-narrow'],
  },
  'tanh in fp16': {
    family: 'format',
    on: 'softcap',
    kernel: {
      score: (dot, { scale, softcap }) =>
        softcap! * kept('fp16')(Math.tanh((dot * scale) / softcap!)),
    },
    causes: ['tanh-narrow', 'scores-narrow'],
  },
  'output truncated to bf16': {
    family: 'format',
    kernel: { store: (x, format) => kept(format, 'toward-zero')(x) },
    causes: ['output-truncated'],
  },
  'output truncated to fp16': {
    family: 'format',
    on: 'fp16',
    kernel: { store: (x, format) => kept(format, 'toward-zero')(x) },
    causes: ['output-truncated'],
  },
  'fp16 output rounded to bf16 before': {
    family: 'format',
    on: 'fp16',
    kernel: { store: kept('bf16') },
    causes: ['output-rounded-twice'],
  },
  'bf16 output rounded to e4m3 before': {
    family: 'format',
    kernel: { store: kept('e4m3') },
    causes: ['output-rounded-twice'],
  },
  'LSE kept in bf16': {
    family: 'LSE',
    kernel: { afterwards: lseOn((lse) => kept('bf16')(lse)) },
    causes: ['lse-narrow'],
  },
  'LSE kept in fp16': {
    family: 'LSE',
    kernel: { afterwards: lseOn((lse) => kept('fp16')(lse)) },
    causes: ['lse-narrow'],
  },
};

const scales: Readonly<Record<string, PlantedBug>> = {
  'scale 1/√(d + 1)': scale((problem) => 1 / Math.sqrt(dimOf(problem) + 1), ['scale-factor']),
  'scale √2 too large': scale(({ scale }) => scale * Math.SQRT2, ['scale-factor']),
  'scale √2 too small': scale(({ scale }) => scale * Math.SQRT1_2, ['scale-factor']),
  'scale 1/√(2d)': scale((problem) => 1 / Math.sqrt(2 * dimOf(problem)), ['scale-factor']),
  'scale twice': scale(({ scale }) => scale * scale, ['scale-twice', 'scale-by-dimension']),
  'scale not applied': scale(() => 1, ['scale-missing']),
  'log2 e missing': scale(({ scale }) => scale * Math.LN2, ['log2e-missing']),
  'log2 e twice': scale(({ scale }) => scale * Math.LOG2E, ['log2e-twice']),
  'scale with log2 e rounded to bf16': scale(
    ({ scale }) => kept('bf16')(scale * Math.LOG2E) * Math.LN2,
    ['scale-factor'],
  ),
  'log2 e taken as 1.44': scale(({ scale }) => scale * 1.44 * Math.LN2, ['scale-factor']),
  'scale of the values’ dimension': scale(
    () => 1 / Math.sqrt(32),
    ['scale-by-value-dimension', 'scale-factor'],
    'narrow values',
  ),
  'scale 1 % too large on one head': scale(
    ({ scale }, { head }) => scale * (head === 1 ? 1.01 : 1),
    ['scale-factor'],
  ),
  'scale 0.4 % too small under a softcap': scale(
    ({ scale }) => 0.996 * scale,
    ['scale-factor'],
    'softcap',
  ),
  'softcap ignored': {
    family: 'scale',
    on: 'softcap',
    kernel: { score: (dot, { scale }) => dot * scale },
    causes: ['softcap-ignored'],
  },
  'softcap before the scale': {
    family: 'scale',
    on: 'softcap',
    kernel: { score: (dot, { scale, softcap }) => scale * softcap! * Math.tanh(dot / softcap!) },
    causes: ['softcap-before-scale'],
  },
  'ALiBi by the usual slopes': {
    family: 'score bias',
    kernel: {
      score: (dot, { scale }, key, { head, heads, query }) =>
        dot * scale - 2 ** ((-8 * (head + 1)) / heads) * Math.abs(query - key),
    },
    causes: ['alibi-unasked'],
  },
  'ALiBi of a small slope': {
    family: 'score bias',
    kernel: { score: (dot, { scale }, key, { query }) => dot * scale + 0.003 * (key - query) },
    causes: ['alibi-unasked'],
  },
  'ALiBi under a causal mask': {
    family: 'score bias',
    on: 'causal',
    kernel: {
      score: (dot, { scale }, key, { head, heads, query }) =>
        dot * scale - 2 ** ((-8 * (head + 1)) / heads) * (query - key),
    },
    causes: ['alibi-unasked'],
  },
  'a sink with a logit of its own per head': {
    family: 'score bias',
    kernel: {
      normalise: (partial, sum, maximum, { head }) =>
        partial / (sum + Math.exp((head === 0 ? 1.3 : 2.1) - maximum)),
      lse: (maximum, sum, { head }) =>
        maximum + Math.log(sum + Math.exp((head === 0 ? 1.3 : 2.1) - maximum)),
    },
    causes: ['sink-unasked'],
  },
  'a sink of logit 0': {
    family: 'score bias',
    kernel: {
      normalise: (partial, sum, maximum) => partial / (sum + Math.exp(-maximum)),
      lse: (maximum, sum) => maximum + Math.log(sum + Math.exp(-maximum)),
    },
    causes: ['zero-key-counted', 'sink-unasked'],
  },
};

const exponentials: Readonly<Record<string, PlantedBug>> = {
  ...Object.fromEntries(
    ([1, 2, 3] as const).map((power): [string, PlantedBug] => [
      `wrong digit in coefficient ${power} of the polynomial`,
      {
        family: 'exponential',
        kernel: { exp2: polynomial({ [power]: 0.005 }) },
        causes: ['exp2-coefficient'],
      },
    ]),
  ),
  'coefficient 1 wrong, blocks of 128': {
    family: 'exponential',
    kernel: { exp2: polynomial({ 1: -0.01 }), block: 128, order: 'first to last' },
    causes: ['exp2-coefficient'],
  },
  'exponent off by one at integers': {
    family: 'exponential',
    kernel: { exp2: (x) => (Number.isInteger(x) ? 2 ** (x - 1) : 2 ** x) },
    causes: ['exponent-at-integers'],
  },
  'range reduction rounds to nearest': {
    family: 'exponential',
    kernel: {
      exp2: (x) => {
        const whole = Math.round(x);
        return cubicAt(x - whole) * 2 ** whole;
      },
    },
    causes: ['range-reduction-rounds-to-nearest'],
  },
};

function cubicAt(f: number): number {
  const [c0, c1, c2, c3] = exp2Coefficients[3] as [number, number, number, number];
  return c0 + f * (c1 + f * (c2 + f * c3));
}

const places: Readonly<Record<string, PlantedBug>> = {
  'columns 5 and 6 swapped': {
    family: 'columns',
    kernel: { afterwards: moved((row, c) => [row, c === 5 ? 6 : c === 6 ? 5 : c]) },
    causes: ['columns-permuted'],
  },
  'columns 3 and 40 swapped on one head': {
    family: 'columns',
    kernel: {
      afterwards: moved((row, c, { queries }) => [
        row,
        row < queries ? c : c === 3 ? 40 : c === 40 ? 3 : c,
      ]),
    },
    causes: ['columns-permuted'],
  },
  'columns rotated by 8 in each 16': {
    family: 'columns',
    kernel: { afterwards: moved((row, c) => [row, c - (c % 16) + (((c % 16) + 8) % 16)]) },
    causes: ['columns-permuted'],
  },
  'columns interleaved': {
    family: 'columns',
    kernel: {
      afterwards: moved((row, c, { vDim }) => [row, (c % 2) * (vDim / 2) + Math.floor(c / 2)]),
    },
    causes: ['columns-permuted'],
  },
  'the last 8 columns not written': {
    family: 'columns',
    kernel: {
      afterwards: (out, _, { vDim }) =>
        out.forEach((_x, i) => {
          if (i % vDim >= vDim - 8) out[i] = 0;
        }),
    },
    causes: ['columns-not-written'],
  },
  'two rows swapped': {
    family: 'rows',
    kernel: {
      afterwards: moved((row, c) => [row === 40 ? 41 : row === 41 ? 40 : row, c]),
    },
    causes: ['rows-permuted'],
  },
  'rows rotated by 8 in each 32': {
    family: 'rows',
    kernel: { afterwards: moved((row, c) => [row - (row % 32) + (((row % 32) + 8) % 32), c]) },
    causes: ['rows-permuted'],
  },
  'the last 16 rows stale': {
    family: 'tail',
    kernel: {
      afterwards: moved((row, c, { queries }) => [
        row % queries >= queries - 16 ? row - 64 : row,
        c,
      ]),
    },
    causes: ['rows-permuted'],
  },
  'the last 16 rows zero': {
    family: 'tail',
    kernel: {
      afterwards: onRows(
        (query, { queries }) => query >= queries - 16,
        () => 0,
      ),
    },
    causes: ['rows-not-written', 'last-query-tile-not-written'],
  },
  'the last row zero': {
    family: 'tail',
    kernel: {
      afterwards: onRows(
        (query, { queries }) => query === queries - 1,
        () => 0,
      ),
    },
    causes: ['last-query-not-written', 'rows-not-written'],
  },
  'V of the last 16 keys zero': {
    family: 'tail',
    kernel: { valueSource: (key, place) => (lastKeys(16)(key, place) ? -1 : key) },
    causes: ['key-tile-not-accumulated', 'key-tile-zero-values'],
  },
  'K of the last 16 keys zero': {
    family: 'tail',
    kernel: { keySource: (key, place) => (lastKeys(16)(key, place) ? -1 : key) },
    causes: ['key-tile-zero-keys'],
  },
  'K and V of the last 32 keys zero': {
    family: 'tail',
    kernel: {
      keySource: (key, place) => (lastKeys(32)(key, place) ? -1 : key),
      valueSource: (key, place) => (lastKeys(32)(key, place) ? -1 : key),
    },
    causes: ['key-tile-zero'],
  },
  'V of the last 32 keys stale': {
    family: 'tail',
    kernel: { valueSource: (key, place) => (lastKeys(32)(key, place) ? key - 32 : key) },
    causes: ['key-tile-stale-values'],
  },
  'keys of zeros counted past the last': {
    family: 'tail',
    on: 'ragged',
    kernel: { paddedKeys: (keys) => Math.ceil(keys / tile) * tile },
    causes: ['tail-keys-counted'],
  },
  'last partial tile dropped': {
    family: 'tail',
    on: 'ragged',
    kernel: { paddedKeys: (keys) => keys - (keys % tile) },
    causes: ['last-tile-dropped', 'key-tile-missing'],
  },
  'one warp 1 % too large': {
    family: 'warp',
    kernel: {
      afterwards: onRows(
        (query) => query % 128 >= 32 && query % 128 < 64,
        (x) => x * 1.01,
      ),
    },
    causes: ['output-scale'],
  },
  'one warp of 16 rows half as large': {
    family: 'warp',
    kernel: {
      afterwards: onRows(
        (query) => query % 64 >= 16 && query % 64 < 32,
        (x) => x / 2,
      ),
    },
    causes: ['output-scale'],
  },
  'one warp leaves out the last tile': {
    family: 'warp',
    kernel: { sees: (key, correct, { query }) => correct && !(query % 128 < 32 && key >= 192) },
    causes: ['key-tile-missing'],
  },
  'one warp does not rescale O': {
    family: 'warp',
    kernel: {
      rescale: (factor, _, { query }) => ({ output: query % 128 < 32 ? 1 : factor, sum: factor }),
    },
    causes: ['output-not-rescaled'],
  },
  'one warp of 16 rows reads stale V': {
    family: 'warp',
    kernel: {
      valueSource: (key, { query }) => (query % 64 < 16 && inSecondTile(key) ? key - tile : key),
    },
    causes: ['key-tile-stale-values'],
  },
};

const lses: Readonly<Record<string, PlantedBug>> = {
  'LSE in base 2': {
    family: 'LSE',
    kernel: { lse: (maximum, sum) => (maximum + Math.log(sum)) / Math.LN2 },
    causes: ['lse-base-2'],
  },
  'LSE keeps a shift by 2^8': {
    family: 'LSE',
    kernel: { lse: (maximum, sum) => maximum + Math.log(sum) + 8 * Math.LN2 },
    causes: ['lse-offset'],
  },
  'LSE 0.001 too high on a tile of queries': {
    family: 'LSE',
    kernel: { afterwards: lseOn((lse, query) => (query >= 64 && query < 128 ? lse + 0.001 : lse)) },
    causes: ['lse-offset'],
  },
  'LSE in base 2 on one head': {
    family: 'LSE',
    kernel: {
      lse: (maximum, sum, { head }) => (maximum + Math.log(sum)) / (head === 1 ? Math.LN2 : 1),
    },
    causes: ['lse-base-2'],
  },
  'LSE is the maximum alone': {
    family: 'LSE',
    kernel: { lse: (maximum) => maximum },
    causes: ['lse-maximum-only'],
  },
  'LSE without the maximum': {
    family: 'LSE',
    kernel: { lse: (_, sum) => Math.log(sum) },
    causes: ['lse-without-maximum'],
  },
  'LSE with the maximum of unscaled scores': {
    family: 'LSE',
    kernel: { lse: (maximum, sum) => maximum * 8 + Math.log(sum) },
    causes: ['lse-maximum-unscaled'],
  },
  'LSE of a wrong sign': {
    family: 'LSE',
    kernel: { lse: (maximum, sum) => -(maximum + Math.log(sum)) },
    causes: ['lse-sign'],
  },
  'LSE of neighbouring rows': {
    family: 'LSE',
    kernel: {
      afterwards: (_, lse, { queries }) => {
        const before = lse.slice();
        lse.forEach((_x, row) => (lse[row] = row % queries === 0 ? before[row] : before[row - 1]));
      },
    },
    causes: ['lse-rows-permuted'],
  },
  'LSE not written on the last 32 rows': {
    family: 'LSE',
    kernel: { afterwards: lseOn((lse, query) => (query >= 224 ? 0 : lse)) },
    causes: ['lse-not-written'],
  },
};

const masks: Readonly<Record<string, PlantedBug>> = {
  'causal mask missing': {
    family: 'mask',
    on: 'causal',
    kernel: { sees: () => true },
    causes: ['causal-mask-missing'],
  },
  'causal limit one too far': {
    family: 'mask',
    on: 'causal',
    kernel: { sees: (key, _, { query }) => key <= query + 1 },
    causes: ['causal-limit-late'],
  },
  'causal limit one short': {
    family: 'mask',
    on: 'causal',
    kernel: { sees: (key, _, { query }) => key < query },
    causes: ['causal-limit-early'],
  },
  'causal limit one short, fewer queries than keys': {
    family: 'mask',
    on: 'late',
    kernel: { sees: (key, _, { query, queries, keys }) => key < query + keys - queries },
    causes: ['causal-limit-early'],
  },
  'causal mask aligned to the top left': {
    family: 'mask',
    on: 'late',
    kernel: { sees: (key, _, { query }) => key <= query },
    causes: ['mask-aligned-top-left'],
  },
  'causal mask that was not asked for': {
    family: 'mask',
    kernel: { sees: (key, _, { query }) => key <= query },
    causes: ['causal-mask-unasked'],
  },
  'window one key too wide': {
    family: 'mask',
    on: 'window',
    kernel: { sees: (key, _, { query }) => key >= query - 41 && key <= query + 20 },
    causes: ['window-limit'],
  },
  'window ignored on the left': {
    family: 'mask',
    on: 'window',
    kernel: { sees: (key, _, { query }) => key <= query + 20 },
    causes: ['window-ignored'],
  },
  'key 0 dropped': {
    family: 'mask',
    kernel: { sees: (key, correct) => correct && key !== 0 },
    causes: ['first-key-dropped'],
  },
  'last key dropped': {
    family: 'mask',
    kernel: { sees: (key, correct, { keys }) => correct && key !== keys - 1 },
    causes: ['last-key-dropped'],
  },
  'kv head h mod the number of kv heads': {
    family: 'heads',
    on: 'grouped',
    kernel: { kvHead: (head, _, kvHeads) => head % kvHeads },
    causes: ['wrong-kv-head'],
  },
  'the other batch entry': {
    family: 'heads',
    on: 'batches',
    kernel: { batch: (batch, batches) => (batch + 1) % batches },
    causes: ['neighbouring-batch'],
  },
  'heads and batch entries transposed': {
    family: 'heads',
    on: 'batches',
    kernel: {
      afterwards: moved((row, c, { batch, heads, queries }) => {
        const head = Math.floor(row / queries);
        return [((head % batch) * heads + Math.floor(head / batch)) * queries + (row % queries), c];
      }),
    },
    causes: ['heads-permuted'],
  },
};

const tiles: Readonly<Record<string, PlantedBug>> = {
  'V of one tile stale': {
    family: 'tile',
    kernel: { valueSource: (key) => (inSecondTile(key) ? key - tile : key) },
    causes: ['key-tile-stale-values'],
  },
  'K of one tile stale': {
    family: 'tile',
    kernel: { keySource: (key) => (inSecondTile(key) ? key + tile : key) },
    causes: ['key-tile-stale-keys'],
  },
  'one tile missing': {
    family: 'tile',
    kernel: { sees: (key, correct) => correct && !inSecondTile(key) },
    causes: ['key-tile-missing'],
  },
  'one tile counted twice': {
    family: 'tile',
    kernel: { score: (dot, { scale }, key) => dot * scale + (inSecondTile(key) ? Math.LN2 : 0) },
    causes: ['key-tile-twice'],
  },
  'one tile not in the row sum': {
    family: 'tile',
    kernel: { inSum: (key) => !inSecondTile(key) },
    causes: ['key-tile-not-summed', 'row-sum-over-part-of-the-keys'],
  },
  'the product of P and V missing for one tile on one head': {
    family: 'tile',
    kernel: { valueSource: (key, { head }) => (head === 0 && inSecondTile(key) ? -1 : key) },
    causes: ['key-tile-not-accumulated'],
  },
  'row sum over part of the threads': {
    family: 'row sum',
    kernel: { inSum: (key) => key % 32 !== 7 },
    causes: ['row-sum-over-part-of-the-keys'],
  },
  'row sum over half of the threads': {
    family: 'row sum',
    kernel: { inSum: (key) => key % 2 === 0 },
    causes: ['row-sum-over-part-of-the-keys'],
  },
  'row sum 0.9 % too large': {
    family: 'row sum',
    kernel: {
      normalise: (partial, sum) => partial / (1.009 * sum),
      lse: (maximum, sum) => maximum + Math.log(1.009 * sum),
    },
    causes: ['row-sum-scale'],
  },
  'output 0.3 % too large': {
    family: 'row sum',
    kernel: { normalise: (partial, sum) => (1.003 * partial) / sum },
    causes: ['output-scale'],
  },
  'no division': {
    family: 'row sum',
    kernel: { normalise: (partial) => partial },
    causes: ['not-normalised'],
  },
  'divided twice': {
    family: 'row sum',
    kernel: { normalise: (partial, sum) => partial / sum / sum },
    causes: ['normalised-twice'],
  },
  'O not rescaled': {
    family: 'rescale',
    kernel: { rescale: (factor) => ({ output: 1, sum: factor }) },
    causes: ['output-not-rescaled'],
  },
  'row sum not rescaled': {
    family: 'rescale',
    kernel: { rescale: (factor) => ({ output: factor, sum: 1 }) },
    causes: ['sum-not-rescaled'],
  },
  'nothing rescaled': {
    family: 'rescale',
    kernel: { rescale: () => ({ output: 1, sum: 1 }) },
    causes: ['never-rescaled'],
  },
  'O rescaled by the factor before': {
    family: 'rescale',
    kernel: { rescale: (factor, previous) => ({ output: previous, sum: factor }) },
    causes: ['late-rescale'],
  },
  'splits averaged': {
    family: 'splits',
    kernel: { splits: 4, splitWeight: (_, _all, splits) => 1 / splits },
    causes: ['splits-averaged'],
  },
  'splits weighted in base 2': {
    family: 'splits',
    kernel: { splits: 4, splitWeight: (lse, all) => 2 ** (lse - all) },
    causes: ['splits-base-2'],
  },
};

/** Every bug by its name. */
export const plantedBugs: Readonly<Record<string, PlantedBug>> = {
  ...scales,
  ...narrow,
  ...exponentials,
  ...places,
  ...lses,
  ...masks,
  ...tiles,
};

const secondHead = 'head 1';
const bothHeads = (first: number, last: number) =>
  `queries ${first} to ${last}, ${2 * (last - first + 1)} of 512 rows`;

/**
 * Where bugs are that are not everywhere, by what they do: rows that a bug leaves as they are, as one whose running
 * maximum never grows, are none of its place.
 */
export const plantedPlaces: Readonly<Partial<Record<string, string>>> = {
  'scale 1 % too large on one head': secondHead,
  'ALiBi under a causal mask': bothHeads(1, 255),
  'columns 5 and 6 swapped': 'columns 5 to 6',
  'columns 3 and 40 swapped on one head': 'head 1, columns 3 and 40',
  'columns interleaved': 'columns 1 to 62',
  'the last 8 columns not written': 'columns 56 to 63',
  'two rows swapped': 'head 0, queries 40 to 41, 2 of 256 rows',
  'the last 16 rows stale': bothHeads(240, 255),
  'the last 16 rows zero': bothHeads(240, 255),
  'the last row zero': 'query 255, 2 of 512 rows',
  'one warp 1 % too large': 'queries 32 to 63 and 160 to 191, 128 of 512 rows',
  'one warp of 16 rows half as large':
    'queries 16 to 31, 80 to 95, 144 to 159 and 208 to 223, 128 of 512 rows',
  'one warp leaves out the last tile': 'queries 0 to 31 and 128 to 159, 128 of 512 rows',
  'one warp does not rescale O': '96 of 512 rows',
  'one warp of 16 rows reads stale V':
    'queries 0 to 15, 64 to 79, 128 to 143 and 192 to 207, 128 of 512 rows',
  'LSE 0.001 too high on a tile of queries': bothHeads(64, 127),
  'LSE in base 2 on one head': secondHead,
  'LSE of neighbouring rows': bothHeads(1, 255),
  'LSE not written on the last 32 rows': bothHeads(224, 255),
  'causal mask missing': bothHeads(0, 254),
  'causal limit one too far': bothHeads(0, 254),
  'causal mask that was not asked for': bothHeads(0, 254),
  'window one key too wide': bothHeads(41, 255),
  'window ignored on the left': bothHeads(41, 255),
  'kv head h mod the number of kv heads': 'heads 1 to 2',
  'heads and batch entries transposed': '256 of 512 rows',
  'the product of P and V missing for one tile on one head': 'head 0',
  'O not rescaled': '404 of 512 rows',
  'row sum not rescaled': '404 of 512 rows',
  'nothing rescaled': '404 of 512 rows',
  'O rescaled by the factor before': '404 of 512 rows',
};
