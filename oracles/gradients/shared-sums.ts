import { sumError } from '../../src/arith/index.js';
import {
  broadcastStrides,
  rowPlaces,
  type Problem,
  type ProblemShape,
  type Tensor,
} from '../../src/problem/index.js';
import { gamma } from '../attention/dot-error.js';
import type { Gradient } from './sums.js';

const u = 2 ** -53;

/** One term of a compensated sum: its value, how far that can be off, and the scale of its errors. */
export interface Term {
  readonly value: number;
  readonly error: number;
  readonly size: number;
}

/** Compensated sums of what rows of many heads add to. */
export interface SharedSums {
  readonly add: (at: number, term: Term) => void;
  /** Makes an element NaN or infinite: the sum of what is added. */
  readonly poison: (at: number, value: number) => void;
  readonly finish: () => Gradient;
}

/** So many sums, each with the rounding errors of its additions beside it. */
export function sharedSums(count: number): SharedSums {
  const [values, rests, radius, magnitude, terms, special] = Array.from(
    { length: 6 },
    () => new Float64Array(count),
  );
  return {
    add: (at, { value, error, size }) => {
      const sum = values[at] + value;
      rests[at] += sumError(values[at], value, sum);
      values[at] = sum;
      radius[at] += error;
      magnitude[at] += size;
      terms[at]++;
    },
    poison: (at, value) => (special[at] += value),
    finish: () => {
      values.forEach((sum, at) => {
        values[at] = sum + rests[at];
        // Ogita, Rump and Oishi's Sum2: u of the result, and γ(n)² of the sizes.
        const ofSum = u * Math.abs(values[at]) + gamma(terms[at]) ** 2 * magnitude[at];
        radius[at] = (radius[at] + ofSum) * (1 + 2 ** -20);
        if (special[at] === 0) return;
        values[at] = special[at];
        radius[at] = 0;
        magnitude[at] = Math.abs(special[at]);
      });
      return { values, radius, magnitude };
    },
  };
}

/** The sums of dBias, and where a row and a key add to them. */
export interface BiasSums extends SharedSums {
  /** A function for the element of a key of a row; keys counted over those of all sequences. */
  readonly placesOf: (head: number, query: number) => (key: number) => number;
}

/** The sums of the gradient of a bias, in its own shape. */
export function biasSums(problem: Problem, bias: Tensor, shape: ProblemShape): BiasSums {
  const strides = broadcastStrides(bias.shape);
  const placeOf = rowPlaces(problem, shape);
  return {
    ...sharedSums(bias.shape.reduce((product, size) => product * size, 1)),
    placesOf: (head, query) => {
      const place = placeOf(head, query);
      const row =
        place.sequence * strides.batch + place.head * strides.head + place.query * strides.query;
      return (key) => row + (key - place.firstKey) * strides.key;
    },
  };
}
