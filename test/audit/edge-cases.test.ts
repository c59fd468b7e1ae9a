import { describe, expect, it } from 'vitest';
import { auditOutputs, judgeOutputs, type KernelOutputs } from '../../src/audit/index.js';
import { runKernelModel } from '../../kernels/index.js';
import { attentionOracle } from '../../oracles/index.js';
import { testNumbers } from '../../src/audit/number-test.js';
import { isAdmittedOverflow } from '../../src/audit/element-test.js';
import { formats, type FormatName } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { filledProblem } from '../setup/problems.js';
import { turns } from '../setup/turns.js';
import { decode, encode } from './damage.js';
import { roundingKernel } from './rounding-kernel.js';
import { compared } from './hand-made.js';

const inTurn = turns(import.meta.url);

interface Sizes {
  readonly batch?: number;
  readonly heads?: number;
  readonly kvHeads?: number;
  readonly queries: number;
  readonly keys: number;
  readonly qkDim?: number;
  readonly vDim?: number;
}

function wave(seed: number): (index: number) => number {
  return (index) => Math.sin(1 + seed + index * 1.7) * (1 + (index % 3));
}

function problemOf(
  { qkDim: dim = 8, ...sizes }: Sizes,
  changes: Partial<Problem> = {},
  format: FormatName = 'bf16',
): Problem {
  const fills = { q: wave(1), k: wave(2), v: wave(3) };
  return filledProblem({ ...sizes, dim, format }, fills, { scale: 0.25, ...changes });
}

function correct(problem: Problem, outputFormat: FormatName = 'bf16'): KernelOutputs {
  return roundingKernel(problem, { outputFormat, lag: () => 0, tile: 16 });
}

function edited(tensor: KernelOutputs['out'], edit: (values: Float64Array) => void) {
  const values = decode(tensor);
  edit(values);
  return encode(values, tensor.format, tensor.shape);
}

function tests(problem: Problem, outputs: KernelOutputs): string[] {
  return judgeOutputs(problem, outputs, { diagnose: false }).verdict.findings.map(
    ({ test }) => test,
  );
}

describe('shapes at the edge', () => {
  const shapes: readonly [name: string, sizes: Sizes, changes?: Partial<Problem>][] = [
    ['one query, one key', { queries: 1, keys: 1 }],
    ['dim 1', { queries: 5, keys: 7, qkDim: 1 }],
    ['v dim other than qk dim', { queries: 5, keys: 7, qkDim: 8, vDim: 13 }],
    ['no keys', { queries: 3, keys: 0 }],
    ['no queries', { queries: 0, keys: 3 }],
    ['no heads', { heads: 0, queries: 3, keys: 3 }],
    ['v dim 0', { queries: 3, keys: 3, qkDim: 4, vDim: 0 }],
    ['qk dim 0', { queries: 3, keys: 3, qkDim: 0, vDim: 4 }],
    ['grouped queries in a batch', { batch: 2, heads: 6, kvHeads: 2, queries: 5, keys: 9 }],
    ['more queries than keys, causal', { queries: 9, keys: 4 }, { causal: true }],
    ['fewer queries than keys, causal', { queries: 4, keys: 100 }, { causal: true }],
    ['a window that misses', { queries: 4, keys: 70 }, { window: { left: 3, right: 0 } }],
    ['softcap', { queries: 4, keys: 70 }, { softcap: 1.5 }],
    ['scale 0', { queries: 4, keys: 70 }, { scale: 0 }],
    ['negative scale', { queries: 4, keys: 70 }, { scale: -3 }],
  ];
  it.each(shapes)('%s', (_, sizes, changes) => {
    const problem = problemOf(sizes, changes);
    const { verdict } = auditOutputs(problem, correct(problem));
    expect(verdict.findings).toEqual([]);
  });
});

