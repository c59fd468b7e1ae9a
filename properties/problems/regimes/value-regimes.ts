import {
  drawnValues,
  equalRows,
  everyValue,
  headRows,
  largestMagnitude,
  normalValues,
  type ProblemValues,
  rowOf,
} from '../values.js';
import type { Regime } from './regime.js';
import { formats, smallestSubnormal } from '../../../src/formats/index.js';
import type { PlainProblem } from '../plain-problem.js';

/** Predicate for regimes whose numbers are left to chance, so that any problem could be one. */
const anyProblem: Regime['holds'] = () => true;

const degreesOfFreedom = 3;

/** Normal Q and K whose scores, at the default scale, have the standard deviation. */
function normalScores(
  deviation: number,
): (request: Parameters<Regime['draw']>[0]) => ProblemValues {
  const factor = Math.sqrt(deviation);
  return ({ sizes, random }) => normalValues(sizes, random, { q: factor, k: factor });
}

/** The least product of the largest |q| and the largest |k| that counts as large. */
const largeProduct = 4;

/** Q, K and V of independent random numbers. */
export const normalRegimes = {
  normal: {
    description: 'normal scores, standard deviation 1',
    provokes: 'what goes wrong on any input',
    draw: normalScores(1),
    holds: anyProblem,
  },
  'normal-4': {
    description: 'normal scores, standard deviation 4',
    provokes: 'weights over many binades, none of which decides alone',
    scales: ['default'],
    draw: normalScores(4),
    holds: anyProblem,
  },
  'normal-16': {
    description: 'normal scores, standard deviation 16: a few keys take all the weight',
    provokes: 'maxima that jump from block to block, and weights that underflow',
    scales: ['default'],
    draw: normalScores(16),
    holds: anyProblem,
  },
  large: {
    description: 'Q and K up to 32 times normal: a few keys take all the weight',
    provokes: 'scores whose rounding error reaches the exponent, and weights that underflow',
    sizes: () => ({ queries: { min: 1 }, keys: { min: 1 } }),
    draw: ({ sizes, random }) =>
      normalValues(sizes, random, { q: 2 ** random.integer(1, 5), k: 2 ** random.integer(1, 5) }),
    holds: ({ values }) => largestMagnitude(values.q) * largestMagnitude(values.k) >= largeProduct,
  },
  'student-t': {
    description: "Q and K from Student's t with 3 degrees of freedom",
    provokes: 'single entries that dwarf the others, in any channel',
    draw: ({ sizes, random }) => {
      const value = () => {
        let chiSquared = 0;
        for (let i = 0; i < degreesOfFreedom; i++) chiSquared += random.normal() ** 2;
        return random.normal() / Math.sqrt(chiSquared / degreesOfFreedom);
      };
      return drawnValues(sizes, value, value, random.normal);
    },
    holds: anyProblem,
  },
  'positive-values': {
    description: 'normal scores, standard deviation 4, and V ≥ 0',
    provokes: 'errors of the weights that add up, as nothing of V cancels',
    scales: ['default'],
    draw: (request) => {
      const values = normalScores(4)(request);
      return { ...values, v: values.v.map(Math.abs) };
    },
    holds: everyValue((x) => x >= 0),
  },
} satisfies Record<string, Regime>;

/** Whether keys 2n and 2n + 1 of every head are equal, and their values opposite to two ulps. */
function keysCancel({ sizes, values, formats: names }: PlainProblem): boolean {
  const { qkDim, vDim } = sizes;
  const format = formats[names.v];
  const tolerance = (x: number) =>
    Math.max(2 ** (2 - format.precision) * Math.abs(x), smallestSubnormal(format));
  return headRows(sizes).every(({ firstKey, keys }) => {
    for (let key = firstKey + 1; key < firstKey + keys; key += 2) {
      if (!equalRows(rowOf(values.k, key, qkDim), rowOf(values.k, key - 1, qkDim))) return false;
      const first = rowOf(values.v, key - 1, vDim);
      const second = rowOf(values.v, key, vDim);
      if (!second.every((x, c) => Math.abs(x + first[c]) <= tolerance(first[c]))) return false;
    }
    return true;
  });
}

/** Regimes of the weighted sum of V. */
export const valueSumRegimes = {
  'cancelling-values': {
    description: 'keys in equal pairs whose values cancel, exactly or to within an ulp or so',
    provokes: 'sums of P·V of which only rounding errors are left',
    sizes: () => ({ keys: { min: 2 } }),
    draw: ({ sizes, format, random }) => {
      const { keys, qkDim, vDim } = sizes;
      const values = normalValues(sizes, random);
      const residue = random.integer(0, 1) * 2 ** (1 - format.precision);
      const pairwise = (tensor: Float64Array, dim: number, second: (first: number) => number) =>
        tensor.map((x, i) =>
          (Math.floor(i / dim) % Math.max(keys, 1)) % 2 === 0 ? x : second(tensor[i - dim]),
        );
      return {
        q: values.q,
        k: pairwise(values.k, qkDim, (x) => x),
        v: pairwise(values.v, vDim, (x) => -x * (1 + residue)),
      };
    },
    holds: (plain) =>
      plain.sizes.keys >= 2 && largestMagnitude(plain.values.v) > 0 && keysCancel(plain),
  },
  ones: {
    description: 'normal Q and K, and V = 1 everywhere, so that every output is 1',
    provokes: 'weights and row sums that disagree, whatever the scores',
    draw: ({ sizes, random }) => {
      const values = normalValues(sizes, random);
      return { ...values, v: values.v.fill(1) };
    },
    holds: everyValue((x) => x === 1),
  },
} satisfies Record<string, Regime>;
