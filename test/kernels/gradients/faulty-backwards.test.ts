import { createHash } from 'node:crypto';
import { describe, expect } from 'vitest';
import { formats, patternsOf, type Tensor } from '../../../src/formats/index.js';
import { sampled, testSeed } from '../../setup/effort.js';
import { featureProblems, seededRandom } from '../features/index.js';
import { backwardKernel } from './backward-kernel.js';
import type { FaultyBackward } from './fault.js';
import { faultyBackwards } from './faulty-backwards.js';
import {
  drawDout,
  exactGradients,
  gradientError,
  gradientsOf,
  sharedOf,
} from './gradient-errors.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** Bits as text: short where it fails, unlike a list of all of them. */
const bits = (tensor: Tensor) =>
  createHash('sha256').update(patternsOf(tensor.data, formats[tensor.format])).digest('hex');
const correct = backwardKernel();
/** All but the one that takes its time: 'a block mask' stands for it. */
const names = Object.keys(featureProblems).filter((name) => name !== 'a block mask of tiles');

/** An example with what is right there, once for all the faults that share it. */
const examples = new Map<FaultyBackward['example'], ReturnType<typeof draw>>();
function draw(example: FaultyBackward['example']) {
  const problem = example(seededRandom(testSeed));
  const dout = drawDout(seededRandom(testSeed + 1), problem);
  return { problem, dout, exact: exactGradients(problem, dout), right: correct(problem, dout) };
}
function drawn(example: FaultyBackward['example']) {
  const known = examples.get(example) ?? draw(example);
  examples.set(example, known);
  return known;
}

describe('faulty backward kernels', () => {
  inTurn.each(faultyBackwards.map(({ name }) => name))('%s is off on its example', (name) => {
    const {
      kernel,
      example,
      wrong,
      touches,
      least = 3,
    } = faultyBackwards.find((one) => one.name === name)!;
    const { problem, dout, exact, right } = drawn(example);
    expect(touches(problem)).toBe(true);
    const given = kernel(problem, dout);
    const ratios = gradientsOf.map(
      (of) => gradientError(given[of], exact, of) / gradientError(right[of], exact, of),
    );
    if (process.env['GRADIENTS_TABLE'] !== undefined)
      console.info(name, ...ratios.map((ratio) => ratio.toPrecision(3)));
    for (const of of sharedOf)
      if (wrong.includes(of))
        expect(gradientError(given[of]!, exact, of)).toBeGreaterThan(
          10 * gradientError(right[of]!, exact, of),
        );
    gradientsOf.forEach((of, i) => {
      if (wrong.includes(of)) expect(ratios[i], of).toBeGreaterThan(least);
      else expect(bits(given[of]), of).toEqual(bits(right[of]));
    });
    expect(bits(given.out)).toEqual(bits(right.out));
    expect(bits(given.lse)).toEqual(bits(right.lse));
  });

  inTurn.each(sampled(names, 2))(
    'have the bits of the correct one where they do nothing: %s',
    (name) => {
      const problem = featureProblems[name](seededRandom(testSeed));
      const dout = drawDout(seededRandom(testSeed + 1), problem);
      const right = correct(problem, dout);
      for (const { name: fault, kernel, touches } of faultyBackwards) {
        if (touches(problem)) continue;
        const given = kernel(problem, dout);
        for (const of of [...gradientsOf, ...sharedOf]) {
          const [one, other] = [given[of], right[of]];
          if (other !== undefined) expect(bits(one!), `${fault} ${of}`).toEqual(bits(other));
        }
      }
    },
  );
});
