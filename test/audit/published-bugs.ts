import { exp2Coefficients } from '../../kernels/index.js';
import { formats, round } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import {
  filledProblem,
  sumNormalNumbers,
  uniformNumbers,
  type ProblemFrame,
} from '../setup/problems.js';
import type { OnlineKernel } from './online-kernel.js';

/** A bug of an attention kernel, on a problem that shows it. */
export interface PublishedBug {
  readonly problem: () => Problem;
  readonly kernel: Partial<OnlineKernel>;
  /** The causes that the diagnosis may name first; empty when no sound audit can see the bug here. */
  readonly causes: readonly string[];
  /** Whether the LSE is kept from the audit. */
  readonly withoutLse?: boolean;
}

const usual = { heads: 2, queries: 96, keys: 256, dim: 32 } as const;

interface Fills {
  readonly q?: (normal: number, row: number, column: number) => number;
  readonly k?: (normal: number, row: number, column: number) => number;
  readonly v?: (normal: number, row: number, column: number) => number;
}

function randomProblem(
  sizes: Partial<ProblemFrame> = {},
  changes: Partial<Problem> = {},
  fills: Fills = {},
): Problem {
  const frame = { ...usual, ...sizes };
  const { queries, keys, dim } = frame;
  const normal = sumNormalNumbers(uniformNumbers(20_261_121));
  const filled =
    (rows: number, fill: NonNullable<Fills['q']> = (x) => x) =>
    (i: number) =>
      fill(normal(), Math.floor(i / dim) % rows, i % dim);
  return filledProblem(
    frame,
    { q: filled(queries, fills.q), k: filled(keys, fills.k), v: filled(keys, fills.v) },
    changes,
  );
}

/** Scores that rise from block to block in the order of visits, so that every rescale counts. */
const rising: Fills = { q: (x) => 2 * x, k: (x, row) => x * (1 + (255 - row) / 128) };

const square: Partial<ProblemFrame> = { queries: 192, keys: 192 };

/** FlashAttention-4's cubic for 2^x with one coefficient changed. */
function polynomial(change: Partial<Record<1 | 2 | 3, number>>): (x: number) => number {
  const [c0, c1, c2, c3] = exp2Coefficients[3] as [number, number, number, number];
  const at = (power: 1 | 2 | 3, value: number) => value + (change[power] ?? 0);
  return (x) => {
    const whole = Math.floor(x);
    const f = x - whole;
    return (c0 + f * (at(1, c1) + f * (at(2, c2) + f * at(3, c3)))) * 2 ** whole;
  };
}

const tile = 64;

