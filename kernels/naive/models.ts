import type { FormatName } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import type { KernelModel } from '../kernel-model.js';
import { checkKeys } from '../setting-values.js';
import { createNaiveAttention } from './attention.js';
import { createAttributedNaive } from './attributed/index.js';

function model(
  name: string,
  description: string,
  intermediate: (problem: Problem) => FormatName,
): KernelModel {
  return {
    name,
    description,
    settings: [],
    prepare: (problem, settings) => {
      checkKeys(name, [], settings);
      const { shape, outFormat, heads, runHead } = createNaiveAttention(
        problem,
        intermediate(problem),
      );
      const evidence = ['fp32 operations: IEEE 754', 'exp, tanh, log: fp64, rounded once'];
      return { shape, outFormat, pieces: heads, settings: {}, evidence, run: runHead };
    },
    attribute: (problem, settings) => {
      checkKeys(name, [], settings);
      return createAttributedNaive(name, problem, intermediate(problem));
    },
  };
}

/** The textbook kernel with fp32 between its passes. */
export const naiveFloat32Model = model(
  'naive-fp32',
  'scores in memory, two-pass softmax, everything fp32',
  () => 'fp32',
);

/** The textbook kernel with the input's format between its passes. */
export const naiveInputModel = model(
  'naive-input',
  'the same, with scores and weights rounded to the format of Q',
  (problem) => problem.q.format,
);
