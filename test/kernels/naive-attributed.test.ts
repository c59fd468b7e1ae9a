import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  findKernelModel,
  type AttributedKernel,
  type EmulatedNames,
  type KernelModel,
} from '../../kernels/index.js';
import { attentionOracle } from '../../oracles/index.js';
import { attentionProblem, regimeNames } from '../../properties/index.js';
import {
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  round,
  storageOf,
  type FormatName,
} from '../../src/formats/index.js';
import type { Problem, Tensor } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { scaled } from '../setup/effort.js';
import { singleHead, tensorOfRows, type Rows } from '../setup/problems.js';

const models = ['naive-fp32', 'naive-input'].map(findKernelModel);
const noSettings = new Map<string, string>();
const nothing: EmulatedNames = new Set();

function attribute(model: KernelModel, problem: Problem): AttributedKernel {
  return model.attribute(problem, noSettings);
}

/** Whole outputs and LSEs of every run. */
function runAll(kernel: AttributedKernel, choices: readonly EmulatedNames[]) {
  const { batch, heads, queries, vDim } = kernel.shape;
  const rows = batch * heads * queries;
  const outputs = choices.map(() => new Float64Array(rows * vDim));
  const lse = choices.map(() => new Float64Array(rows));
  const run = kernel.prepareRuns(choices);
  for (let piece = 0; piece < kernel.pieces; piece++) {
    const result = run(piece);
    expect({ first: result.firstRow, rows: result.rows }).toEqual(kernel.rowsOf(piece));
    result.outputs.forEach((out, i) => outputs[i].set(out, result.firstRow * vDim));
    result.lse.forEach((values, i) => lse[i].set(values, result.firstRow));
  }
  return { outputs, lse };
}

/** The values of the model itself. */
function runModel(model: KernelModel, problem: Problem) {
  const kernel = model.prepare(problem, noSettings);
  const format = formats[kernel.outFormat];
  const pieces = Array.from({ length: kernel.pieces }, (_, piece) => kernel.run(piece));
  return {
    out: pieces.flatMap(({ out }) => [...decodeToFloat64(storageOf(format, out), format)]),
    lse: pieces.flatMap(({ lse }) => [...lse]),
  };
}

const inputs: readonly FormatName[] = ['fp64', 'fp32', 'tf32', 'bf16', 'fp16', 'e4m3', 'e5m2'];
const sizes = { queries: { max: 40 }, keys: { max: 90 } } as const;

describe.each(models)('$name with switches', (model) => {
  it('with every technique emulated equals the model bit for bit, on any problem', () => {
    const problems = attentionProblem({
      ...sizes,
      formats: inputs,
      specialValues: ['nan', 'infinity'],
    });
    fc.assert(
      fc.property(problems, (problem) => {
        const kernel = attribute(model, problem);
        const { outputs, lse } = runAll(kernel, [new Set(kernel.techniques)]);
        const whole = runModel(model, problem);
        expect([...outputs[0]]).toEqual(whole.out);
        expect([...lse[0]]).toEqual(whole.lse);
      }),
      { numRuns: scaled(20) },
    );
  });

  it('with none is exact attention, as far as fp64 tells scores apart', () => {
    const problems = attentionProblem({
      ...sizes,
      formats: inputs,
      regimes: regimeNames.filter((name) => name !== 'wide-exponents'),
    });
    fc.assert(
      fc.property(problems, (problem) => {
        const oracle = attentionOracle(problem);
        const { outputs, lse } = runAll(attribute(model, problem), [nothing]);
        const unit = 1e-13 + 2 ** -49 * largestScoreTerms(problem);
        outputs[0].forEach((x, i) => {
          const allowance =
            unit * oracle.quantities.out.magnitude[i] +
            oracle.quantities.out.radius[i] +
            2 ** -1060;
          expect(Math.abs(x - oracle.quantities.out.values[i])).toBeLessThanOrEqual(allowance);
        });
        lse[0].forEach((x, i) => {
          if (x === oracle.quantities.lse.values[i]) return;
          expect(Math.abs(x - oracle.quantities.lse.values[i])).toBeLessThanOrEqual(
            unit + oracle.quantities.lse.radius[i],
          );
        });
      }),
      { numRuns: scaled(15) },
    );
  });

  it('gives a run the same results whatever other runs there are', () => {
    const problems = attentionProblem({ ...sizes, formats: ['bf16', 'fp64'], queries: { max: 9 } });
    fc.assert(
      fc.property(problems, fc.nat(2047), (problem, mask) => {
        const kernel = attribute(model, problem);
        const { techniques } = kernel;
        // A choice and all that differ from it by one technique.
        const choices = [mask, ...techniques.map((_, bit) => mask ^ (1 << bit))].map(
          (one) => new Set(techniques.filter((_, bit) => (one >> bit) & 1)),
        );
        const together = runAll(kernel, choices);
        choices.forEach((choice, i) => {
          const alone = runAll(kernel, [choice]);
          expect(together.outputs[i]).toEqual(alone.outputs[0]);
          expect(together.lse[i]).toEqual(alone.lse[0]);
        });
      }),
      { numRuns: scaled(10) },
    );
  });
});

