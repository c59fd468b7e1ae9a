import { smallestSubnormal, type NumberFormat } from '../src/formats/index.js';
import type { RandomValues } from './random-values.js';
import type { Sizes } from './size-range.js';

/** Values of Q, K and V before they are rounded to the format, each row-major of rank 4. */
export interface ProblemValues {
  readonly q: Float64Array;
  readonly k: Float64Array;
  readonly v: Float64Array;
}

type Regime = (sizes: Sizes, format: NumberFormat, random: RandomValues) => ProblemValues;

function fill(length: number, value: (index: number) => number): Float64Array {
  const values = new Float64Array(length);
  for (let i = 0; i < length; i++) values[i] = value(i);
  return values;
}

const queryLength = ({ batch, kvHeads, groupSize, queries, qkDim }: Sizes) =>
  batch * kvHeads * groupSize * queries * qkDim;
const keyLength = ({ batch, kvHeads, keys, qkDim }: Sizes) => batch * kvHeads * keys * qkDim;
const valueLength = ({ batch, kvHeads, keys, vDim }: Sizes) => batch * kvHeads * keys * vDim;

/** Every element from one function. */
function everywhere(sizes: Sizes, value: () => number): ProblemValues {
  return {
    q: fill(queryLength(sizes), value),
    k: fill(keyLength(sizes), value),
    v: fill(valueLength(sizes), value),
  };
}

/** Standard normal, each tensor times its own factor. */
function normal(sizes: Sizes, random: RandomValues, q = 1, k = 1, v = 1): ProblemValues {
  return {
    q: fill(queryLength(sizes), () => q * random.normal()),
    k: fill(keyLength(sizes), () => k * random.normal()),
    v: fill(valueLength(sizes), () => v * random.normal()),
  };
}

/**
 * What the values of a problem look like. All are finite; a value beyond the format's largest finite
 * number becomes that number.
 */
const regimes = {
  /** Standard normal throughout. */
  normal: (sizes, _format, random) => normal(sizes, random),

  /** Q and K so large that one key takes nearly all the weight. */
  'large-logits': (sizes, _format, random) =>
    normal(sizes, random, 2 ** random.integer(1, 5), 2 ** random.integer(1, 5)),

  /** Q and K small; V among the format's subnormals and its smallest normal numbers. */
  tiny: (sizes, format, random) =>
    normal(
      sizes,
      random,
      2 ** -random.integer(2, 12),
      2 ** -random.integer(2, 12),
      smallestSubnormal(format) * 2 ** random.integer(0, format.precision),
    ),

  /** Scores that rise from key to key, which makes an online softmax rescale all the way. */
  'ascending-scores': (sizes, _format, random) => {
    const { keys, qkDim } = sizes;
    const step = 2 ** random.integer(-3, 5);
    return {
      ...normal(sizes, random),
      q: fill(queryLength(sizes), () => 1 + random.integer(0, 3) / 4),
      k: fill(keyLength(sizes), (i) => (Math.floor(i / qkDim) % Math.max(keys, 1)) * step),
    };
  },

  /** One key vector for all keys of a head: every visible key has the same weight. */
  'constant-keys': (sizes, _format, random) => {
    const { keys, qkDim } = sizes;
    const values = normal(sizes, random);
    const headSize = keys * qkDim;
    return {
      ...values,
      k: values.k.map((_, i) => values.k[Math.floor(i / headSize) * headSize + (i % qkDim)]!),
    };
  },

  /** One channel of Q and K far larger than the others. */
  'outlier-channel': (sizes, _format, random) => {
    const { qkDim } = sizes;
    const channel = random.integer(0, qkDim - 1);
    const factor = 2 ** random.integer(4, 7);
    const stretch = (x: number, i: number) => (i % qkDim === channel ? x * factor : x);
    const values = normal(sizes, random);
    return { q: values.q.map(stretch), k: values.k.map(stretch), v: values.v };
  },

  /** Keys in equal pairs whose values cancel, exactly or to within an ulp or so. */
  'cancelling-values': (sizes, format, random) => {
    const { keys, qkDim, vDim } = sizes;
    const values = normal(sizes, random);
    const residue = random.integer(0, 1) * 2 ** (1 - format.precision);
    const pairwise = (tensor: Float64Array, dim: number, second: (first: number) => number) =>
      tensor.map((x, i) =>
        (Math.floor(i / dim) % Math.max(keys, 1)) % 2 === 0 ? x : second(tensor[i - dim]!),
      );
    return {
      q: values.q,
      k: pairwise(values.k, qkDim, (x) => x),
      v: pairwise(values.v, vDim, (x) => -x * (1 + residue)),
    };
  },

  /** One to three of the tensors zero, of either sign. */
  zeros: (sizes, _format, random) => {
    const values = normal(sizes, random);
    const which = random.integer(1, 7);
    const cleared = (tensor: Float64Array, bit: number) =>
      (which & bit) === 0 ? tensor : tensor.map(() => random.sign() * 0);
    return { q: cleared(values.q, 1), k: cleared(values.k, 2), v: cleared(values.v, 4) };
  },

  /** Exponents spread evenly over the whole range of the format, subnormals included. */
  'wide-exponents': (sizes, format, random) => {
    const lowest = format.minExponent - format.precision + 1;
    const value = () =>
      random.sign() *
      Math.min(
        format.maxFinite,
        (1 + random.uniform()) * 2 ** random.integer(lowest, format.maxExponent),
      );
    return everywhere(sizes, value);
  },
} satisfies Record<string, Regime>;

/** The name of a regime of values. */
export type RegimeName = keyof typeof regimes;

/** Every regime's name. */
export const regimeNames = Object.keys(regimes) as RegimeName[];

/** Values in the named regime; the same for the same stream of random numbers. */
export function drawValues(
  name: RegimeName,
  sizes: Sizes,
  format: NumberFormat,
  random: RandomValues,
): ProblemValues {
  const regime: Regime = regimes[name];
  return regime(sizes, format, random);
}
