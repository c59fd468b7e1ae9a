import { describe, expect, it } from 'vitest';
import { unitRoundoff, formats } from '../../../src/formats/index.js';
import { sampled, testSeed } from '../../setup/effort.js';
import { featureProblems, normalProblem, seededRandom } from '../features/index.js';
import { backwardKernel, correctBackwards } from './backward-kernel.js';
import {
  drawDout,
  exactGradients,
  gradientError,
  gradientsOf,
  sharedOf,
} from './gradient-errors.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const names = Object.keys(featureProblems);
const orders = Object.entries(correctBackwards);
const drawn = (name: string) => featureProblems[name](seededRandom(testSeed));
/** A sample of rows has no dK and dV of its own. */
const samples = names.filter((name) => drawn(name).rows !== undefined);

describe('plain backward kernels are near the exact gradients', () => {
  it.each(sampled(names, 8).filter((name) => !samples.includes(name)))('of %s', (name) => {
    const problem = drawn(name);
    const dout = drawDout(seededRandom(testSeed + 1), problem);
    const exact = exactGradients(problem, dout);
    const at = names.indexOf(name);
    // Each problem by two of the five, each of the five on eight problems or more.
    for (const [order, options] of [orders[at % 5], orders[(at + 2) % 5]]) {
      const given = backwardKernel(options)(problem, dout);
      const u = unitRoundoff(formats[given.dq.format]);
      const errors = gradientsOf.map((of) => gradientError(given[of], exact, of) / u);
      if (process.env['GRADIENTS_TABLE'] !== undefined) console.info(name, order, ...errors);
      for (const error of errors) {
        expect(error, order).toBeLessThan(1);
        expect(error, order).toBeGreaterThan(2 ** -6);
      }
      // Sums over many rows, stored in fp32 perhaps.
      for (const of of sharedOf)
        if (given[of] !== undefined) {
          const error = gradientError(given[of], exact, of) / u;
          expect(error, `${order} ${of}`).toBeLessThan(1);
          expect(error, `${order} ${of}`).toBeGreaterThan(0);
        }
    }
  });

  inTurn('of fp32 in five orders, each with bits of its own', () => {
    const random = seededRandom(testSeed);
    const problem = normalProblem(random, { batch: 1, queries: 150, keys: 200, format: 'fp32' });
    const dout = drawDout(random, problem);
    const exact = exactGradients(problem, dout);
    const outputs = orders.map(([, options]) => backwardKernel(options)(problem, dout));
    for (const of of gradientsOf) {
      for (const given of outputs) {
        const error = gradientError(given[of], exact, of) / 2 ** -24;
        expect(error).toBeLessThan(8);
      }
      expect(new Set(outputs.map((given) => String(given[of].data))).size).toBe(orders.length);
    }
  });

  it('of a sample of rows, dQ', () => {
    const problem = drawn(samples[0]);
    const dout = drawDout(seededRandom(testSeed + 1), problem);
    const given = backwardKernel()(problem, dout);
    expect(gradientError(given.dq, exactGradients(problem, dout), 'dq')).toBeLessThan(2 ** -7);
  });
});
