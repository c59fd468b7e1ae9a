import { expect, it } from 'vitest';
import { yardstickAttention } from '../../../kernels/index.js';
import { withYardstickMemory } from '../../../kernels/naive/yardstick-memory.js';
import { randomValues } from '../../../properties/problems/values.js';
import {
  decodeTensor,
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  smallestNormal,
  unitRoundoff,
} from '../../../src/formats/index.js';
import { problemShape } from '../../../src/problem/index.js';
import { WorkingMemories } from '../../../src/reuse.js';
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

const lengths = { keys: 0, values: 0, queries: 0, scores: 513, tile: 0, weights: 514 };

it.each(['bf16', 'fp16'] as const)('numbers are rounded to %s as formats do it', (name) => {
  const random = randomValues(testSeed);
  const format = formats[name];
  const { maxFinite } = format;
  const least = smallestNormal(format);
  const grid = () => 1 + random.integer(0, 2 ** (format.precision - 1)) * 2 * unitRoundoff(format);
  const near = [0, 2 ** -40, -(2 ** -40), unitRoundoff(format)];
  const drawn = Array.from({ length: 400 }, () => {
    const size = grid() * 2 ** random.integer(-30, 17);
    return random.sign() * size * (1 + near[random.integer(0, 3)]);
  });
  const small = Array.from(
    { length: 90 },
    () => random.normal() * least * 2 ** -random.integer(0, 9),
  );
  const ends = [
    0,
    -0,
    NaN,
    Infinity,
    -Infinity,
    maxFinite,
    -maxFinite * (1 + 2 ** -5),
    1e300,
    5e-324,
  ];
  const values = Float64Array.from([...drawn, ...small, ...ends]);
  const wanted = decodeToFloat64(encodeFromFloat64(format, values), format);
  withYardstickMemory(new WorkingMemories(), lengths, ({ kernels, format: placed, scores }) => {
    const ulpOfOne = 2 * unitRoundoff(format);
    const at = placed.write({ smallestNormal: least, ulpOfOne, maxFinite });
    scores.view.set(values);
    kernels.roundNumbers(scores.address, values.length, at);
    expect([...scores.view.subarray(0, values.length)]).toEqual([...wanted]);
  });
});

it.each(['bf16', 'fp16'] as const)(
  'weights in %s are those of any exponential, or left',
  (name) => {
    const random = randomValues(testSeed + 1);
    const format = formats[name];
    const { maxFinite } = format;
    let done = 0;
    for (let run = 0; run < 60; run++) {
      const count = random.integer(1, 513);
      const spread = 10 ** random.integer(-2, 3);
      const sink = random.sign() > 0 ? -Infinity : random.normal() * spread;
      const values = Float64Array.from({ length: count }, () => random.normal() * spread);
      const largest = Math.max(sink, ...values);
      const weights = values.map((x) => Math.exp(x - largest));
      const total = weights.reduce(
        (a, b) => a + b,
        sink === -Infinity ? 0 : Math.exp(sink - largest),
      );
      const divided = weights.map((x) => x / total);
      const wanted = decodeToFloat64(encodeFromFloat64(format, divided), format);
      withYardstickMemory(new WorkingMemories(), lengths, (memory) => {
        const { kernels, scores } = memory;
        const ulpOfOne = 2 * unitRoundoff(format);
        const at = memory.format.write({
          smallestNormal: smallestNormal(format),
          ulpOfOne,
          maxFinite,
        });
        scores.view.set(values);
        const { address } = memory.weights;
        const isDone = kernels.roundedSoftmax(scores.address, address, count, sink, at) !== 0;
        done += isDone ? 1 : 0;
        expect([...scores.view.subarray(0, count)]).toEqual([...(isDone ? wanted : values)]);
      });
    }
    expect(done).toBeGreaterThan(55);
  },
);

it('a weight near a tie is left', () => {
  withYardstickMemory(new WorkingMemories(), lengths, (memory) => {
    const { kernels, scores, weights } = memory;
    const at = memory.format.write({
      smallestNormal: 2 ** -126,
      ulpOfOne: 2 ** -7,
      maxFinite: 3e38,
    });
    const share = 0.5 + 2 ** -9;
    scores.view.set([Math.log(share), Math.log(1 - share)]);
    expect(kernels.roundedSoftmax(scores.address, weights.address, 2, -Infinity, at)).toBe(0);
    scores.view.set([Math.log(share + 2 ** -30), Math.log(1 - share - 2 ** -30)]);
    expect(kernels.roundedSoftmax(scores.address, weights.address, 2, -Infinity, at)).not.toBe(0);
  });
});
