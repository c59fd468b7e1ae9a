import {
  equalRows,
  fill,
  headRows,
  keyLength,
  normalValues,
  queryLength,
  rowOf,
  valueLength,
  type RandomValues,
} from '../values.js';
import { everyRow, maximum, type Regime, type RegimeRequest } from './regime.js';

/** Approximate scores of the largest keys at the default scale, in nats. */
const peakScores = { repeated: 8, oneHot: 1024 };

/** Excess of a key's score over the others, in nats, from which their relative weights are 0 in fp32. */
const underflowGap = 104;

/** Long tails: the maximum, the least and the greatest distance of the others below it, and numbers of keys; nats. */
const tail = { peak: 6.5, deviation: 0.3, nearest: 4, farthest: 9, keys: 128, drawnKeys: 200 };

/**
 * One vector per head, of random signs and magnitudes, and queries of the same signs, such that a
 * query times it is about `nats` at the default scale; the values of Q, and the vectors.
 */
function alignedQueries(
  { sizes, random }: RegimeRequest,
  nats: number,
): { q: Float64Array; vectors: Float64Array[] } {
  const { qkDim } = sizes;
  const size = Math.sqrt(nats / Math.sqrt(qkDim));
  const magnitude = () => size * (7 / 8 + random.uniform() / 4);
  const q = fill(queryLength(sizes), magnitude);
  const vectors = headRows(sizes).map(({ firstQuery, queries }) => {
    const signs = fill(qkDim, random.sign);
    for (let row = 0; row < queries; row++)
      rowOf(q, firstQuery + row, qkDim).forEach((x, c, values) => (values[c] = x * signs[c]));
    return signs.map((sign) => sign * magnitude());
  });
  return { q, vectors };
}

/** V of one sign, with every bit of the significand in use. */
function oneSignedValues({ sizes, random }: RegimeRequest): Float64Array {
  const sign = random.sign();
  return fill(valueLength(sizes), () => sign * (1 + random.uniform()) * 2 ** random.integer(-1, 1));
}

/** Some of the numbers from 0 to below `count`, at random. */
function someOf(count: number, chosen: number, random: RandomValues): Set<number> {
  const indices = Array.from({ length: count }, (_, i) => i);
  for (let i = 0; i < chosen; i++) {
    const other = random.integer(i, count - 1);
    [indices[i], indices[other]] = [indices[other], indices[i]];
  }
  return new Set(indices.slice(0, chosen));
}

function drawRepeatedMaxima(request: RegimeRequest): ReturnType<Regime['draw']> {
  const { sizes, random } = request;
  const { qkDim } = sizes;
  const { q, vectors } = alignedQueries(request, peakScores.repeated);
  const k = new Float64Array(keyLength(sizes));
  for (const { head, firstKey, keys } of headRows(sizes)) {
    const count = random.integer(2, Math.max(2, Math.ceil(keys / 4)));
    const largest = someOf(keys, count, random);
    for (let key = 0; key < keys; key++) {
      const shorter = () => 1 / 4 + random.uniform() / 2;
      const factor = largest.has(key) ? () => 1 : shorter;
      rowOf(k, firstKey + key, qkDim).set(vectors[head].map((x) => x * factor()));
    }
  }
  return { q, k, v: oneSignedValues(request) };
}

function drawOneHot(request: RegimeRequest): ReturnType<Regime['draw']> {
  const { sizes, random } = request;
  const { qkDim } = sizes;
  const { q, vectors } = alignedQueries(request, peakScores.oneHot);
  const k = new Float64Array(keyLength(sizes));
  for (const { head, firstQuery, queries, firstKey, keys } of headRows(sizes)) {
    for (let key = 0; key < keys; key++) {
      const factor = (2 * random.uniform() - 1) / 2;
      rowOf(k, firstKey + key, qkDim).set(vectors[head].map((x) => x * factor));
    }
    // Queries along the vector have one key, those against it another.
    const [along, against] = someOf(keys, 2, random);
    rowOf(k, firstKey + along, qkDim).set(vectors[head]);
    rowOf(k, firstKey + against, qkDim).set(vectors[head].map((x) => -x));
    for (let row = 0; row < queries; row++) {
      const sign = random.sign();
      rowOf(q, firstQuery + row, qkDim).forEach((x, c, values) => (values[c] = sign * x));
    }
  }
  return { q, k, v: fill(valueLength(sizes), random.normal) };
}