describe('rows without keys', () => {
  const problem = problemOf({ queries: 6, keys: 3 }, { causal: true });
  const outputs = correct(problem);

  it('must be zero with an LSE of −∞', () => {
    expect(tests(problem, outputs)).toEqual([]);
    expect(decode(outputs.lse!)[0]).toBe(-Infinity);
  });
  it('may not have an LSE of +∞', () => {
    const lse = edited(outputs.lse!, (values) => (values[0] = Infinity));
    expect(tests(problem, { ...outputs, lse })).toEqual(['lse-non-finite']);
  });
  it('may not have an LSE of 0', () => {
    const lse = edited(outputs.lse!, (values) => (values[2] = 0));
    expect(tests(problem, { ...outputs, lse })).toEqual(['lse-non-finite']);
  });
  it('may not hold the smallest number there is', () => {
    const out = edited(outputs.out, (values) => (values[0] = 2 ** -133));
    expect(tests(problem, { ...outputs, out })).toEqual(['element-bound']);
  });
  it('may not be NaN', () => {
    const out = edited(outputs.out, (values) => (values[3] = NaN));
    const { verdict } = auditOutputs(problem, { ...outputs, out });
    expect(verdict.findings.map(({ test }) => test)).toEqual(['non-finite']);
    expect(verdict.sentence).toMatch(/1 of 48 elements .* first at head 0, query 0, column 3/);
  });
});

describe('infinities and NaNs', () => {
  const plain = problemOf({ queries: 4, keys: 40 }, { causal: true });
  const planted = (value: number, key: number): Problem => ({
    ...plain,
    v: edited(plain.v, (values) => (values[key * 8 + 2] = value)),
  });

  it('an infinity in V belongs in its column of every row that sees it', () => {
    const problem = planted(Infinity, 37);
    const outputs = correct(plain);
    expect(tests(problem, outputs)).toEqual(['non-finite']);
    const out = edited(outputs.out, (values) => {
      for (const row of [1, 2, 3]) values[row * 8 + 2] = Infinity;
    });
    expect(tests(problem, { ...outputs, out })).toEqual([]);
  });
  it('a kernel whose weight underflows may make it NaN, but not −∞', () => {
    const problem = planted(Infinity, 37);
    const outputs = correct(plain);
    const withValue = (value: number) =>
      edited(outputs.out, (values) => {
        for (const row of [1, 2, 3]) values[row * 8 + 2] = value;
      });
    expect(tests(problem, { ...outputs, out: withValue(NaN) })).toEqual([]);
    expect(tests(problem, { ...outputs, out: withValue(-Infinity) })).toEqual(['non-finite']);
  });
  it('a masked NaN has no business in the output', () => {
    const problem = planted(NaN, 39);
    const outputs = correct(plain);
    const last = edited(outputs.out, (values) => (values[3 * 8 + 2] = NaN));
    expect(tests(problem, { ...outputs, out: last })).toEqual([]);
    const leaked = edited(last, (values) => (values[2 * 8 + 2] = NaN));
    expect(tests(problem, { ...outputs, out: leaked })).toEqual(['non-finite']);
  });
  describe('a key with a score of −∞ beside finite ones', () => {
    const finite = problemOf({ queries: 6, keys: 30 }, { scale: 8 }, 'fp32');
    // Every query has the sign that makes the infinite product negative.
    const problem: Problem = {
      ...finite,
      q: edited(finite.q, (values) =>
        values.forEach((x, i) => i % 8 === 0 && (values[i] = Math.abs(x))),
      ),
      k: edited(finite.k, (values) => (values[7 * 8] = -Infinity)),
    };
    const outputs = runKernelModel('naive-fp32', problem);

    it('leaves the errors of these as they are', () => {
      expect(tests(problem, outputs)).toEqual([]);
    });
    it('does not hide a wrong LSE or output', () => {
      const lse = edited(outputs.lse, (values) => (values[3] += 0.01));
      expect(tests(problem, { ...outputs, lse })).toEqual(['lse-bound']);
      const out = edited(outputs.out, (values) => (values[3 * 8] += 0.01));
      expect(tests(problem, { ...outputs, out })).toContain('element-bound');
    });
    it('nor where a query of zero makes it a NaN', () => {
      const zero = { ...problem, q: edited(problem.q, (values) => values.fill(0, 0, 8)) };
      const run = runKernelModel('naive-fp32', zero);
      expect(tests(zero, run)).toEqual([]);
      const lse = edited(run.lse, (values) => (values[3] += 0.01));
      expect(tests(zero, { ...run, lse })).toEqual(['lse-bound']);
    });
  });
  it('a row of scores that are all −∞ may be zero, or NaN, and nothing else', () => {
    const finite = problemOf({ queries: 2, keys: 5 }, {}, 'fp32');
    const query: Problem = {
      ...finite,
      q: edited(finite.q, (values) => values.fill(1)),
      k: edited(finite.k, (values) => values.fill(-Infinity)),
    };
    const zero = correct(finite, 'fp32');
    const outputs = (out: number, lse: number) => ({
      out: edited(zero.out, (values) => values.fill(out)),
      lse: edited(zero.lse!, (values) => values.fill(lse)),
    });
    expect(tests(query, outputs(0, -Infinity))).toEqual([]);
    expect(tests(query, outputs(NaN, NaN))).toEqual([]);
    expect(tests(query, outputs(Infinity, -Infinity))).toEqual(['non-finite']);
    expect(tests(query, outputs(0, Infinity))).toEqual(['lse-non-finite']);
  });
  it('an output beyond the format may be infinite, one within it may not', () => {
    const problem = problemOf({ queries: 2, keys: 1 }, {}, 'fp32');
    const large = (value: number): Problem => ({
      ...problem,
      v: edited(problem.v, (values) => values.fill(value)),
    });
    const outputs = correct(problem, 'fp16');
    const infinite = edited(outputs.out, (values) => values.fill(Infinity));
    expect(tests(large(70_000), { ...outputs, out: infinite })).toEqual([]);
    expect(tests(large(60_000), { ...outputs, out: infinite })).toEqual(['non-finite']);
    // The limit is not the largest number of fp16, 65,504, but half an ulp above it.
    expect(tests(large(65_521), { ...outputs, out: infinite })).toEqual([]);
    expect(tests(large(65_400), { ...outputs, out: infinite })).toEqual(['non-finite']);
  });
});

