import { formats, smallestNormal, smallestSubnormal } from '../../../src/formats/index.js';
import {
  drawnValues,
  fill,
  keyLength,
  largestMagnitude,
  normalValues,
  queryLength,
  valueLength,
} from '../values.js';
import { everyRow, rawScoreRows, type Regime } from './regime.js';

/** Negative scores: distances below zero that they are drawn at, their deviation, and their upper limit; nats. */
const below = { nearest: 64, farthest: 380, deviation: 1.5, highest: -40 };

/** Whole scores: the most channels with entries, the largest entry, and the largest score. */
const whole = { channels: 16, entry: 2, largestScore: 1024 };

/** Regimes of the levels of scores. */
export const levelRegimes = {
  'negative-scores': {
    description: 'every score of every row about 50 to 400 nats below zero, a few nats apart',
    provokes: 'a running maximum that starts at 0, or is 0 after a masked block',
    sizes: () => ({ queries: { min: 1 }, keys: { min: 1 } }),
    scales: ['default'],
    draw: ({ sizes, random }) => {
      const { qkDim } = sizes;
      const nats = random.integer(below.nearest, below.farthest);
      // The first channel has the level, the others the spread; alone, it has both.
      const level = Math.sqrt(nats * Math.sqrt(qkDim));
      const noise = Math.sqrt((below.deviation * Math.sqrt(qkDim)) / Math.sqrt(qkDim - 1 || 1));
      const spread = qkDim === 1 ? 1 / 16 : 0;
      const entry = () => noise * random.normal();
      return {
        q: fill(queryLength(sizes), (i) => (i % qkDim === 0 ? level : entry())),
        k: fill(keyLength(sizes), (i) =>
          i % qkDim === 0 ? -level * (1 + spread * random.uniform()) : entry(),
        ),
        v: fill(valueLength(sizes), random.normal),
      };
    },
    holds: (plain) =>
      everyRow(plain, (raw, scale) => raw.every((x) => x < 0 && x * scale <= below.highest)),
  },
  'integer-scores': {
    description: 'whole scores before a scale of ln 2, which times log2 e is 1 in fp32',
    provokes: 'exact powers of two: range reduction at whole numbers, where nothing is rounded',
    sizes: () => ({ queries: { min: 1 }, keys: { min: 1 } }),
    scales: ['odd'],
    draw: ({ sizes, random }) => {
      const { qkDim } = sizes;
      const first = random.integer(0, Math.max(qkDim - whole.channels, 0));
      const entry = (i: number) => {
        const channel = (i % qkDim) - first;
        const isUsed = channel >= 0 && channel < whole.channels;
        return isUsed ? random.integer(-whole.entry, whole.entry) : 0;
      };
      return { ...drawnValues(sizes, entry, entry, random.normal), scale: Math.LN2 };
    },
    holds: (plain) =>
      Math.fround(plain.scale * Math.LOG2E) === 1 &&
      everyRow(plain, (raw) =>
        raw.every((x) => Number.isInteger(x) && Math.abs(x) <= whole.largestScore),
      ),
  },
} satisfies Record<string, Regime>;

/** Largest |q| and |k| of the tiny regime, and largest |v| in smallest normal numbers. */
const largestTiny = { queryOrKey: 2, value: 16 };

/** The least ratio of an outlier's channel to every other one. */
const outlierRatio = 4;

/** The largest |q| and |k| near overflow where the format allows, and the range of raw scores. */
const nearOverflow = { entry: 1e5, leastScore: 2 * 65504, mostScore: 2 ** 100 };

/** The largest magnitude of each channel. */
function channelMagnitudes(values: Float64Array, dim: number): number[] {
  const largest = new Array<number>(dim).fill(0);
  values.forEach((x, i) => (largest[i % dim] = Math.max(largest[i % dim], Math.abs(x))));
  return largest;
}

function hasOutlierChannel(values: Float64Array, dim: number): boolean {
  const [largest, second = 0] = channelMagnitudes(values, dim).sort((a, b) => b - a);
  return largest > 0 && largest >= outlierRatio * second;
}

