import { describe, expect, it } from 'vitest';
import type { AttentionKernel } from '../../../properties/index.js';
import { decodeTensor, formats, patternsOf, type Tensor } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { sampled, testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { faultyKernels } from './faulty-kernels.js';
import { featureKernel } from './feature-kernel.js';
import { featureProblems, normalProblem, seededRandom } from './feature-problems.js';

const inTurn = turns(import.meta.url);

const problems = Object.entries(featureProblems).map(
  ([name, draw]) => [name, draw(seededRandom(testSeed))] as const,
);
const bits = (tensor: Tensor) => Array.from(patternsOf(tensor.data, formats[tensor.format]));

/** The largest distance of two kernels' outputs on a problem, NaN counting as infinite. */
async function distance(a: AttentionKernel, b: AttentionKernel, problem: Problem) {
  const [x, y] = [await a(problem), await b(problem)];
  const apart = (one: Tensor, other: Tensor) => {
    const values = decodeTensor(other);
    return decodeTensor(one).reduce((most, value, i) => {
      const far = value === values[i] ? 0 : Math.abs(value - values[i]);
      return Math.max(most, Number.isNaN(far) ? Infinity : far);
    }, 0);
  };
  return Math.max(apart(x.out, y.out), apart(x.lse as Tensor, y.lse as Tensor));
}

describe.each(faultyKernels)('the faulty kernel $name', (fault) => {
  const { touches, example, correct, create } = fault;

  inTurn('has the bits of the correct one where it has nothing to do', async () => {
    const others = problems.filter(([, problem]) => !touches(problem));
    for (const [name, problem] of sampled(others, 1)) {
      const [faulty, right] = [await create()(problem), await featureKernel(correct)(problem)];
      expect(bits(faulty.out), name).toEqual(bits(right.out));
      expect(bits(faulty.lse as Tensor), name).toEqual(bits(right.lse as Tensor));
    }
  });

  inTurn('is off by more than rounding on its example', async () => {
    if (example === null) return;
    const problem = featureProblems[example](seededRandom(testSeed));
    expect(touches(problem)).toBe(true);
    expect(await distance(create(), featureKernel(correct), problem)).toBeGreaterThan(2 ** -4);
  });
});

const named = (name: string) => faultyKernels.find((fault) => fault.name === name)!;

it('a batch changes the bits of splits-by-batch, and nothing but bits', async () => {
  const both = normalProblem(seededRandom(testSeed), { batch: 2 });
  const half = (tensor: Tensor): Tensor => ({
    ...tensor,
    shape: [1, ...tensor.shape.slice(1)],
    data: tensor.data.slice(0, tensor.data.length / 2),
  });
  const alone = { ...both, q: half(both.q), k: half(both.k), v: half(both.v) };
  const kernel = named('splits-by-batch').create();
  const [among, single] = [await kernel(both), await kernel(alone)];
  expect(bits(half(among.lse as Tensor))).not.toEqual(bits(single.lse as Tensor));
  expect(await distance(kernel, featureKernel(), both)).toBeLessThan(2 ** -5);
});

it('one-compiled-kernel is wrong from the second configuration on', async () => {
  const plain = normalProblem(seededRandom(testSeed));
  const causal = { ...plain, causal: true };
  const kernel = named('one-compiled-kernel').create();
  expect(await distance(kernel, featureKernel(), plain)).toBe(0);
  expect(await distance(kernel, featureKernel(), causal)).toBeGreaterThan(2 ** -4);
  expect(await distance(named('one-compiled-kernel').create(), featureKernel(), causal)).toBe(0);
});
