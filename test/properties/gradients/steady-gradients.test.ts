import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  unitRoundoff,
} from '../../../src/formats/index.js';
import { problemShape, type Problem, type Tensor } from '../../../src/problem/index.js';
import { definedAttention } from '../../kernels/features/index.js';
import { tensor } from '../../setup/problems.js';
import type { Asked } from './defined-backward.js';
import { drawnCase, upTo } from './drawn-case.js';
import { tryByHand } from './law-by-hand.js';

type Format = 'fp32' | 'bf16' | 'fp16';

/** The tensor in a format, one element replaced where one is given. */
function stored(of: Tensor, format: Format, planted: number | null, which: number): Tensor {
  const values = decodeTensor(of);
  if (planted !== null) values[which % values.length] = planted;
  return { format, shape: of.shape, data: encodeFromFloat64(formats[format], values) };
}

/** Elements at the limits of what is steady, and a step beyond. */
const planted = fc.constantFrom(
  ...upTo(9).map(() => null),
  0,
  2 ** -12,
  -(2 ** -13),
  2 ** 12,
  -(2 ** 13),
);
const format = fc.constantFrom<Format>('fp32', 'fp32', 'bf16', 'fp16');

/** Problems of which scores lie close together, far apart, and so far that weights vanish. */
const cases = fc
  .record({
    asked: drawnCase({ masked: true }),
    scale: fc.oneof(fc.double({ min: 0.5, max: 40, noNaN: true }), fc.constantFrom(-15, 150, 700)),
    ofProblem: format,
    ofDout: format,
    value: planted,
    gradient: planted,
    which: fc.nat(),
    sink: fc.integer({ min: 0, max: 9 }).map((x) => x === 0),
    apart: fc.boolean(),
  })
  .map(({ asked, scale, ofProblem, ofDout, value, gradient, which, sink, apart }): Asked => {
    const { problem, dout } = asked;
    const { heads } = problemShape(problem);
    // Keys of few lengths: scores alike, or far apart and nothing between.
    const steps = decodeTensor(problem.k).map((x) => (x < 0 ? -1 : 1));
    const k = apart ? { ...problem.k, data: encodeFromFloat64(formats.fp32, steps) } : problem.k;
    return {
      problem: {
        ...problem,
        q: stored(problem.q, ofProblem, null, 0),
        k: stored(k, ofProblem, null, 0),
        v: stored(problem.v, ofProblem, value, which),
        scale,
        ...(sink ? { sink: { logits: tensor('fp32', [heads], () => 0), inLse: true } } : {}),
      },
      dout: stored(dout, ofDout, gradient, which >> 3),
    };
  });

/** Whether every weight of a row is surely no less than 2^-30, or surely 0 in fp32, next to the largest. */
function hasKnownWeights(problem: Problem, row: number, seen: readonly number[]): boolean {
  const { heads, kvHeads, groupSize, queries, keys, qkDim } = problemShape(problem);
  const [q, k] = [decodeTensor(problem.q), decodeTensor(problem.k)];
  const head = Math.floor(row / queries);
  const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
  const u = unitRoundoff(formats[problem.q.format]);
  const ranges = seen.map((key) => {
    const terms = upTo(qkDim).map((t) => q[row * qkDim + t] * k[(kv * keys + key) * qkDim + t]);
    const score = problem.scale * terms.reduce((a, b) => a + b, 0);
    const size = Math.abs(problem.scale) * terms.reduce((a, b) => a + Math.abs(b), 0);
    const radius = (4 * u + (qkDim + 4) * 2 ** -23) * size;
    return { least: score - radius, most: score + radius };
  });
  const least = Math.max(...ranges.map((one) => one.least));
  const most = Math.max(...ranges.map((one) => one.most));
  return ranges.every(
    (one) => (one.least - most) * Math.LOG2E >= -30 || (one.most - least) * Math.LOG2E <= -174,
  );
}

/** Whether dO times a power of two gives gradients times that to the bit, in any correct kernel. */
function isSteady({ problem, dout }: Asked): boolean {
  const isRoomy = (of: Tensor) => of.format === 'fp32' || of.format === 'bf16';
  const isUsable = (x: number) => x === 0 || (Math.abs(x) >= 2 ** -12 && Math.abs(x) <= 2 ** 12);
  const areUsable = [problem.v, dout].every((of) => decodeTensor(of).every(isUsable));
  return (
    problem.sink === undefined &&
    isRoomy(problem.q) &&
    isRoomy(dout) &&
    areUsable &&
    definedAttention(problem).visible.every((seen, row) => hasKnownWeights(problem, row, seen))
  );
}

describe('dO times a power of two', () => {
  it('is compared to the bit where nothing on the way underflows, else within the bounds', async () => {
    await fc.assert(
      fc.asyncProperty(
        cases,
        fc.nat({ max: 5 }),
        fc.nat(),
        fc.constantFrom('bits' as const, 'bits' as const, 'bits' as const, 'bound' as const),
        async (asked, form, which, strength) => {
          const changed = async (run: number, by: number) => {
            let isChanged = false;
            const { statement } = await tryByHand('gradients-linear', asked, {
              choice: 2 * form,
              strength,
              change: ({ values }, index) => {
                if (index !== run) return;
                const known = (['dq', 'dk', 'dv'] as const).flatMap((name) =>
                  [...values[name].keys()]
                    .filter((at) => Math.abs(values[name][at]) > 2 ** -1000)
                    .map((at) => [name, at] as const),
                );
                if (known.length === 0) return;
                const [name, at] = known[which % known.length];
                values[name][at] *= by;
                isChanged = true;
              },
            });
            fc.pre(isChanged);
            return statement;
          };
          const isExact = strength === 'bits' && isSteady(asked);
          for (const run of [0, 1]) {
            const statement = await changed(run, 1 + 2 ** -44);
            expect(statement === null).toBe(!isExact);
            if (isExact) expect(statement).toMatch(/ with dO times 2\^-?[135]$/);
          }
        },
      ),
      { numRuns: 50 },
    );
  });
});
