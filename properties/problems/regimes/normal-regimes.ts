import {
  drawnValues,
  everyValue,
  largestMagnitude,
  normalValues,
  type ProblemValues,
} from '../values.js';
import type { Regime } from './regime.js';

/** What its numbers are is left to chance, so that any problem could be one. */
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
