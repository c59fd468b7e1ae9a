import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  attentionProblem,
  describeProblem,
  regimeNames,
  type ProblemConstraints,
} from '../../properties/index.js';
import { decodeToFloat64, formats, type FormatName } from '../../src/formats/index.js';
import { problemShape, visibleKeys, type Problem, type Tensor } from '../../src/problem.js';
import { RequestError } from '../../src/request-error.js';

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

const small = {
  queries: { max: 6 },
  keys: { max: 6 },
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
    expect(new Set(problems.map(({ q }) => q.format))).toEqual(new Set(Object.keys(formats)));
    const lengths = new Set(shapes.flatMap(({ queries, keys }) => [queries, keys]));
    for (const edge of [1, 63, 64, 65, 127, 128, 129]) expect(lengths).toContain(edge);
    for (const holds of [
      (i: number) => shapes[i]!.queries > shapes[i]!.keys,
      (i: number) => shapes[i]!.queries < shapes[i]!.keys,
      (i: number) => shapes[i]!.qkDim !== shapes[i]!.vDim,
      (i: number) => shapes[i]!.groupSize > 1,
      (i: number) => shapes[i]!.kvHeads > 1,
      (i: number) => shapes[i]!.batch > 1,
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
    expect(share(({ softcap }) => softcap !== null)).toBeGreaterThan(0.1);
    expect(share(({ scale }) => scale < 0)).toBeGreaterThan(0.1);
    expect(share(({ scale }) => scale === 0)).toBeGreaterThan(0.1);
    expect(share(({ scale, q }) => scale === 1 / Math.sqrt(q.shape[3]!))).toBeGreaterThan(0.1);
  });

  it('are the same for the same seed, and other ones for another', () => {
    const again = sample({}, 20).map(describeProblem);
    expect(again).toEqual(problems.slice(0, 20).map(describeProblem));
    const others = fc.sample(attentionProblem(), { seed: seed + 1, numRuns: 20 });
    expect(others.map(describeProblem)).not.toEqual(again);
  });
});

describe('regimes of values', () => {
  const plain = { causal: false, window: false, softcap: false, scales: ['default'] } as const;
  const sizes = { keys: { min: 2, max: 9 }, queries: { max: 6 }, kvHeads: { max: 1 } };

  it.each(regimeNames)('%s keeps within every format', (regime) => {
    for (const format of Object.keys(formats) as FormatName[])
      for (const { q, k, v } of sample({ ...small, regimes: [regime], formats: [format] }, 10))
        for (const tensor of [q, k, v])
          for (const x of values(tensor))
            expect(Math.abs(x)).toBeLessThanOrEqual(formats[format].maxFinite);
  });

  const rows = (tensor: Tensor): number[][] => {
    const dim = tensor.shape[3]!;
    const flat = values(tensor);
    return Array.from({ length: flat.length / dim }, (_, i) => [
      ...flat.subarray(i * dim, (i + 1) * dim),
    ]);
  };
  const of = (regime: (typeof regimeNames)[number], formatList: FormatName[] = ['fp32']) =>
    sample({ ...plain, ...sizes, batch: { max: 1 }, regimes: [regime], formats: formatList }, 40);

  it('ascending scores never fall from key to key', () => {
    for (const problem of of('ascending-scores', ['fp32', 'bf16', 'e4m3'])) {
      const keys = rows(problem.k);
      for (const query of rows(problem.q)) {
        const scores = keys.map((key) => key.reduce((sum, x, c) => sum + x * query[c]!, 0));
        expect(scores).toEqual([...scores].sort((a, b) => a - b));
        expect(scores.at(-1)).toBeGreaterThan(scores[0]!);
      }
    }
  });

  it('constant keys are all alike, and not zero', () => {
    for (const problem of of('constant-keys')) {
      const keys = rows(problem.k);
      for (const key of keys) expect(key).toEqual(keys[0]);
      expect(keys[0]!.some((x) => x !== 0)).toBe(true);
    }
  });

  it('cancelling values come in equal keys and opposite values', () => {
    let exact = 0;
    for (const problem of of('cancelling-values')) {
      const [keys, columns] = [rows(problem.k), rows(problem.v)];
      for (let j = 1; j < keys.length; j += 2) {
        expect(keys[j]).toEqual(keys[j - 1]);
        columns[j]!.forEach((x, c) => {
          const first = columns[j - 1]![c]!;
          expect(Math.abs(x + first)).toBeLessThanOrEqual(2 ** -22 * Math.abs(first));
          if (x === -first) exact++;
        });
      }
    }
    expect(exact).toBeGreaterThan(0);
  });

  it('one channel of outliers is far larger than the rest', () => {
    const ratios = of('outlier-channel').flatMap(({ k }) => {
      const sums = rows(k).reduce((a, b) => a.map((x, c) => Math.abs(x) + Math.abs(b[c]!)));
      const sorted = [...sums].sort((a, b) => b - a);
      return sorted.length < 2 ? [] : [sorted[0]! / sorted[1]!];
    });
    expect(ratios.filter((ratio) => ratio > 4).length).toBeGreaterThan(0.8 * ratios.length);
  });

  it('zeros clear whole tensors', () => {
    for (const { q, k, v } of of('zeros'))
      expect([q, k, v].some((tensor) => values(tensor).every((x) => x === 0))).toBe(true);
  });

  it('large logits leave most weight to one key, tiny ones leave all alike', () => {
    const spread = (problem: Problem) => {
      const query = rows(problem.q)[0]!;
      const scores = rows(problem.k).map((key) =>
        Math.abs(problem.scale * key.reduce((sum, x, c) => sum + x * query[c]!, 0)),
      );
      return Math.max(...scores);
    };
    const larger = of('large-logits').filter((problem) => spread(problem) > 5);
    expect(larger.length).toBeGreaterThan(20);
    for (const problem of of('tiny')) expect(spread(problem)).toBeLessThan(5);
  });

  it('wide exponents reach both ends of the format', () => {
    for (const name of Object.keys(formats) as FormatName[]) {
      const format = formats[name];
      const all = of('wide-exponents', [name]).flatMap(({ q, k, v }) =>
        [q, k, v].flatMap((tensor) => [...values(tensor)].map(Math.abs)),
      );
      const exponents = all.filter((x) => x > 0).map(Math.log2);
      const span = format.maxExponent - format.minExponent;
      expect(Math.min(...exponents)).toBeLessThan(format.minExponent + 0.05 * span + 1);
      expect(Math.max(...exponents)).toBeGreaterThan(format.maxExponent - 0.05 * span - 1);
    }
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
      expect(holds(problem.scale, problem.q.shape[3]!)).toBe(true);
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