/** The largest |scale| · Σ|q·k| of a problem, which rounding errors of scores grow with. */
function largestScoreTerms({ q, k, scale }: Problem): number {
  const dim = q.shape.at(-1)!;
  const largest = ({ format, data }: Tensor): number =>
    decodeToFloat64(data, formats[format]).reduce((max, x) => Math.max(max, Math.abs(x)), 0);
  return Math.abs(scale) * dim * largest(q) * largest(k);
}

describe('the techniques', () => {
  const bf16 = problemOf([1], [[1]], [[1]]);
  const names = (model: KernelModel, problem: Problem) => attribute(model, problem).techniques;
  const always = [
    'qk-accumulate',
    'scale-subtract',
    'exp',
    'row-sum',
    'normalise',
    'pv-accumulate',
  ];

  it('are those that the kernel has on the problem', () => {
    const [float32, input] = models;
    expect([...names(float32, bf16)].sort()).toEqual([...always, 'output-round'].sort());
    expect([...names(input, bf16)].sort()).toEqual(
      [...always, 'score-round', 'p-round', 'output-round'].sort(),
    );
    expect(names(input, { ...bf16, softcap: 3 })).toContain('softcap');
    const wide = inFormat('fp32', bf16);
    expect(names(input, wide)).toEqual(names(float32, wide));
    expect(names(float32, inFormat('fp64', bf16))).toContain('input-round');
  });

  it('end with the rounding of the output, and are all defined', () => {
    for (const model of models) {
      const { techniques, definitions } = attribute(model, { ...bf16, softcap: 3 });
      expect(techniques.at(-1)).toBe('output-round');
      for (const technique of techniques) expect(definitions[technique]).toBeDefined();
    }
  });

  it('that the kernel does not have are refused by name, as are settings', () => {
    const kernel = attribute(models[0], bf16);
    expect(() => kernel.prepareRuns([nothing, new Set(['p-round'])])).toThrow(RequestError);
    expect(() => kernel.prepareRuns([new Set(['rescale'])])).toThrow(
      /naive-fp32 has no technique "rescale" on this problem; it has qk-accumulate, /,
    );
    expect(() => models[0].attribute(bf16, new Map([['a', '1']]))).toThrow(/no setting "a"/);
  });
});

/** One query at scale 1. */
function problemOf(
  query: readonly number[],
  keys: Rows,
  values: Rows,
  format: FormatName = 'bf16',
): Problem {
  return singleHead(format, { q: [query], k: keys, v: values });
}

function inFormat(format: FormatName, { q, k, v, ...rest }: Problem): Problem {
  const converted = (of: Tensor): Tensor => ({
    format,
    shape: of.shape,
    data: encodeFromFloat64(formats[format], decodeToFloat64(of.data, formats[of.format])),
  });
  return { ...rest, q: converted(q), k: converted(k), v: converted(v) };
}

/** The first output and LSE with one technique emulated, and with none. */
function only(technique: string, problem: Problem, model = models[1]) {
  const { outputs, lse } = runAll(attribute(model, problem), [new Set([technique]), nothing]);
  return { out: outputs[0][0], exactOut: outputs[1][0], lse: lse[0][0], exactLse: lse[1][0] };
}

const { fround } = Math;
const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

