import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  describeCase,
  doutKinds,
  featureKinds,
  gradientProblem,
  type GradientProblem,
} from '../../../properties/index.js';
import { drawDout } from '../../../properties/problems/gradients/draw-dout.js';
import { randomValues } from '../../../properties/problems/index.js';
import { decodeTensor, encodeFromFloat64, formats } from '../../../src/formats/index.js';
import { problemShape, type Tensor } from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';

/** How often each is tried. */
const runs = { numRuns: scaled(30), seed: testSeed };

/** Every problem that constraints admit, with features. */
const everything = gradientProblem({
  features: featureKinds.filter((kind) => kind !== 'padded' && kind !== 'paged'),
  maximumElements: 2 ** 14,
});

/** Those of a regime that holds no sizes and no values, so that all can be simplified. */
const normal = gradientProblem({ regimes: ['normal'] });

function fits({ problem, dout }: GradientProblem): void {
  const { batch, heads, queries, vDim } = problemShape(problem);
  expect(dout.shape).toEqual([batch, heads, queries, vDim]);
  expect(dout.data).toHaveLength(batch * heads * queries * vDim);
  const isShort = formats[problem.q.format].storageBits < 16;
  expect(dout.format).toBe(isShort ? 'bf16' : problem.q.format);
  for (const x of decodeTensor(dout)) expect(Number.isFinite(x)).toBe(true);
}

/** The simplest case that fails, and all that failed on the way to it. */
function shrunken(
  fails: (posed: GradientProblem) => boolean,
  problems = everything,
): GradientProblem {
  const { counterexample } = fc.check(
    fc.property(problems, (posed) => {
      fits(posed);
      return !fails(posed);
    }),
    { ...runs, numRuns: 200 },
  );
  if (counterexample === null) throw new Error('nothing fails');
  return counterexample[0];
}

describe('problems with the gradient of their output', () => {
  it('have one that fits, finite, in the format of outputs', () => {
    fc.assert(
      fc.property(everything, (posed) => fits(posed)),
      runs,
    );
  });

  it('are the same for the same seed', () => {
    const drawn = () => fc.sample(everything, { seed: testSeed, numRuns: 3 }).map(describeCase);
    expect(drawn()).toEqual(drawn());
  });

  it('are simplified with it, to one zero where anything fails', () => {
    const { problem, dout } = shrunken(() => true, normal);
    expect(Object.values(problemShape(problem)).every((size) => size === 1)).toBe(true);
    expect([...decodeTensor(dout)]).toEqual([0]);
  });

  it('keep what of it is needed, and no more', () => {
    const sum = (tensor: Tensor) => decodeTensor(tensor).reduce((a, b) => a + Math.abs(b), 0);
    const { problem, dout } = shrunken((posed) => sum(posed.dout) >= 1, normal);
    expect(sum(dout)).toBe(1);
    expect(dout.data).toHaveLength(1);
    expect(sum(problem.v)).toBe(0);
  });

  it('keep rows of it with the rows of Q', () => {
    // What each row of dO is of is written into Q: whatever is cut off, the others still fit.
    const { problem, dout } = fc.sample(
      gradientProblem({
        formats: ['fp32'],
        regimes: ['normal'],
        batch: { min: 2, max: 2 },
        queries: { min: 5, max: 5 },
        qkDim: { min: 1, max: 1 },
        vDim: { min: 1, max: 1 },
      }),
      { seed: testSeed, numRuns: 1 },
    )[0];
    const numbered = Float64Array.from(problem.q.data, (_, i) => 3 + 2 * i);
    const data = encodeFromFloat64(formats.fp32, numbered);
    const posed = { problem: { ...problem, q: { ...problem.q, data } }, dout: { ...dout, data } };
    const arbitrary = gradientProblem({ formats: ['fp32'] });
    expect(arbitrary.canShrinkWithoutContext(posed)).toBe(true);
    const parts = [...arbitrary.shrink(posed, undefined)].map(({ value }) => value);
    const smaller = parts.filter(({ dout: { data: left } }) => left.length < data.length);
    expect(smaller.length).toBeGreaterThan(5);
    for (const part of smaller)
      expect(decodeTensor(part.dout)).toEqual(decodeTensor(part.problem.q));
  });
});

describe('regimes of dO', () => {
  const sizes = { batch: 2, kvHeads: 1, groupSize: 2, queries: 40, keys: 8, qkDim: 4, vDim: 6 };
  const length = 2 * 2 * 40 * 6;
  const of = (name: keyof typeof doutKinds) =>
    doutKinds[name].draw({ length, columns: 6, random: randomValues(testSeed) });

  it('are what they say', () => {
    expect(new Set(of('one-signed').map(Math.sign)).size).toBe(1);
    expect(Math.max(...of('large').map(Math.abs))).toBeGreaterThan(64);
    const rows = [...of('one-row')].filter((x) => x !== 0).length / 6;
    expect(rows).toBeGreaterThan(0);
    expect(rows).toBeLessThan(20);
    expect([...of('whole')].every((x) => Number.isInteger(x) && Math.abs(x) <= 2)).toBe(true);
  });

  it('have one sign more often than not where maxima repeat', () => {
    const v = 'bf16' as const;
    const random = randomValues(testSeed);
    const drawn = Array.from({ length: 60 }, () =>
      drawDout({ sizes, formats: { q: v, k: v, v } }, 'repeated-maxima', random),
    );
    const oneSigned = drawn.filter(({ values }) => new Set([...values].map(Math.sign)).size === 1);
    expect(oneSigned.length).toBeGreaterThan(20);
  });
});