/** Bugs that were published with real kernels, and bugs that every suite should kill, by name. */
export const publishedBugs: Readonly<Record<string, PublishedBug>> = {
  'stale zero maximum after a masked first tile': {
    problem: () =>
      randomProblem(
        { ...square, heads: 1, kvHeads: 1 },
        { causal: true },
        {
          q: (x, row) => (row % 3 === 0 ? -40 : 0.1) + 0.1 * x,
          k: (x) => 1 + 0.1 * x,
        },
      ),
    kernel: {
      maximum: (before, ofBlock) =>
        Math.max(before === -Infinity && ofBlock === -Infinity ? 0 : before, ofBlock),
    },
    causes: ['stale-zero-maximum'],
  },
  'fp8: a lazy rescale saturates P': {
    problem: () => randomProblem({ format: 'e4m3' }, {}, rising),
    kernel: {
      offset: 8,
      maximum: (before, ofBlock) =>
        before !== -Infinity && (ofBlock - before) * Math.LOG2E <= 4
          ? before
          : Math.max(before, ofBlock),
    },
    causes: ['stale-maximum-saturates'],
  },
  'fp8: P underflows for want of a scale': {
    problem: () =>
      randomProblem(
        { format: 'e4m3', keys: 1024, queries: 16 },
        {},
        {
          q: () => 1,
          k: (x, row) => (row === 5 ? 1.25 : 0) + 0.01 * x,
          v: () => 1,
        },
      ),
    kernel: {},
    // The premises let a kernel round P to e4m3 without a scale, subnormals and all.
    causes: [],
  },
  'the polynomial biases the LSE of rows with few keys': {
    problem: () => randomProblem({ ...square }, { causal: true }),
    kernel: { exp2: polynomial({}) },
    // 8.8e-5 is what the premises grant the exponential.
    causes: [],
  },
  'scores overflow fp16 to infinity': {
    problem: () =>
      randomProblem(
        { format: 'fp16' },
        {},
        {
          q: (x, row) => (row % 7 === 2 ? 400 : 1) * x,
          k: (x) => 30 * x,
        },
      ),
    kernel: {
      outputFormat: 'fp16',
      score: (dot, { scale }) =>
        (Math.abs(dot) > formats.fp16.maxFinite ? Math.sign(dot) * Infinity : dot) * scale,
    },
    causes: ['score-overflow'],
  },
  'LSE of +∞ on rows without keys': {
    problem: () => randomProblem({ queries: 96, keys: 64 }, { causal: true }),
    kernel: { emptyRow: { out: 0, lse: Infinity } },
    causes: ['lse-of-empty-rows'],
  },
  'missing mask past the last key': {
    problem: () => randomProblem({ keys: 200 }),
    kernel: { paddedKeys: (keys) => Math.ceil(keys / tile) * tile },
    causes: ['tail-keys-counted'],
  },
  'O kept in bf16 under repeated maxima and V of one sign': {
    problem: () =>
      randomProblem(
        {},
        {},
        {
          k: (x, row) => (row % 4 === 0 ? 0.5 : 0.1 * x),
          q: () => 1,
          v: (x) => 2 + 0.1 * Math.abs(x),
        },
      ),
    kernel: {
      block: 16,
      keep: (partial) => round(formats.bf16, partial, { rounding: 'toward-zero' }),
    },
    causes: ['output-scale', 'unexplained'],
  },
  'row sum over part of the threads': {
    problem: () => randomProblem(),
    kernel: { inSum: (key) => key % 32 !== 7 },
    causes: ['row-sum-over-part-of-the-keys'],
  },
  'row sum over part of the threads, no LSE given': {
    problem: () => randomProblem(),
    kernel: { inSum: (key) => key % 16 !== 3 },
    causes: ['row-sum-over-part-of-the-keys'],
    withoutLse: true,
  },
  'row statistics read before they are written': {
    problem: () => randomProblem({}, {}, rising),
    kernel: { rescale: (factor, previous) => ({ output: previous, sum: factor }) },
    causes: ['late-rescale'],
  },
  ...Object.fromEntries(
    ([1, 2, 3] as const).map((power): [string, PublishedBug] => [
      `wrong digit in coefficient ${power} of the polynomial`,
      {
        problem: () => randomProblem(),
        kernel: { exp2: polynomial({ [power]: 0.01 }) },
        // The fraction counts from the kernel's own maximum, which the diagnosis does not know.
        causes: ['exp2-coefficient', 'unexplained'],
      },
    ]),
  ),
  'exponent off by one at exact integers': {
    problem: () => randomProblem(),
    kernel: { exp2: (x) => (Number.isInteger(x) ? 2 ** (x - 1) : 2 ** x) },
    causes: ['exponent-at-integers'],
  },
  'range reduction rounds to nearest': {
    problem: () => randomProblem(),
    kernel: {
      exp2: (x) => {
        const [c0, c1, c2, c3] = exp2Coefficients[3] as [number, number, number, number];
        const whole = Math.round(x);
        const f = x - whole;
        return (c0 + f * (c1 + f * (c2 + f * c3))) * 2 ** whole;
      },
    },
    causes: ['range-reduction-rounds-to-nearest'],
  },
  'P truncated': {
    problem: () => randomProblem({}, {}, { v: (x) => 1 + 0.1 * x }),
    kernel: { roundWeight: (p, format) => round(formats[format], p, { rounding: 'toward-zero' }) },
    causes: ['weights-truncated', 'unexplained'],
  },
  'rescale threshold with the wrong sign, fp8': {
    problem: () => randomProblem({ format: 'e4m3' }, {}, rising),
    kernel: {
      maximum: (before, ofBlock) =>
        before !== -Infinity && ofBlock > before ? before : Math.max(before, ofBlock),
    },
    causes: ['frozen-maximum', 'stale-maximum-saturates'],
  },
  'α on O but not on the row sum': {
    problem: () => randomProblem({}, {}, rising),
    kernel: { rescale: (factor) => ({ output: factor, sum: 1 }) },
    causes: ['sum-not-rescaled'],
  },
  'α on the row sum but not on O': {
    problem: () => randomProblem({}, {}, rising),
    kernel: { rescale: (factor) => ({ output: 1, sum: factor }) },
    causes: ['output-not-rescaled'],
  },
  'rescale of O skipped for half of the warps': {
    problem: () => randomProblem({}, {}, rising),
    kernel: {
      rescale: (factor, _, { query }) => ({ output: query % 64 < 32 ? 1 : factor, sum: factor }),
    },
    causes: ['output-not-rescaled', 'unexplained'],
  },
  'causal limit one too far': {
    problem: () => randomProblem(square, { causal: true }),
    kernel: { sees: (query, key) => key <= query + 1 },
    causes: ['causal-limit-late'],
  },
  'causal limit one short': {
    problem: () => randomProblem(square, { causal: true }),
    kernel: { sees: (query, key) => key < query },
    causes: ['causal-limit-early'],
  },
  'causal mask aligned to the top left': {
    problem: () => randomProblem({}, { causal: true }),
    kernel: { sees: (query, key) => key <= query },
    causes: ['mask-aligned-top-left'],
  },
  'window one key too wide': {
    problem: () => randomProblem(square, { window: { left: 20, right: 10 } }),
    kernel: { sees: (query, key) => key >= query - 21 && key <= query + 10 },
    causes: ['window-limit'],
  },
  'window one key too narrow': {
    problem: () => randomProblem(square, { window: { left: 20, right: 10 } }),
    kernel: { sees: (query, key) => key >= query - 20 && key <= query + 9 },
    causes: ['window-limit'],
  },
  'wrong kv head under grouped queries': {
    problem: () => randomProblem({ heads: 4, kvHeads: 2, queries: 48 }),
    kernel: { kvHead: (head, _, kvHeads) => head % kvHeads },
    causes: ['wrong-kv-head'],
  },
  "the neighbour's batch": {
    problem: () => randomProblem({ batch: 2, heads: 1, kvHeads: 1 }),
    kernel: { batch: (batch, batches) => (batch + 1) % batches },
    causes: ['neighbouring-batch', 'heads-permuted'],
  },
  'V tile read from the ring stage being refilled': {
    problem: () => randomProblem(),
    kernel: { valueSource: (key) => (key >= tile && key < 2 * tile ? key - tile : key) },
    causes: ['key-tile-stale-values'],
  },
  'K tile read from the ring stage being refilled': {
    problem: () => randomProblem(),
    kernel: { keySource: (key) => (key >= tile && key < 2 * tile ? key + tile : key) },
    causes: ['key-tile-stale-keys'],
  },
  'key tile skipped on one head': {
    problem: () => randomProblem({ heads: 3, kvHeads: 3 }),
    kernel: {
      inSum: (key, { head }) => !(head === 1 && key >= 128 && key < 192),
    },
    causes: ['key-tile-not-summed', 'row-sum-over-part-of-the-keys'],
  },
  "1/l taken before the last tile's sum": {
    problem: () => randomProblem(),
    kernel: { inSum: (_, { visit, visits }) => visit < visits - 1 },
    causes: ['key-tile-not-summed', 'row-sum-over-part-of-the-keys'],
  },
  'LSE in base 2': {
    problem: () => randomProblem(),
    kernel: { lse: (maximum, sum) => (maximum + Math.log(sum)) / Math.LN2 },
    causes: ['lse-base-2'],
  },
  'LSE keeps the shift of P': {
    problem: () => randomProblem(),
    kernel: { lse: (maximum, sum) => maximum + Math.log(sum) + 8 * Math.LN2 },
    causes: ['lse-offset'],
  },
  'scale applied twice': {
    problem: () => randomProblem({}, {}, { q: (x) => 3 * x }),
    kernel: { score: (dot, { scale }) => dot * scale * scale },
    causes: ['scale-twice'],
  },
  'scale not applied': {
    problem: () => randomProblem(),
    kernel: { score: (dot) => dot },
    causes: ['scale-missing'],
  },
  'log2 e in the scale twice': {
    problem: () => randomProblem(),
    kernel: { score: (dot, { scale }) => dot * scale * Math.LOG2E },
    causes: ['log2e-twice'],
  },
  'softcap ignored': {
    problem: () => randomProblem({}, { softcap: 2 }, { q: (x) => 3 * x }),
    kernel: { score: (dot, { scale }) => dot * scale },
    causes: ['softcap-ignored'],
  },
  'softcap before the scale': {
    problem: () => randomProblem({}, { softcap: 2 }, { q: (x) => 3 * x }),
    kernel: { score: (dot, { scale, softcap }) => scale * softcap! * Math.tanh(dot / softcap!) },
    causes: ['softcap-before-scale'],
  },
  'an empty split poisons the combine': {
    problem: () => randomProblem({ queries: 128, keys: 128 }, { causal: true }),
    kernel: {
      // Two splits of 64 keys: −∞ less −∞ where the second has none to see.
      normalise: (partial, sum) => partial / sum,
      sees: (_query, _key, correct) => correct,
      maximum: (before, ofBlock) => Math.max(before, ofBlock === -Infinity ? NaN : ofBlock),
    },
    causes: ['masked-tile'],
  },
  'no division by the row sum': {
    problem: () => randomProblem(),
    kernel: { normalise: (partial) => partial },
    causes: ['not-normalised'],
  },
  'a sink that the problem does not have': {
    problem: () => randomProblem({ keys: 48 }),
    kernel: { normalise: (partial, sum, maximum) => partial / (sum + Math.exp(-maximum)) },
    causes: ['zero-key-counted'],
  },
  'P truncated, fp8': {
    problem: () => randomProblem({ format: 'e4m3' }, {}, { v: (x) => 1 + 0.1 * x }),
    kernel: {
      offset: 8,
      roundWeight: (p, format) => round(formats[format], p, { rounding: 'toward-zero' }),
    },
    // As above: by 4 %, where a kernel that rounds P·2^7 to nearest has no such bias. With values near 1 a factor on the
    // output explains it as well.
    causes: ['weights-truncated', 'output-scale', 'unexplained'],
  },
};