describe('the LSE near the end of its format', () => {
  // One key: the LSE is its score, and nothing errs but the rounding of the score.
  const scored = (score: number, tensor: FormatName = 'fp64'): Problem => ({
    ...problemOf({ queries: 1, keys: 1, qkDim: 1 }, { scale: 1 }, tensor),
    q: encode(Float64Array.of(1), tensor, [1, 1, 1, 1]),
    k: encode(Float64Array.of(score), tensor, [1, 1, 1, 1]),
  });
  const verdictOf = (score: number, lse: number) => {
    const problem = scored(score);
    const value = decode(problem.v)[0];
    return tests(problem, {
      out: encode(Float64Array.of(value), 'fp32', [1, 1, 1, 1]),
      lse: encode(Float64Array.of(lse), 'fp32', [1, 1, 1]),
    });
  };
  const largest = formats.fp32.maxFinite;

  it.each([1, -1])('is the infinity of its sign beyond it (%d)', (sign) => {
    for (const exact of [1.36e39, 4 * largest]) {
      expect(verdictOf(sign * exact, sign * Infinity)).toEqual([]);
      expect(verdictOf(sign * exact, -sign * Infinity)).toEqual(['lse-non-finite']);
      expect(verdictOf(sign * exact, NaN)).toEqual(['lse-non-finite']);
    }
  });
  it.each([1, -1])('is finite within it (%d)', (sign) => {
    const score = sign * 0.9 * largest;
    expect(verdictOf(score, score)).toEqual([]);
    for (const value of [Infinity, -Infinity, NaN])
      expect(verdictOf(score, value)).toEqual(['lse-non-finite']);
  });
  it('may be either where the bound reaches the end', () => {
    const reference = attentionOracle(scored(largest));
    const admitted = (lse: number, bound: number) =>
      testNumbers(compared(reference, 'lse', Float64Array.of(lse), 'fp32'), Float64Array.of(bound))
        .nonFinite === 0;
    expect(admitted(largest, 2 ** 104)).toBe(true);
    expect(admitted(Infinity, 2 ** 104)).toBe(true);
    expect(admitted(-Infinity, 2 ** 104)).toBe(false);
    expect(admitted(Infinity, 2 ** 102)).toBe(false);
  });
  it('is infinite where rounding makes it so, and nowhere below', () => {
    const half = 2 ** 103;
    expect(isAdmittedOverflow(Infinity, largest + half, 0, 'fp32')).toBe(true);
    expect(isAdmittedOverflow(Infinity, largest + 0.999 * half, 0, 'fp32')).toBe(false);
    expect(isAdmittedOverflow(Infinity, largest, half, 'fp32')).toBe(true);
    expect(isAdmittedOverflow(Infinity, largest, 0.999 * half, 'fp32')).toBe(false);
    expect(isAdmittedOverflow(-Infinity, largest, half, 'fp32')).toBe(false);
    expect(isAdmittedOverflow(NaN, largest, half, 'fp32')).toBe(false);
    expect(isAdmittedOverflow(NaN, 1, NaN, 'fp32')).toBe(false);
    // OCP E4M3 has no infinity: 464 is half way, and the even neighbour is 448.
    expect(isAdmittedOverflow(NaN, 465, 0, 'e4m3')).toBe(true);
    expect(isAdmittedOverflow(NaN, 464, 0, 'e4m3')).toBe(false);
  });
});

