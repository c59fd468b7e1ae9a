import { RequestError } from '../../../src/request-error.js';
import {
  addToRow,
  drawnValues,
  fill,
  headRows,
  keyLength,
  normalValues,
  queryLength,
  randomDirection,
  valueLength,
} from '../values.js';
import {
  besideThreshold,
  type BlockOrder,
  maximum,
  type Regime,
  type RegimeRequest,
  someRow,
  type Tiling,
} from './regime.js';

/** Excess of the sink's score over the others, and climb of a slope; nats. */
const sinkScore = 7;
const climbScore = 24;
/** The least of these that a row of the regime must show, even after shrinking; nats. */
const leastSink = 3;
const leastClimb = 6;

/** Scores that climb along the keys by the slope's share of `climbScore`, with a little noise. */
function drawSlope(slope: (share: number) => number): Regime['draw'] {
  return ({ sizes, random }) => {
    const { qkDim } = sizes;
    const noise = () => random.normal() / 4;
    const values = drawnValues(sizes, noise, noise, random.normal);
    const strength = Math.sqrt(climbScore * Math.sqrt(qkDim));
    for (const { firstQuery, queries, firstKey, keys } of headRows(sizes)) {
      const along = randomDirection(qkDim, random);
      for (let row = 0; row < queries; row++) addToRow(values.q, firstQuery + row, along, strength);
      for (let key = 0; key < keys; key++)
        addToRow(values.k, firstKey + key, along, strength * slope(key / Math.max(keys - 1, 1)));
    }
    return values;
  };
}

/** Whether in some row the last key's score exceeds the first one's, or the reverse for sign −1. */
function climbs(sign: 1 | -1): Regime['holds'] {
  return (plain) =>
    someRow(plain, (raw, scale) => sign * scale * (raw.at(-1)! - raw[0]) >= leastClimb);
}

/** Regimes that differ in where along the keys the large scores are. */
export const slopeRegimes = {
  sink: {
    description: 'normal scores but for the first key, visited last, which is 7 above',
    provokes: 'a running maximum that rises in the last block visited, or never but in the first',
    sizes: () => ({ queries: { min: 1 }, keys: { min: 2 } }),
    scales: ['default'],
    draw: ({ sizes, random }) => {
      const { qkDim } = sizes;
      const values = normalValues(sizes, random);
      const strength = Math.sqrt(sinkScore * Math.sqrt(qkDim));
      for (const { firstQuery, queries, firstKey } of headRows(sizes)) {
        const along = randomDirection(qkDim, random);
        for (let row = 0; row < queries; row++)
          addToRow(values.q, firstQuery + row, along, strength);
        values.k.fill(0, firstKey * qkDim, (firstKey + 1) * qkDim);
        addToRow(values.k, firstKey, along, strength);
      }
      return values;
    },
    holds: (plain) =>
      plain.sizes.keys >= 2 &&
      someRow(plain, (raw, scale) => {
        const others = raw.subarray(1).reduce((sum, x) => sum + x, 0) / (raw.length - 1);
        return scale * (raw[0] - others) >= leastSink;
      }),
  },
  ascending: {
    description: 'scores climb by 24 along the keys: the first block visited has the maximum',
    provokes: 'rescaling in every block visited from the first; weights that vanish in the others',
    sizes: () => ({ queries: { min: 1 }, keys: { min: 2 } }),
    scales: ['default'],
    draw: drawSlope((share) => share),
    holds: climbs(1),
  },
  descending: {
    description: 'scores fall by 24 along the keys: the maximum grows with every block visited',
    provokes: 'rescaling in every block visited from the last, and a maximum that lags',
    sizes: () => ({ queries: { min: 1 }, keys: { min: 2 } }),
    scales: ['default'],
    draw: drawSlope((share) => 1 - share),
    holds: climbs(-1),
  },
} satisfies Record<string, Regime>;

/**
 * The first channels spell a level in digits to base 8, which every format of at least 3 significand
 * bits holds; the query has their weights.
 */
const digitWeights: readonly number[] = [256, 32, 4, 1 / 2, 1 / 16];
const digitBase = 8;
/** Levels are multiples of this, up to the largest that the digits spell. */
const levelUnit = 1 / 16;
const largestLevel = 2048 - levelUnit;
/** The fewest dimensions that hold a level and leave as many for noise. */
const fewestStepDimensions = 2 * digitWeights.length;
/** Keys beside their block's largest lie this far below it at least, and at most; log2. */
const drops = { least: 4, most: 8 };
/** Noise never reaches this, so that it moves no maximum. */
const largestNoise = drops.least;
/** A difference of maxima is the step when it is within this of it; fp64 sums are far closer. */
const stepTolerance = 2 ** -20;