function drawLongTail(request: RegimeRequest): ReturnType<Regime['draw']> {
  const { sizes, random } = request;
  const { qkDim } = sizes;
  const level = Math.sqrt(tail.peak * Math.sqrt(qkDim));
  // The first channel has the level, the others what the tail's scores differ by.
  const noise = Math.sqrt((tail.deviation * Math.sqrt(qkDim)) / Math.sqrt(Math.max(qkDim - 1, 1)));
  const q = fill(queryLength(sizes), (i) => (i % qkDim === 0 ? level : noise * random.normal()));
  const k = fill(keyLength(sizes), (i) =>
    i % qkDim === 0 ? (level * (2 * random.uniform() - 1)) / 6 : noise * random.normal(),
  );
  for (const { firstKey, keys } of headRows(sizes)) {
    const largest = rowOf(k, firstKey + random.integer(0, keys - 1), qkDim);
    largest.fill(0).fill(level, 0, 1);
  }
  return { q, k, v: oneSignedValues(request) };
}

const isOneSigned = (values: Float64Array) =>
  values.every((x) => x >= 0) || values.every((x) => x <= 0);

/** Regimes of the number of keys that have the maximum of a row, and of the distance of the others below it. */
export const maximaRegimes = {
  'constant-keys': {
    description: 'one key for all: equal scores',
    provokes: 'weights that are all exactly 1, and sums of as many terms as there are keys',
    draw: ({ sizes, random }) => {
      const { keys, qkDim } = sizes;
      const values = normalValues(sizes, random);
      const headSize = keys * qkDim;
      return {
        ...values,
        k: values.k.map((_, i) => values.k[Math.floor(i / headSize) * headSize + (i % qkDim)]),
      };
    },
    holds: ({ sizes: { qkDim, ...sizes }, values }) =>
      headRows({ qkDim, ...sizes }).every(({ firstKey, keys }) => {
        const first = rowOf(values.k, firstKey, qkDim);
        for (let key = 1; key < keys; key++)
          if (!equalRows(first, rowOf(values.k, firstKey + key, qkDim))) return false;
        return true;
      }),
  },
  'repeated-maxima': {
    description: 'several equal maxima in every row, other keys some nats lower, V of one sign',
    provokes: 'weights of exactly 1 beside rounded ones: rounding that is a bias instead of noise',
    sizes: () => ({ queries: { min: 1 }, keys: { min: 2 } }),
    scales: ['default'],
    draw: drawRepeatedMaxima,
    holds: (plain) =>
      isOneSigned(plain.values.v) &&
      everyRow(plain, (raw, scale) => {
        const largest = maximum(raw.map((x) => x * scale));
        return raw.filter((x) => x * scale === largest).length >= 2;
      }),
  },
  'one-hot': {
    description: 'one key of each row is 104 nats or more above all others',
    provokes: 'weights that underflow to exactly 0, and an output that is one row of V',
    sizes: () => ({ queries: { min: 1 }, keys: { min: 2 } }),
    scales: ['default'],
    draw: drawOneHot,
    holds: (plain) =>
      plain.sizes.keys >= 2 &&
      everyRow(plain, (raw, scale) => {
        const scores = raw.map((x) => x * scale).sort();
        return scores.at(-1)! - scores.at(-2)! >= underflowGap;
      }),
  },
  'long-tail': {
    description: 'one key at the maximum of every row, hundreds of keys 5 to 8 nats lower',
    provokes: 'weights that vanish in fp8 although the row sum counts them',
    sizes: () => ({ queries: { min: 1 }, keys: { min: tail.drawnKeys } }),
    scales: ['default'],
    draw: drawLongTail,
    holds: (plain) =>
      everyRow(plain, (raw, scale) => {
        const scores = raw.map((x) => x * scale);
        const largest = maximum(scores);
        const drops = scores.map((x) => largest - x);
        const isTail = (drop: number) => drop >= tail.nearest && drop <= tail.farthest;
        return drops.filter(isTail).length >= tail.keys;
      }),
  },
} satisfies Record<string, Regime>;