describe('the LSE', () => {
  const problem = problemOf({ batch: 2, heads: 3, queries: 5, keys: 40 });
  const outputs = correct(problem);
  const shaped = (shape: readonly number[], values = decode(outputs.lse!)) => ({
    ...outputs,
    lse: encode(values, 'fp32', shape),
  });

  it.each([[[2, 3, 5]], [[2, 3, 5, 1]], [[6, 5]]])('is taken in the shape %j', (shape) => {
    expect(tests(problem, shaped(shape))).toEqual([]);
  });
  it('is taken with padded rows, whatever they hold', () => {
    const padded = new Float64Array(6 * 32).fill(Infinity);
    const values = decode(outputs.lse!);
    for (let head = 0; head < 6; head++)
      padded.set(values.subarray(head * 5, head * 5 + 5), head * 32);
    expect(tests(problem, shaped([2, 3, 32], padded))).toEqual([]);
  });
  it.each([[[3, 2, 5]], [[30]], [[2, 3, 4]], [[2, 15]]])('is refused in the shape %j', (shape) => {
    const length = shape.reduce((a, b) => a * b, 1);
    expect(() => auditOutputs(problem, shaped(shape, new Float64Array(length)))).toThrow(
      RequestError,
    );
  });
  it('of the other layout is refused with the way to turn it', () => {
    const turned = (shape: readonly number[]) => () =>
      auditOutputs(problem, shaped(shape, new Float64Array(30)));
    expect(turned([2, 5, 3])).toThrow(
      /shape \[2, 5, 3\] .* \[2, 3, 5\]; .* turn \[batch, seqlen, heads\] into \[batch, heads, seqlen\]/,
    );
    expect(turned([3, 2, 5])).toThrow(/pass the matching tensor$/);
  });
  inTurn('is recognised in base 2, and when it is off by a constant', () => {
    const base2 = edited(outputs.lse!, (values) =>
      values.forEach((x, i) => (values[i] = x / Math.LN2)),
    );
    expect(auditOutputs(problem, { ...outputs, lse: base2 }).verdict.sentence).toMatch(/base 2/);
    const off = edited(outputs.lse!, (values) => values.forEach((x, i) => (values[i] = x + 0.01)));
    expect(auditOutputs(problem, { ...outputs, lse: off }).verdict.sentence).toMatch(
      /the LSE is 0\.01 too high\.$/,
    );
  });
});