/** The direction in which the maxima grow; no random number is used if the tiling fixes it. */
function drawOrder({ tiling, random }: RegimeRequest): BlockOrder {
  return tiling.order ?? (random.integer(0, 1) === 0 ? 'first-to-last' : 'last-to-first');
}

/**
 * Levels that climb from block to block by the threshold and amounts beside it, in log2, as far as
 * digits go: one key of each block is exactly at its level for every query, the others lie below. The
 * scale is ln 2, so that scale · log2 e rounds to 1 and levels are exponents of 2 without any rounding.
 */
function drawSteps(beside: number): Regime['draw'] {
  return (request) => {
    const { sizes, random, tiling } = request;
    const { keys, qkDim } = sizes;
    if (qkDim < fewestStepDimensions)
      throw new RequestError(
        `steps of the maximum need ${fewestStepDimensions} dimensions, not ${qkDim}; give more, or another regime`,
      );
    const order = drawOrder(request);
    const { blockKeys, threshold } = tiling;
    const digits = digitWeights.length;
    const noises = qkDim - digits;
    // |q| ≤ 1/2, and the sum of |k| over the noise channels below twice the largest noise.
    const noise = (): number => (2 * random.uniform() - 1) / 2;
    const keyNoise = (): number => ((2 * random.uniform() - 1) * 1.75 * largestNoise) / noises;
    const blocks = Math.ceil(keys / blockKeys);
    const levelOf = (key: number): number => {
      const block = Math.floor(key / blockKeys);
      const visited = order === 'last-to-first' ? blocks - 1 - block : block;
      return Math.min(visited * (threshold + beside), largestLevel);
    };
    const k = fill(keyLength(sizes), keyNoise);
    for (let row = 0; row < k.length / qkDim; row++) {
      const key = row % keys;
      const isLargest = key % blockKeys === 0;
      const drop = levelUnit * random.integer(drops.least / levelUnit, drops.most / levelUnit);
      const level = levelOf(key) - (isLargest ? 0 : drop);
      if (isLargest) k.fill(0, row * qkDim, (row + 1) * qkDim);
      let rest = Math.abs(level) / levelUnit;
      for (let digit = digits - 1; digit >= 0; digit--) {
        k[row * qkDim + digit] = (level < 0 ? -1 : 1) * (rest % digitBase);
        rest = Math.floor(rest / digitBase);
      }
    }
    return {
      q: fill(queryLength(sizes), (i) => digitWeights[i % qkDim] ?? noise()),
      k,
      v: fill(valueLength(sizes), random.normal),
      scale: Math.LN2,
    };
  };
}

/** Largest score of each block, in log2: with scale · log2 e rounded to fp32, as kernels have it. */
function blockMaxima(raw: Float64Array, scale: number, blockKeys: number): number[] {
  const factor = Math.fround(scale * Math.LOG2E);
  return Array.from(
    { length: Math.ceil(raw.length / blockKeys) },
    (_, block) => maximum(raw.subarray(block * blockKeys, (block + 1) * blockKeys)) * factor,
  );
}

/** Whether a maximum grows by the step from some block to the one visited next, in some row. */
function hasStep(beside: number): Regime['holds'] {
  return (plain, { blockKeys, threshold, order }: Tiling) => {
    const isStep = (growth: number) => Math.abs(growth - threshold - beside) <= stepTolerance;
    return someRow(plain, (raw, scale) => {
      const maxima = blockMaxima(raw, scale, blockKeys);
      return maxima.some((level, block) => {
        const growth = level - maxima[block - 1];
        return (
          (order !== 'last-to-first' && isStep(growth)) ||
          (order !== 'first-to-last' && isStep(-growth))
        );
      });
    });
  };
}

/** Two blocks of keys, and dimensions for a level and noise. */
const stepSizes: Regime['sizes'] = ({ blockKeys }) => ({
  queries: { min: 1 },
  keys: { min: blockKeys + 1 },
  qkDim: { min: fewestStepDimensions },
});

/** Regimes in which the maximum grows from block to block by about a threshold of rescaling. */
export const stepRegimes = {
  'steps-below': {
    description: 'the maximum grows by 1/16 less than the threshold from block to block (log2)',
    provokes: 'rescales that are skipped: a maximum that lags, and weights above 1',
    sizes: stepSizes,
    scales: ['odd'],
    tiled: true,
    draw: drawSteps(-besideThreshold),
    holds: hasStep(-besideThreshold),
  },
  'steps-above': {
    description: 'the maximum grows by 1/16 more than the threshold from block to block (log2)',
    provokes: 'a rescale in every block, just not skipped',
    sizes: stepSizes,
    scales: ['odd'],
    tiled: true,
    draw: drawSteps(besideThreshold),
    holds: hasStep(besideThreshold),
  },
} satisfies Record<string, Regime>;