/** Regimes of sizes of numbers, from zeros and subnormals to the edge of overflow. */
export const magnitudeRegimes = {
  zeros: {
    description: 'one to three of Q, K and V zero, of either sign',
    provokes: 'special cases of zero: 0 as "no maximum yet", signs of zero, 0 · ∞',
    draw: ({ sizes, random }) => {
      const values = normalValues(sizes, random);
      const which = random.integer(1, 7);
      const cleared = (tensor: Float64Array, bit: number) =>
        (which & bit) === 0 ? tensor : tensor.map(() => random.sign() * 0);
      return { q: cleared(values.q, 1), k: cleared(values.k, 2), v: cleared(values.v, 4) };
    },
    holds: ({ values }) =>
      [values.q, values.k, values.v].some((tensor) => tensor.every((x) => x === 0)),
  },
  tiny: {
    description: 'Q and K small; V among the subnormals and the smallest normal numbers',
    provokes: 'weights that are all alike, and outputs that are flushed to zero',
    draw: ({ sizes, format, random }) =>
      normalValues(sizes, random, {
        q: 2 ** -random.integer(2, 12),
        k: 2 ** -random.integer(2, 12),
        v: smallestSubnormal(format) * 2 ** random.integer(0, format.precision),
      }),
    holds: ({ values, formats: names }) =>
      largestMagnitude(values.q) <= largestTiny.queryOrKey &&
      largestMagnitude(values.k) <= largestTiny.queryOrKey &&
      largestMagnitude(values.v) <= largestTiny.value * smallestNormal(formats[names.v]),
  },
  subnormal: {
    description: 'V, and in a quarter each Q and K, subnormal numbers; normal numbers else',
    provokes: 'operands that an instruction or a conversion flushes to zero',
    sizes: () => ({ keys: { min: 1 } }),
    draw: ({ sizes, format, random }) => {
      const units = 2 ** (format.precision - 1) - 1;
      const subnormal = () => random.sign() * random.integer(1, units) * smallestSubnormal(format);
      const either = () => (random.integer(0, 3) === 0 ? subnormal : random.normal);
      return drawnValues(sizes, either(), either(), subnormal);
    },
    holds: ({ values, formats: names }) => {
      const largest = largestMagnitude(values.v);
      return largest > 0 && largest < smallestNormal(formats[names.v]);
    },
  },
  'near-overflow': {
    description: 'Q and K up to 1e5 where the format allows: raw scores far beyond 65504',
    provokes: 'scores kept in 16 bits before the scale: infinity, then ∞ − ∞',
    sizes: () => ({ queries: { min: 1 }, keys: { min: 1 } }),
    scales: ['default', 'odd'],
    draw: ({ sizes, format, random, scaleKind }) => {
      const peak = Math.min(nearOverflow.entry, format.maxFinite);
      const value = () => random.sign() * peak * (7 / 8 + random.uniform() / 8);
      // √dim is what sums of random signs come to: scaled scores of one to eight nats.
      const nats = 2 ** random.integer(0, 3);
      const values = drawnValues(sizes, value, value, random.normal);
      return scaleKind === 'odd'
        ? { ...values, scale: nats / (peak ** 2 * Math.sqrt(sizes.qkDim)) }
        : values;
    },
    holds: (plain) => {
      let largest = 0;
      for (const raw of rawScoreRows(plain)) largest = Math.max(largest, largestMagnitude(raw));
      return largest >= nearOverflow.leastScore && largest < nearOverflow.mostScore;
    },
  },
  'outlier-channel': {
    description: 'one channel of Q and K far larger than the others',
    provokes: 'small products that are lost beside a large one in a tensor core’s sum',
    sizes: () => ({ queries: { min: 1 }, keys: { min: 1 } }),
    draw: ({ sizes, random }) => {
      const { qkDim } = sizes;
      const channel = random.integer(0, qkDim - 1);
      const factor = 2 ** random.integer(4, 7);
      const stretch = (x: number, i: number) => (i % qkDim === channel ? x * factor : x);
      const values = normalValues(sizes, random);
      return { q: values.q.map(stretch), k: values.k.map(stretch), v: values.v };
    },
    holds: ({ values, sizes }) =>
      hasOutlierChannel(values.q, sizes.qkDim) || hasOutlierChannel(values.k, sizes.qkDim),
  },
  'wide-exponents': {
    description: 'exponents spread evenly over the whole range of the format',
    provokes: 'overflow, underflow and absorption in every sum',
    draw: ({ sizes, format, random }) => {
      const lowest = format.minExponent - format.precision + 1;
      const value = () =>
        random.sign() *
        Math.min(
          format.maxFinite,
          (1 + random.uniform()) * 2 ** random.integer(lowest, format.maxExponent),
        );
      return drawnValues(sizes, value, value, value);
    },
    holds: () => true,
  },
} satisfies Record<string, Regime>;
