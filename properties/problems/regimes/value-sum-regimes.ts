import { formats, smallestSubnormal } from '../../../src/formats/index.js';
import type { PlainProblem } from '../plain-problem.js';
import {
  equalRows,
  everyValue,
  headRows,
  largestMagnitude,
  normalValues,
  rowOf,
} from '../values.js';
import type { Regime } from './regime.js';

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

/** Regimes of what the weighted sum of V comes to. */
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