describe('the error of a technique alone', () => {
  it('qk-accumulate: sums rounded one by one', () => {
    // 2^24 + 1 + 1 is 2^24 in fp32, so that both scores are equal.
    const problem = {
      ...problemOf(
        [1, 1, 1],
        [
          [2 ** 24, 1, 1],
          [2 ** 24, 0, 0],
        ],
        [[1], [0]],
      ),
      scale: 0.5,
    };
    const { out, exactOut } = only('qk-accumulate', problem);
    expect(out).toBe(0.5);
    expect(exactOut).toBeCloseTo(sigmoid(1), 12);
  });

  it('score-round: to the format of the inputs, before the scale and after it', () => {
    // 257 and 256 are both 256 in bf16.
    const halves = only(
      'score-round',
      problemOf(
        [1, 1],
        [
          [256, 1],
          [256, 0],
        ],
        [[1], [0]],
      ),
    );
    expect(halves.out).toBe(0.5);
    const scaled = { ...problemOf([1], [[3], [0]], [[1], [0]]), scale: 1 / 3 + 2 ** -12 };
    const score = round(formats.bf16, 3 * scaled.scale);
    expect(score).not.toBe(3 * scaled.scale);
    expect(only('score-round', scaled).out).toBe(sigmoid(score));
  });

  it('scale-subtract: the product with the rounded scale, and the difference', () => {
    const scale = 0.1;
    const problem = { ...problemOf([1], [[3], [-0.5]], [[0], [1]]), scale };
    const difference = fround(fround(-0.5 * fround(scale)) - fround(3 * fround(scale)));
    const { out, exactOut } = only('scale-subtract', problem);
    expect(out).toBeCloseTo(Math.exp(difference) / (1 + Math.exp(difference)), 15);
    expect(Math.abs(out - exactOut)).toBeGreaterThan(1e-10);
  });

  it('softcap: quotient, tanh and product', () => {
    const problem = { ...problemOf([1], [[3], [0]], [[1], [0]]), softcap: 0.7 };
    const capped = fround(fround(0.7) * fround(Math.tanh(fround(3 / fround(0.7)))));
    const { out, exactOut } = only('softcap', problem);
    expect(out).toBeCloseTo(sigmoid(capped), 15);
    expect(Math.abs(out - exactOut)).toBeGreaterThan(1e-10);
  });

  it('exp: p rounded to fp32', () => {
    const problem = problemOf([1], [[1], [-0.75]], [[0], [1]]);
    const p = fround(Math.exp(-1.75));
    const { out, exactOut } = only('exp', problem);
    expect(out).toBe(p / (1 + p));
    expect(out).not.toBe(exactOut);
  });

  it('exp: its relative error where the exponent is no fp32 number', () => {
    const problem = { ...problemOf([1], [[1], [-0.75]], [[0], [1]]), scale: 0.1 };
    const x = -0.75 * 0.1 - 0.1;
    const p = fround(Math.exp(fround(x))) * (Math.exp(x) / Math.exp(fround(x)));
    const { out, exactOut } = only('exp', problem);
    expect(Math.abs(out - p / (1 + p))).toBeLessThan(2 ** -51);
    expect(Math.abs(out - exactOut)).toBeGreaterThan(2 ** -40);
  });

  it('row-sum: sums rounded one by one', () => {
    // 1 + 2^-25 + … is 1 in fp32.
    const small = -25 * Math.LN2;
    const problem = inFormat('fp32', problemOf([1], [[0]], [[1]]));
    const keys = [[0], ...Array.from({ length: 8 }, () => [small])];
    const many = {
      ...problem,
      k: tensorOfRows('fp32', keys),
      v: tensorOfRows(
        'fp32',
        keys.map(() => [1]),
      ),
    };
    const { out, lse, exactLse } = only('row-sum', many);
    const tail = 8 * Math.exp(fround(small));
    expect(Math.abs(exactLse - Math.log1p(tail))).toBeLessThan(1e-15);
    // The weights are not fp32 numbers: what they differ by is not lost.
    const difference = 8 * (Math.exp(fround(small)) - fround(Math.exp(fround(small))));
    expect(Math.abs(lse - difference)).toBeLessThan(1e-15);
    expect(out).toBeGreaterThan(1 + tail / 2);
  });

  it('normalise: the quotients, and both roundings of the LSE', () => {
    const problem = problemOf([1], [[3], [3], [3]], [[1], [1], [0]]);
    const { out, lse } = only('normalise', problem);
    expect(out).toBe(2 * fround(1 / 3));
    expect(lse).toBe(fround(3 + fround(Math.log(3))));
  });

  it('normalise: the error of the LSE at the maximum and the sum in fp32', () => {
    const problem = { ...problemOf([1], [[3], [-0.75]], [[1], [0]]), scale: 0.1 };
    const maximum = 3 * 0.1;
    const sum = 1 + Math.exp(-0.75 * 0.1 - maximum);
    const rounded = fround(fround(maximum) + fround(Math.log(fround(sum))));
    const carried = maximum - fround(maximum) + Math.log(sum / fround(sum));
    const { lse } = only('normalise', problem);
    expect(Math.abs(lse - (rounded + carried))).toBeLessThan(2 ** -52);
  });

  it('p-round: each weight, after the division', () => {
    const problem = problemOf([1], [[3], [3], [3]], [[1], [1], [0]]);
    const { out, lse, exactLse } = only('p-round', problem);
    expect(out).toBe(2 * round(formats.bf16, 1 / 3));
    expect(lse).toBe(exactLse);
  });

  it('pv-accumulate: products and sums', () => {
    const values = [[1], [2 ** -24], [2 ** -24], [0]];
    const { out, exactOut } = only(
      'pv-accumulate',
      problemOf(
        [1],
        values.map(() => [0]),
        values,
      ),
    );
    expect(out).toBe(0.25);
    expect(exactOut).toBe(0.25 + 2 ** -25);
  });

  it('output-round: to the format of Q', () => {
    const { out, exactOut } = only(
      'output-round',
      problemOf([1], [[0], [0], [0]], [[1], [0], [0]]),
    );
    expect(out).toBe(round(formats.bf16, exactOut));
    expect(out).not.toBe(exactOut);
  });

  it('input-round: fp64 scores and values at fp32 inputs', () => {
    const problem = problemOf([1], [[0.1], [0]], [[0.3], [0.2]], 'fp64');
    const { out, exactOut } = only('input-round', problem);
    const weight = sigmoid(fround(0.1));
    expect(out).toBeCloseTo(weight * fround(0.3) + (1 - weight) * fround(0.2), 15);
    expect(Math.abs(out - exactOut)).toBeGreaterThan(1e-10);
  });
});