describe('requests that cannot be judged', () => {
  const problem = problemOf({ heads: 4, queries: 5, keys: 6 });
  const wrong: readonly [what: string, request: () => unknown, message: RegExp][] = [
    [
      'an output of another shape',
      () =>
        auditOutputs(problem, { out: encode(new Float64Array(8), 'bf16', [1, 1, 8]), lse: null }),
      /output has shape \[1, 1, 8\] but the problem asks for \[1, 4, 5, 8\]/,
    ],
    [
      'heads that do not divide',
      () =>
        auditOutputs(
          { ...problem, ...problemOf({ heads: 3, queries: 5, keys: 6 }), q: problem.q },
          correct(problem),
        ),
      /q has 4 heads, k has 3/,
    ],
    [
      'a scale that is no number',
      () => auditOutputs({ ...problem, scale: NaN }, correct(problem)),
      /scale is NaN/,
    ],
    [
      'a softcap of zero',
      () => auditOutputs({ ...problem, softcap: 0 }, correct(problem)),
      /softcap is 0/,
    ],
    [
      'half a key of window',
      () => auditOutputs({ ...problem, window: { left: 0.5, right: 1 } }, correct(problem)),
      /window left is 0.5/,
    ],
  ];
  it.each(wrong)('%s', (_, request, message) => {
    expect(request).toThrow(RequestError);
    expect(request).toThrow(message);
  });
});

describe('numbers near the ends of fp64', () => {
  interface Extreme {
    readonly scale: number;
    readonly q: readonly number[];
    readonly k: readonly number[];
    readonly v: readonly number[];
    readonly softcap: number | null;
    readonly out: readonly number[];
    readonly lse: number;
  }
  const tensor = (values: readonly number[]) => ({
    format: 'fp64' as const,
    shape: [1, 1, 1, values.length],
    data: Float64Array.from(values),
  });
  /** One query and one key, so that the output is V and the LSE the score. */
  const extremes: readonly [string, Extreme][] = [
    [
      'products beyond it, times a scale of 0',
      { scale: 0, q: [1.1e304], k: [2 ** 26], v: [0], softcap: null, out: [0], lse: 0 },
    ],
    [
      'a query whose square is beyond it, and a key of 0',
      { scale: 1, q: [1.6e293], k: [0], v: [0], softcap: null, out: [0], lse: 0 },
    ],
    [
      'a query whose square is 0 in it, and a key whose square is beyond it',
      {
        scale: 1,
        q: [1.25e-278],
        k: [4e280],
        v: [1.3e-141],
        softcap: null,
        out: [1.3e-141],
        lse: 500,
      },
    ],
    [
      'a score beyond it, under a softcap',
      { scale: 1, q: [8.8e12], k: [5.4e300], v: [0], softcap: 1, out: [0], lse: 1 },
    ],
    [
      'values whose squares are beyond it',
      { scale: 1, q: [0], k: [0], v: [2.2e186, 1], softcap: null, out: [2.2e186, 1], lse: 0 },
    ],
    [
      'a score beyond it, and an infinite value',
      {
        scale: 1,
        q: [1.5e166],
        k: [1.3e151],
        v: [Infinity, 0],
        softcap: null,
        out: [Infinity, 0],
        lse: Infinity,
      },
    ],
  ];
  it.each(extremes)(
    'are judged or said not to be: %s',
    (_, { scale, q, k, v, softcap, ...kernel }) => {
      const problem = {
        q: tensor(q),
        k: tensor(k),
        v: tensor(v),
        scale,
        softcap,
        causal: false,
        window: null,
      };
      const lse = { format: 'fp64' as const, shape: [1, 1, 1], data: Float64Array.of(kernel.lse) };
      const { verdict } = auditOutputs(problem, { out: tensor(kernel.out), lse });
      if (verdict.judged) expect(verdict.sentence).toMatch(/^PASS/);
      else expect(verdict.sentence).toMatch(/^NOT JUDGED/);
      // What a correct kernel cannot give fails, wherever there is a bound.
      const wrong = auditOutputs(problem, { out: tensor(kernel.out.map(() => 12345)), lse });
      expect(wrong.verdict.pass).toBe(false);
    },
  );
});
