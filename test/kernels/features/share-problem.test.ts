import { expect, it } from 'vitest';
import { runKernelModel } from '../../../kernels/index.js';
import { shareProblem, unshareProblem } from '../../../src/emulate/share-problem.js';
import { posedRows, problemFeatures, type Problem } from '../../../src/problem/index.js';
import { testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { featureProblems, normalTensor, seededRandom } from './feature-problems.js';

const inTurn = turns(import.meta.url);

const withoutForm = ({ stored: _, ...rest }: Problem): Problem => rest;

inTurn.each(Object.keys(featureProblems))('a thread is given all of %s', (name) => {
  const problem = featureProblems[name](seededRandom(testSeed));
  const given = unshareProblem(structuredClone(shareProblem(problem)));
  expect(problemFeatures(given)).toEqual(problemFeatures(problem));
  expect(withoutForm(given)).toEqual(withoutForm(problem));
  for (const side of ['queries', 'keys'] as const)
    expect(posedRows(given)?.[side]).toEqual(posedRows(problem)?.[side]);
});

it('tensors of 16 bits and their results arrive too', () => {
  const random = seededRandom(testSeed);
  const problem = {
    ...featureProblems['a bias'](random),
    bias: normalTensor(random, 'fp16', [4, 19, 140]),
  };
  const given = unshareProblem(structuredClone(shareProblem(problem)));
  expect(runKernelModel('fa4', given)).toEqual(runKernelModel('fa4', problem));
});
