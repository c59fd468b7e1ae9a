import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  attentionProblem,
  describeProblem,
  featureKinds,
  fittingRegimes,
  regimeNames,
  type ProblemConstraints,
} from '../../../properties/index.js';
import {
  decodeToFloat64,
  formats,
  type FormatName,
  plainFormats,
} from '../../../src/formats/index.js';
import {
  problemShape,
  visibleKeys,
  type Problem,
  type Tensor,
} from '../../../src/problem/index.js';
import { servedRegimeNames, usualRegimeNames } from '../../../properties/problems/index.js';
import { RequestError } from '../../../src/request-error.js';

const seed = 42;

function sample(constraints: ProblemConstraints, numRuns: number): Problem[] {
  return fc.sample(attentionProblem(constraints), { seed, numRuns });
}

function values(tensor: Tensor): Float64Array {
  return decodeToFloat64(tensor.data, formats[tensor.format]);
}

function hasEmptyRow(problem: Problem): boolean {
  const shape = problemShape(problem);
  return Array.from({ length: shape.queries }, (_, i) => visibleKeys(problem, shape, i)).some(
    ({ begin, end }) => begin >= end,
  );
}

/** Whether some row that sees keys sees none of the last of several blocks of 128. */
function hasMaskedLastBlock(problem: Problem): boolean {
  const shape = problemShape(problem);
  const last = Math.floor((shape.keys - 1) / 128) * 128;
  return Array.from({ length: shape.queries }, (_, i) => visibleKeys(problem, shape, i)).some(
    ({ begin, end }) => begin < end && end <= last,
  );
}

const lengths = { queries: { max: 6 }, keys: { max: 6 } };
const small = {
  ...lengths,
  qkDim: { max: 4 },
  vDim: { max: 4 },
} satisfies ProblemConstraints;

describe('generated problems', () => {
  const problems = sample({}, 400);
  const shapes = problems.map(problemShape);
  const share = (holds: (problem: Problem, index: number) => boolean) =>
    problems.filter(holds).length / problems.length;

  it('fit together and have finite values in their format', () => {
    for (const { q, k, v } of problems)
      for (const tensor of [q, k, v]) {
        expect(tensor.format).toBe(q.format);
        expect(tensor.data).toHaveLength(tensor.shape.reduce((a, b) => a * b));
        expect(values(tensor).every(Number.isFinite)).toBe(true);
      }
  });

  it('cover formats, tile edges, unequal lengths and dimensions, groups and batches', () => {
    expect(new Set(problems.map(({ q }) => q.format))).toEqual(new Set(plainFormats));
    const lengths = new Set(shapes.flatMap(({ queries, keys }) => [queries, keys]));
    for (const edge of [1, 63, 64, 65, 127, 128, 129, 255, 256, 257])
      expect(lengths).toContain(edge);
    for (const holds of [
      (i: number) => shapes[i].queries > shapes[i].keys,
      (i: number) => shapes[i].queries < shapes[i].keys,
      (i: number) => shapes[i].qkDim !== shapes[i].vDim,
      (i: number) => shapes[i].groupSize > 1,
      (i: number) => shapes[i].kvHeads > 1,
      (i: number) => shapes[i].batch > 1,
    ])
      expect(share((_, i) => holds(i))).toBeGreaterThan(0.2);
  });

  it('cover masks, empty rows, softcaps and kinds of scale', () => {
    expect(share(({ causal }) => causal)).toBeGreaterThan(0.2);
    expect(share(({ causal }) => !causal)).toBeGreaterThan(0.2);
    expect(share(({ window }) => window !== null)).toBeGreaterThan(0.2);
    expect(share(({ window }) => window?.left === -1)).toBeGreaterThan(0.02);
    expect(share(({ window }) => window?.right === -1)).toBeGreaterThan(0.02);
    expect(share(hasEmptyRow)).toBeGreaterThan(0.05);
    expect(share(hasMaskedLastBlock)).toBeGreaterThan(0.1);
    expect(share(({ softcap }) => softcap !== null)).toBeGreaterThan(0.1);
    expect(share(({ scale }) => scale < 0)).toBeGreaterThan(0.1);
    expect(share(({ scale }) => scale === 0)).toBeGreaterThan(0.1);
    expect(share(({ scale, q }) => scale === 1 / Math.sqrt(q.shape[3]))).toBeGreaterThan(0.1);
  });

  it('are the same for the same seed, and other ones for another', () => {
    const again = sample({}, 20).map(describeProblem);
    expect(again).toEqual(problems.slice(0, 20).map(describeProblem));
    const others = fc.sample(attentionProblem(), { seed: seed + 1, numRuns: 20 });
    expect(others.map(describeProblem)).not.toEqual(again);
  });
});

