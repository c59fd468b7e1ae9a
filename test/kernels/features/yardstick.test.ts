import { expect } from 'vitest';
import { yardstickAttention } from '../../../kernels/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import { problemShape } from '../../../src/problem/index.js';
import { sampled, testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { definedAttention } from './defined-attention.js';
import { featureProblems, seededRandom } from './feature-problems.js';

const inTurn = turns(import.meta.url);

inTurn.each(sampled(Object.keys(featureProblems), 8))('the yardstick computes %s', (name) => {
  const problem = featureProblems[name](seededRandom(testSeed));
  const { out } = definedAttention(problem);
  const largest = decodeTensor(problem.v).reduce((a, b) => Math.max(a, Math.abs(b)), 1);
  // Everything is rounded to the format of Q: bf16, or e4m3 with 4 significant bits.
  const rounding = problem.q.format === 'e4m3' ? 2 ** -1 : 2 ** -4;
  yardstickAttention(problem, problemShape(problem)).forEach((x, i) =>
    expect(Math.abs(x - out[i])).toBeLessThan(rounding * largest),
  );
});
