import { sumError } from '../../src/arith/index.js';
import {
  broadcastPlaces,
  broadcastTerms,
  type Mask,
  type Problem,
  type ProblemShape,
  type Tensor,
} from '../../src/problem/index.js';
import { gamma } from '../attention/operand.js';
import type { Accuracy } from '../attention/row.js';
import type { Rules } from '../attention/rules.js';
import type { GradientEngine } from './gradient-engine.js';
import { applyPoison, poisonedElements } from './special-row.js';
import type { Gradient } from './sums.js';

const u = 2 ** -53;

/** One term of a compensated sum: its value, the largest error of that, and the scale of its errors. */
export interface Term {
  readonly value: number;
  readonly error: number;
  readonly size: number;
}

/** Compensated sums that rows of many heads add to. */
export interface SharedSums {
  readonly add: (at: number, term: Term) => void;
  /** Makes an element NaN or infinite: the sum of the added kinds. */
  readonly poison: (at: number, value: number) => void;
  readonly finish: () => Gradient;
}

/**
 * `count` sums of at most `terms` terms each: with more than one term, the rounding errors of its additions are kept
 * beside it.
 */
export function sharedSums(count: number, terms: number): SharedSums {
  const numbers = () => new Float64Array(count);
  const [values, radius, magnitude] = [numbers(), numbers(), numbers()];
  const rests = terms > 1 ? numbers() : null;
  const poisoned = poisonedElements();
  return {
    add: (at, { value, error, size }) => {
      const sum = values[at] + value;
      if (rests !== null) rests[at] += sumError(values[at], value, sum);
      values[at] = sum;
      radius[at] += error;
      magnitude[at] += size;
    },
    poison: poisoned.add,
    finish: () => {
      // Ogita, Rump and Oishi's Sum2: u of the result, and γ(n)² of the sizes.
      const ofSizes = terms > 1 ? gamma(terms) ** 2 : 0;
      values.forEach((sum, at) => {
        values[at] = sum + (rests?.[at] ?? 0);
        const ofSum = u * Math.abs(values[at]) + ofSizes * magnitude[at];
        radius[at] = (radius[at] + ofSum) * (1 + 2 ** -20);
      });
      const gradient = { values, radius, magnitude };
      applyPoison(gradient, poisoned);
      return gradient;
    },
  };
}

/** The sums of dBias, and where a row and a key add to them. */
interface BiasSums extends SharedSums {
  /** A function for the element of a key of a row; keys counted over those of all sequences. */
  readonly placesOf: (head: number, query: number) => (key: number) => number;
}

/** The sums of the gradient of a bias, in its own shape. */
export function biasSums(problem: Problem, bias: Tensor, shape: ProblemShape): BiasSums {
  const { terms } = broadcastTerms(bias.shape, problem, shape);
  const count = bias.shape.reduce((product, size) => product * size, 1);
  return { ...sharedSums(count, terms), placesOf: broadcastPlaces(bias.shape, problem, shape) };
}

/** Everything that all rows of a problem are solved with. */
export interface GradientContext {
  readonly problem: Problem;
  readonly shape: ProblemShape;
  readonly rules: Rules;
  readonly mask: Mask;
  readonly accuracy: Accuracy;
  readonly engine: GradientEngine;
  readonly wantsQueries: boolean;
  /** Sums of dBias; null if not wanted. */
  readonly bias: BiasSums | null;
  readonly sink: SharedSums | null;
}
