import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runKernelModel } from '../../../kernels/index.js';
import { attentionOracle } from '../../../oracles/index.js';
import {
  checkKernel,
  modelPromises,
  resolvePromises,
  runCase,
  type AttentionKernel,
  type KernelPromises,
  type LawId,
  type RegimeName,
} from '../../../properties/index.js';
import { exactAttention, runBounds } from '../../../properties/laws/within-bound.js';
import { exactExp2, exactOfOctaves } from '../../../properties/laws/exact/exact-exp2.js';
import { exact, exactOfHotKeys } from '../../../properties/laws/exact/exact.js';
import { testBias, unbiased } from '../../../properties/laws/unbiased.js';
import { arrangeProblem, indices } from '../../../properties/laws/transform-problem.js';
import { randomValues } from '../../../properties/problems/values.js';
import { auditableOutput, elementAt } from '../../../src/audit/index.js';
import {
  encodeFromFloat64,
  formats,
  nextDown,
  round,
  ulp,
  type FormatName,
} from '../../../src/formats/index.js';
import {
  problemShape,
  visibleKeys,
  type Problem,
  type Tensor,
} from '../../../src/problem/index.js';
import { sampled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const boundLaws = [
  'weights-sum-to-one',
  'convexity',
  'score-shift',
  'key-permutation',
  'key-splitting',
  'repeated-keys',
  'lse-monotone',
  'configurations',
  'exact',
  'exact-exp2',
] as const satisfies readonly LawId[];

const small: KernelPromises = {
  sizes: {
    batch: { max: 1 },
    groupSize: { max: 2 },
    queries: { max: 6 },
    keys: { max: 150 },
    qkDim: { max: 8 },
    vDim: { max: 6 },
  },
  specialValues: false,
};

/** The outputs of exact attention after something was done to them, O in the format of Q. */
function exactKernel(
  change: (values: { out: Float64Array; lse: Float64Array }, problem: Problem) => void,
  rounded: (x: number, format: FormatName) => number = (x) => x,
): AttentionKernel {
  return (problem) => {
    const {
      shape,
      quantities: {
        out: { values: out },
        lse: { values: lse },
      },
    } = exactAttention(problem);
    change({ out, lse }, problem);
    const { format } = problem.q;
    const tensor = (name: FormatName, dims: number[], values: Float64Array): Tensor => ({
      format: name,
      shape: dims,
      data: encodeFromFloat64(formats[name], values),
    });
    const dims = [shape.batch, shape.heads, shape.queries];
    return {
      out: tensor(
        format,
        [...dims, shape.vDim],
        out.map((x) => rounded(x, format)),
      ),
      lse: tensor('fp32', dims, lse),
    };
  };
}

const regimes: readonly RegimeName[] = [
  'normal',
  'large',
  'constant-keys',
  'ones',
  'outlier-channel',
];

/** What of a law the suite finds violated on some problems of a seed; null for nothing. */
async function violationOf(
  law: LawId,
  kernel: AttentionKernel,
  promises: KernelPromises,
  runs = 12,
): Promise<string | null> {
  const options = { laws: [law], regimes, runs, seed: 7, shrinkSeconds: 0 };
  const strength = law === 'exact-exp2' ? ('bits' as const) : undefined;
  const promised = strength === undefined ? promises : { ...promises, laws: { [law]: strength } };
  const { laws } = await checkKernel(kernel, promised, options);
  expect(laws).toHaveLength(1);
  expect(laws[0].skipped).toBeNull();
  return laws[0].failure?.statement ?? null;
}

describe('correct kernels', () => {
  const models = {
    'naive-fp32': { ...modelPromises('naive-fp32'), skips: ['configurations', 'exact-exp2'] },
    fa4: { ...modelPromises('fa4'), skips: [] as string[] },
  };
  for (const [name, { kernel, promises, skips }] of Object.entries(models))
    inTurn.each(
      sampled(
        boundLaws.filter((law) => !skips.includes(law)),
        4,
      ),
    )(`${name} obeys %s`, async (law) => {
      const limited = { ...promises, sizes: small.sizes };
      expect(await violationOf(law, kernel, limited, 2)).toBeNull();
    });

  inTurn('obey key-splitting with errors as large as their bounds', async () => {
    const random = randomValues(1);
    const extreme = exactKernel(({ out, lse }, problem) => {
      const reference = exactAttention(problem);
      const outputs = runKernelModel('naive-fp32', problem);
      const bounds = runBounds({ problem, outputs }, reference, { premises: () => ({}) });
      const lost = (x: number, format: FormatName) => ulp(formats[format], Math.abs(x));
      out.forEach((x, i) => {
        const room = Math.max(0, bounds.out[i] - lost(x, problem.q.format));
        if (Number.isFinite(room)) out[i] += random.sign() * room * 0.9;
      });
      lse.forEach((x, i) => {
        const room = Math.max(0, bounds.lse[i] - lost(x, 'fp32'));
        if (Number.isFinite(room)) lse[i] += random.sign() * room * 0.9;
      });
    });
    expect(await violationOf('key-splitting', extreme, small, 6)).toBeNull();
  });

  it('obey convexity whatever their weights are', async () => {
    const random = randomValues(2);
    const anyWeights = exactKernel(({ out }, problem) => {
      const shape = problemShape(problem);
      const { format } = problem.v;
      const v = auditableOutput(problem.v, { ...shape, heads: shape.kvHeads, queries: shape.keys });
      for (let row = 0; row < out.length / shape.vDim; row++) {
        const { begin, end } = visibleKeys(problem, shape, row % shape.queries);
        const head = Math.floor(row / shape.queries);
        const kv = Math.floor(head / shape.groupSize);
        if (begin === end) continue;
        const weights = indices(end - begin).map(
          () => 2 ** -random.integer(0, 12) * random.uniform(),
        );
        weights[random.integer(0, weights.length - 1)] = 1;
        const sum = weights.reduce((total, w) => total + w, 0);
        for (let c = 0; c < shape.vDim; c++) {
          const products = weights.map(
            (w, j) => round(formats[format], w) * v[(kv * shape.keys + begin + j) * shape.vDim + c],
          );
          out[row * shape.vDim + c] = products.reduce((total, x) => total + x, 0) / sum;
        }
      }
    });
    expect(await violationOf('convexity', anyWeights, small, 30)).toBeNull();
  });
});

describe('broken kernels', () => {
  const scaled = (factor: number) =>
    exactKernel(({ out }) => out.forEach((x, i) => (out[i] = x * factor)));
  const withLse = (change: (lse: number, problem: Problem) => number) =>
    exactKernel(({ lse }, problem) => lse.forEach((x, i) => (lse[i] = change(x, problem))));
  const variant = (id: string) => modelPromises('fa4', new Map([['variant', id]])).kernel;
  /** Sees no key beyond the first 100. */
  const shortSighted: AttentionKernel = (problem) =>
    runKernelModel(
      'naive-fp32',
      arrangeProblem(problem, { keys: indices(Math.min(problemShape(problem).keys, 100)) }),
    );
  const fewKeys = { ...small, sizes: { ...small.sizes, keys: { min: 60, max: 310 } } };
  const unmasked = { ...fewKeys, causal: false, window: false };

  const broken: readonly [LawId, string, AttentionKernel, KernelPromises, RegExp][] = [
    ['weights-sum-to-one', 'a sum that is 5 % off', scaled(1.05), small, /^with V = 1, .*head \d/],
    [
      'weights-sum-to-one',
      'an odd column',
      exactKernel(({ out }, { v }) => {
        const vDim = v.shape.at(-1)!;
        out.forEach((x, i) => (out[i] = x * (i % vDim === 1 ? 1 - 2 ** -10 : 1)));
      }),
      { ...small, formats: ['fp16'], laws: { 'weights-sum-to-one': 'bits' } },
      /is 0\.99\d+ but (1|0\.\d+) in column 0/,
    ],
    [
      'weights-sum-to-one',
      'an LSE that reads V',
      exactKernel(({ out, lse }) => lse.forEach((x, i) => (lse[i] = x + (out[0] - 1) * 2 ** -16))),
      { ...small, laws: { 'weights-sum-to-one': 'bits' } },
      /^the LSE at .* with V = 1/,
    ],
    [
      'convexity',
      'outputs 1.5 times too large',
      scaled(1.5),
      small,
      /but its column of V lies between/,
    ],
    [
      'score-shift',
      'an LSE that never falls below 0',
      withLse((lse) => Math.max(lse, 0)),
      { ...small, emptyRows: false },
      /^with all scores .* (higher|lower), the LSE/,
    ],
    [
      'key-permutation',
      'keys beyond the 100th unseen',
      shortSighted,
      unmasked,
      /^with (all keys|the keys|whole blocks)/,
    ],
    [
      'key-splitting',
      'an LSE in base 2',
      withLse((lse) => lse / Math.LN2),
      small,
      /put together from/,
    ],
    [
      'repeated-keys',
      'keys beyond the 100th unseen',
      shortSighted,
      unmasked,
      /^with every key [23] times/,
    ],
    [
      'lse-monotone',
      'an LSE of means',
      withLse((lse, problem) => lse - Math.log(problemShape(problem).keys)),
      small,
      /^the LSE at head 0, query 0 is .* but/,
    ],
    [
      'lse-monotone',
      'an LSE that falls with the keys, within its range',
      withLse((_, problem) => 4 - problemShape(problem).keys / 4000),
      { ...unmasked, scales: ['zero'], formats: ['fp32'] },
      /of the first \d+ keys but .* of all \d+/,
    ],
    [
      'configurations',
      'a configuration that is off',
      scaled(1),
      { ...small, configurations: { 'tile=2': { kernel: scaled(1.1) } } },
      /^with tile=2, /,
    ],
    [
      'exact',
      'outputs that are cut off one ulp low',
      exactKernel(
        () => undefined,
        (x, format) => (x > 0 ? nextDown(formats[format], round(formats[format], x)) : x),
      ),
      small,
      /but exactly [\d.]+, which takes no rounding; \d+ of \d+/,
    ],
    ['exact', 'O without its rescale', variant('alpha-not-on-output'), fewKeys, /exactly|err by/],
    [
      'exact-exp2',
      'shifted whole exponents',
      variant('exp2-integer-shifted'),
      fewKeys,
      /exactly|LSE/,
    ],
  ];
  inTurn.each(sampled(broken, 6))('%s: %s', async (law, _, kernel, promises, sentence) => {
    expect(await violationOf(law, kernel, promises, 24)).toMatch(sentence);
  });
});

describe('exact problems', () => {
  const constructions = {
    exact: [exact, exactOfHotKeys],
    'exact-exp2': [exactExp2, exactOfOctaves],
  };
  const names: readonly FormatName[] = ['fp32', 'bf16', 'fp16', 'e4m3', 'e5m2'];
  for (const [id, [law, elementsOf]] of Object.entries(constructions) as [
    string,
    [typeof exact, typeof exactOfHotKeys],
  ][])
    it.each(names)(`${id} in %s: as the oracle has it, in most rows`, (format) => {
      const promises = resolvePromises({
        ...small,
        formats: [format],
        causal: false,
        window: false,
      });
      let count = 0;
      let elements = 0;
      for (const problem of fc.sample(law.problems!(promises), { seed: 3, numRuns: 12 })) {
        const shape = problemShape(problem);
        const out: Tensor = {
          format: format === 'e4m3' || format === 'e5m2' ? 'bf16' : format,
          shape: [],
          data: new Float64Array(),
        };
        const found = elementsOf({ problem, shape, outputs: { out, lse: null } });
        const reference = attentionOracle(problem);
        found.expected.forEach((value, i) => {
          if (Number.isNaN(value)) return;
          const error = Math.abs(reference.quantities.out.values[i] - value);
          expect(error, `element ${JSON.stringify(elementAt(shape, i))}`).toBeLessThanOrEqual(
            reference.quantities.out.radius[i] + 2 ** -500,
          );
          expect(round(formats[out.format], value)).toBe(value);
        });
        count += found.count;
        elements += reference.quantities.out.values.length;
      }
      expect(count / elements).toBeGreaterThan(0.6);
    });

  it('rows that are not of the kind are left alone', async () => {
    const promises = resolvePromises({ ...small, formats: ['bf16'] });
    const [problem] = fc.sample(exact.problems!(promises), { seed: 3, numRuns: 1 });
    const shape = problemShape(problem!);
    const out: Tensor = { format: 'bf16', shape: [], data: new Uint16Array() };
    const outputs = { out, lse: null };
    const capped = { ...problem!, softcap: 1 };
    expect(exactOfHotKeys({ problem: capped, shape, outputs }).count).toBe(0);
    expect(exactOfOctaves({ problem: problem!, shape, outputs }).count).toBe(0);
  });
});

describe('unbiased', () => {
  const promises = resolvePromises({
    formats: ['bf16'],
    sizes: { batch: { max: 1 }, vDim: { max: 16 }, keys: { max: 96 } },
  });
  const [first, ...problems] = fc.sample(unbiased.problems!(promises), { seed: 1, numRuns: 4 });

  it('holds for outputs rounded to nearest, and for large errors of either sign', async () => {
    const random = randomValues(5);
    const noisy = exactKernel(({ out }) =>
      out.forEach((x, i) => (out[i] = x * (1 + random.sign() * 0.01))),
    );
    for (const problem of [first!, ...problems])
      for (const kernel of [exactKernel(() => undefined), noisy]) {
        const lawCase = { problem, choice: 0 };
        const result = await runCase('unbiased', lawCase, kernel, promises, { diagnose: false });
        expect(result.status).toBe('held');
      }
  });

  it('fails for outputs that are cut off', async () => {
    const truncating = exactKernel(
      () => undefined,
      (x, name) => {
        const format = formats[name];
        return Math.sign(x) * ulp(format, x) * Math.floor(Math.abs(x) / ulp(format, x));
      },
    );
    const statements: string[] = [];
    for (const problem of [first!, ...problems]) {
      const lawCase = { problem, choice: 0 };
      const result = await runCase('unbiased', lawCase, truncating, promises, { diagnose: false });
      if (result.status === 'violated') statements.push(result.statement);
    }
    // Not where weights repeat their maximum: nothing is known of when they are divided.
    expect(statements.length).toBeGreaterThan(0);
    for (const statement of statements)
      expect(statement).toMatch(/independent groups, outputs are 0\.\d+ % too small/);
  });

  it('counts rows with the same leading key as one', () => {
    const shape = problemShape(first!);
    const same = arrangeProblem(first!, { queries: Array.from({ length: 64 }, () => 0) });
    const reference = exactAttention(same);
    const out = reference.quantities.out.values.map((x) => x * 1.002);
    const outputs = runKernelModel('naive-fp32', same);
    const run = { configuration: null, problem: same, outputs, out, lse: null };
    const result = testBias({ ...run, shape: problemShape(same) }, reference, false, promises);
    expect(result.groups).toBe(shape.batch * shape.heads);
    expect(Math.abs(result.mean)).toBeLessThan(result.limit);
  });
});