describe('constraints', () => {
  const generatedAndShrunk = (constraints: ProblemConstraints): Problem[] => {
    const arbitrary = attentionProblem(constraints);
    const met: Problem[] = [];
    for (const reject of [() => true, (problem: Problem) => problem.v.data.length % 2 === 0])
      fc.check(
        fc.property(arbitrary, (problem) => {
          met.push(problem);
          return !reject(problem);
        }),
        { seed, numRuns: 40 },
      );
    return [...met, ...sample(constraints, 60)];
  };

  it('on sizes hold before and after shrinking', () => {
    const constraints = {
      batch: { min: 2, max: 3 },
      kvHeads: { min: 3, max: 3 },
      groupSize: { max: 1 },
      queries: { min: 5, max: 7 },
      keys: { min: 0, max: 2 },
      qkDim: { min: 40 },
      vDim: { max: 2 },
    };
    const problems = generatedAndShrunk(constraints);
    expect(problems.length).toBeGreaterThan(60);
    for (const problem of problems) {
      const shape = problemShape(problem);
      expect([2, 3]).toContain(shape.batch);
      expect(shape.kvHeads).toBe(3);
      expect(shape.heads).toBe(3);
      expect([5, 6, 7]).toContain(shape.queries);
      expect([0, 1, 2]).toContain(shape.keys);
      expect(shape.qkDim).toBe(40);
      expect([1, 2]).toContain(shape.vDim);
    }
    expect(problems.some((problem) => problemShape(problem).keys === 0)).toBe(true);
  });

  it.each([true, false])('on masks and softcap hold: all %s', (present) => {
    const constraints = { ...small, causal: present, window: present, softcap: present };
    for (const { causal, window, softcap } of generatedAndShrunk(constraints)) {
      expect(causal).toBe(present);
      expect(window !== null).toBe(present);
      expect(softcap !== null).toBe(present);
    }
  });

  it('on formats hold', () => {
    for (const { q, k, v } of generatedAndShrunk({ ...small, formats: ['e5m2', 'bf16'] }))
      for (const { format } of [q, k, v]) expect(['e5m2', 'bf16']).toContain(format);
  });

  it.each([
    ['default', (scale: number, qkDim: number) => scale === 1 / Math.sqrt(qkDim)],
    ['negative', (scale: number) => scale < 0],
    ['zero', (scale: number) => scale === 0],
    ['odd', (scale: number) => scale > 0],
  ] as const)('on the scale hold: %s', (kind, holds) => {
    for (const problem of generatedAndShrunk({ ...small, scales: [kind] }))
      expect(holds(problem.scale, problem.q.shape[3])).toBe(true);
  });

  it('on listed dimensions hold, alike for all tensors', () => {
    const dims = [40, 8, 24];
    const problems = generatedAndShrunk({ ...lengths, dims });
    const found = problems.map(problemShape).map(({ qkDim, vDim }) => {
      expect(qkDim).toBe(vDim);
      return qkDim;
    });
    expect(new Set(found)).toEqual(new Set(dims));
    for (const problem of generatedAndShrunk({ ...lengths, dims, qkDim: { max: 24 } }))
      expect([8, 24]).toContain(problem.q.shape[3]);
  });

  it('on the number of elements hold, whatever the ranges, but not below their minimum', () => {
    const wide = { queries: { max: 2000 }, keys: { max: 5000 }, qkDim: { max: 256 } };
    for (const maximumElements of [40_000, undefined]) {
      const most = maximumElements ?? 2 ** 21;
      const sizes = sample({ ...wide, maximumElements }, 40).map((problem) => {
        const { batch, heads, queries, keys, qkDim, vDim } = problemShape(problem);
        return batch * heads * queries * keys * Math.max(qkDim, vDim);
      });
      expect(Math.max(...sizes)).toBeLessThanOrEqual(most);
      expect(Math.max(...sizes)).toBeGreaterThan(most / 4);
    }
    const large = { regimes: ['normal' as const], queries: { min: 400 }, qkDim: { min: 128 } };
    const [problem] = sample({ ...large, keys: { min: 100 } }, 1);
    expect(problemShape(problem!)).toMatchObject({ queries: 400, keys: 100, qkDim: 128 });
  });

  it('on the order of blocks hold', () => {
    for (const [order, sign] of [
      ['first-to-last', 1],
      ['last-to-first', -1],
    ] as const) {
      const tiling = { blockKeys: 16, threshold: 4, order };
      for (const { q, k } of sample({ formats: ['fp32'], regimes: ['steps-above'], tiling }, 20)) {
        const dim = q.shape[3];
        const score = (key: number) =>
          values(k)
            .subarray(key * dim, (key + 1) * dim)
            .reduce((sum, x, c) => sum + x * values(q)[c], 0);
        expect(score(16) - score(0)).toBe(sign * (4 + 1 / 16));
      }
    }
  });

  it('leave out the regimes that they have no room for', () => {
    expect(fittingRegimes()).toEqual(usualRegimeNames);
    expect(fittingRegimes({ features: featureKinds })).toEqual(servedRegimeNames);
    expect(regimeNames.slice(0, usualRegimeNames.length)).toEqual(usualRegimeNames);
    const fitting = fittingRegimes({ keys: { max: 150 }, scales: ['default'] });
    expect(fitting).toContain('sink');
    for (const name of ['steps-below', 'long-tail', 'integer-scores'] as const)
      expect(fitting).not.toContain(name);
    expect(fittingRegimes({ tiling: { blockKeys: 512 } })).toContain('steps-below');
  });

  it('can forbid empty rows', () => {
    for (const constraints of [
      {},
      { causal: true },
      { window: true },
      { window: true, causal: true },
    ])
      for (const problem of generatedAndShrunk({ ...small, ...constraints, emptyRows: false }))
        expect(hasEmptyRow(problem)).toBe(false);
  });

  it('can plant special values, which e4m3 has fewer of', () => {
    const kinds = (constraints: ProblemConstraints) => {
      const found = new Set<string>();
      for (const { q, k, v } of sample({ ...small, ...constraints }, 150))
        for (const tensor of [q, k, v])
          for (const x of values(tensor)) if (!Number.isFinite(x)) found.add(String(x));
      return [...found].sort();
    };
    expect(kinds({})).toEqual([]);
    expect(kinds({ specialValues: ['nan'] })).toEqual(['NaN']);
    expect(kinds({ specialValues: ['infinity'] })).toEqual(['-Infinity', 'Infinity']);
    expect(kinds({ specialValues: ['nan', 'infinity'], formats: ['e4m3'] })).toEqual(['NaN']);
  });

  it.each<[ProblemConstraints, RegExp]>([
    [{ formats: [] }, /constraint formats is empty; leave it out, or choose from fp64/],
    [{ formats: ['fp8' as FormatName] }, /constraint formats has "fp8"; choose from fp64/],
    [{ regimes: [] }, /constraint regimes is empty/],
    [{ regimes: ['weird' as 'normal'] }, /constraint regimes has "weird"; choose from normal/],
    [{ scales: [] }, /constraint scales is empty/],
    [{ specialValues: ['inf' as 'nan'] }, /constraint specialValues has "inf"; choose from nan/],
    [{ dims: [] }, /constraint dims is empty/],
    [{ dims: [64, 0.5] }, /constraint dims has 0\.5; give whole numbers from 1/],
    [{ dims: [64], qkDim: { max: 32 } }, /constraint dims has none of the numbers that qkDim/],
    [{ maximumElements: NaN }, /constraint maximumElements is NaN/],
    [{ maximumElements: 1, keys: { min: 5 } }, /normal needs maximumElements from 5;/],
    [{ tiling: { blockKeys: 0 } }, /constraint tiling\.blockKeys is 0/],
    [{ tiling: { threshold: 0.3 } }, /tiling\.threshold is 0\.3; give a multiple of 0\.0625/],
    [{ tiling: { threshold: Infinity } }, /tiling\.threshold is Infinity/],
    [{ tiling: { order: 'up' as 'first-to-last' } }, /tiling\.order is "up"; choose from first/],
    [
      { regimes: ['steps-below', 'sink'], keys: { max: 1 } },
      /no regime fits .*: steps-below needs keys from 129; sink needs keys from 2; loosen/,
    ],
    [{ regimes: ['integer-scores'], scales: ['zero'] }, /integer-scores needs scales odd/],
    [{ regimes: ['steps-above'], dims: [8, 9] }, /steps-above needs dims from 10/],
    [{ keys: { min: 9, max: 3 } }, /constraint keys has min 9 above max 3/],
    [{ queries: { min: -1 } }, /constraint queries.min is -1; give a whole number from 0/],
    [{ vDim: { max: 2.5 } }, /constraint vDim.max is 2.5/],
    [{ qkDim: { max: NaN } }, /constraint qkDim.max is NaN/],
    [{ batch: { max: 0 } }, /constraint batch.max is 0; give a whole number from 1/],
    [{ sizes: 3 } as ProblemConstraints, /there is no constraint "sizes"; choose from batch/],
    [{ emptyRows: false, keys: { max: 0 } }, /emptyRows is false but keys.max is 0/],
    [
      { emptyRows: false, causal: true, queries: { min: 9 }, keys: { max: 4 } },
      /queries.min 9 exceeds keys.max 4/,
    ],
    [{ specialValues: ['infinity'], formats: ['e4m3'] }, /e4m3 has none; add a format that has/],
  ])('%o are refused', (constraints, message) => {
    expect(() => attentionProblem(constraints)).toThrow(RequestError);
    expect(() => attentionProblem(constraints)).toThrow(message);
  });

  it('that are just possible are not', () => {
    for (const constraints of [
      { emptyRows: false, causal: true, queries: { min: 4, max: 4 }, keys: { max: 4 } },
      { keys: { min: 500 }, queries: { max: 0, min: 0 } },
      { specialValues: ['infinity'], formats: ['e4m3', 'e5m2'] },
    ] satisfies ProblemConstraints[])
      expect(sample(constraints, 5)).toHaveLength(5);
  });
});