describe('a technique that makes no error on the nearest operands changes nothing', () => {
  // Scores 2 + 2^-26 and 2, weights and sums that are no fp32 numbers, equal in all their neighbours.
  const near = problemOf(
    [1, 2 ** -13],
    [
      [2, 2 ** -13],
      [2, 0],
    ],
    [[1], [-1]],
  );
  it.each(['scale-subtract', 'row-sum', 'normalise', 'pv-accumulate'])('%s', (technique) => {
    const { out, exactOut, lse, exactLse } = only(technique, near);
    expect(exactOut).toBeGreaterThan(0);
    expect(Math.abs(out - exactOut)).toBeLessThan(1e-3 * exactOut);
    if (technique !== 'normalise') expect(Math.abs(lse - exactLse)).toBeLessThan(2 ** -50);
  });
});

describe('the largest weight', () => {
  it('is the first among equals, of the keys seen, after the division', () => {
    const problem = problemOf([1], [[9], [2], [5], [5]], [[1], [1], [1], [1]]);
    const windowed = { ...problem, window: { left: 2, right: 0 } };
    const { largestWeights } = attribute(models[1], windowed).prepareRuns([nothing])(0);
    expect(largestWeights!.keys).toEqual(Int32Array.of(2));
    expect(largestWeights!.weights[0]).toBeCloseTo(1 / (2 + Math.exp(-3)), 14);
    expect(largestWeights!.divisors[0]).toEqual(Float64Array.of(1));
  });

  it('is nothing to a kernel that does not round weights, and no key to a row that sees none', () => {
    const problem = problemOf([1], [[9]], [[1]]);
    expect(attribute(models[0], problem).prepareRuns([nothing])(0).largestWeights).toBe(null);
    const blind = {
      ...problem,
      window: { left: 0, right: -1 },
      q: tensorOfRows('bf16', [[1], [1]]),
      causal: true,
    };
    const { largestWeights, lse } = attribute(models[1], blind).prepareRuns([nothing])(0);
    expect(largestWeights!.keys).toEqual(Int32Array.of(-1, 0));
    expect(lse[0][0]).toBe(-Infinity);
  });
});
