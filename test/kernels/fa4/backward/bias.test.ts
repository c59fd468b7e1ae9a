/**
 * Whether roundings of O push the gradients one way (arXiv 2510.04212): the figures of docs/theory/trade-offs-backward.md. Training
 * steps whose values and output gradients are alike are the heads of one problem; `STUDY=1` makes the problems of the page.
 */
import { describe, expect } from 'vitest';
import { runKernelModel } from '../../../../kernels/index.js';
import { decodeTensor, encodeFromFloat64, formats } from '../../../../src/formats/index.js';
import {
  filledProblem,
  sumNormalNumbers,
  tensor,
  uniformNumbers,
} from '../../../setup/problems.js';
import { turns } from '../../../setup/turns.js';

const inTurn = turns(import.meta.url);

const isStudy = process.env['STUDY'] !== undefined;
const steps = isStudy ? 2000 : 200;
const [keys, dim] = [64, 64];

/** Numbers of bf16 that are nearest to some. */
const bf16 = (values: Float64Array): Float64Array =>
  decodeTensor({
    format: 'bf16',
    shape: [values.length],
    data: encodeFromFloat64(formats.bf16, values),
  });

/** Around what values and output gradients are drawn: a number amid its binade, a power of two, or 0. */
const centres = { 'amid a binade': -1.4, 'at a power of two': -1, 'any sign': 0 } as const;
type Centre = keyof typeof centres;

/**
 * One query of every step, of whose keys `maxima` have the largest score and the others weights near e^-8; its exact D, and D
 * of O as it is stored: by FlashAttention-4, and by a kernel that rounds the sum of values before it divides.
 */
function meansOfSteps(maxima: number, centre: Centre) {
  const normal = sumNormalNumbers(uniformNumbers(31 + maxima));
  const [around, spread] = [centres[centre], centre === 'any sign' ? 1 : 0.05];
  const signed = () => around + spread * normal();
  const problem = filledProblem(
    { heads: steps, queries: 1, keys, dim },
    {
      q: (i) => (i % dim === 0 ? 1 : 0),
      k: (i) => {
        const key = Math.floor(i / dim) % keys;
        return i % dim !== 0 || key < maxima ? 0 : -8 + 0.5 * normal();
      },
      v: signed,
    },
    { scale: 1 },
  );
  const dout = decodeTensor(tensor('bf16', [steps, dim], signed));
  const [k, v] = [decodeTensor(problem.k), decodeTensor(problem.v)];
  const stored = decodeTensor(runKernelModel('fa4', problem).out);
  const [exact, late, early] = [0, 1, 2].map(() => new Float64Array(steps));
  for (let step = 0; step < steps; step++) {
    const weights = Float64Array.from({ length: keys }, (_, j) =>
      Math.exp(k[(step * keys + j) * dim]),
    );
    const total = weights.reduce((a, b) => a + b);
    const rounded = bf16(weights);
    const sum = (of: Float64Array, column: number) =>
      of.reduce((all, weight, j) => all + weight * v[(step * keys + j) * dim + column], 0);
    const columns = Array.from({ length: dim }, (_, column) => column);
    const ofSums = bf16(Float64Array.from(columns, (column) => sum(rounded, column)));
    const divided = bf16(ofSums.map((x) => x / total));
    for (const column of columns) {
      const factor = dout[step * dim + column];
      exact[step] += (factor * sum(weights, column)) / total;
      late[step] += factor * stored[step * dim + column];
      early[step] += factor * divided[column];
    }
  }
  return { exact, late, early };
}

/** The errors' sum over all steps, in units of what it is by chance: √steps times their root mean square. */
function drift(given: Float64Array, exact: Float64Array): number {
  const errors = given.map((x, i) => x - exact[i]);
  const [sum, squares] = [errors.reduce((a, b) => a + b, 0), errors.reduce((a, b) => a + b * b, 0)];
  return sum / Math.sqrt(squares);
}

describe('of values and output gradients', () => {
  inTurn.each(Object.keys(centres) as Centre[])('%s D drifts, or does not', (centre) => {
    const drifts = [1, 2, 3, 4].map((maxima) => {
      const { exact, late, early } = meansOfSteps(maxima, centre);
      return { maxima, late: drift(late, exact), early: drift(early, exact) };
    });
    for (const { maxima, late, early } of drifts)
      if (isStudy)
        console.info(`\n| ${centre} | ${maxima} | ${late.toFixed(1)} | ${early.toFixed(1)} |`);
    const largest = (of: 'late' | 'early') => Math.max(...drifts.map((each) => Math.abs(each[of])));
    // By chance 1; all errors of one sign: the root of the steps, 14 of 200.
    if (centre === 'at a power of two') expect(largest('late')).toBeGreaterThan(6);
    else expect(largest('late')).toBeLessThan(4.5);
    if (centre === 'any sign') expect(largest('early')).toBeLessThan(4.5);
    else expect(largest('early')).toBeGreaterThan(6);
  });
});
