import { describe, expect, it } from 'vitest';
import { exp2Coefficients } from '../../kernels/index.js';
import { formats, patternsOf, storageOf } from '../../src/formats/index.js';
import type { Problem, Tensor } from '../../src/problem/index.js';
import { runFa4, runVariant, scoredProblem, tensorOf, wavyProblem } from './variants-problems.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

/** The first 96 columns of a block by the polynomial. */
const software = { 'exp2.frequency': '32', 'exp2.reserve': '32', 'exp2.startFragment': '0' };
const hardware = { 'exp2.frequency': '0' };

/** Rows [first, end) of a tensor [1, rows, dim]. */
function rowsOf({ format, shape, data }: Tensor, first: number, end: number): Tensor {
  const dim = shape[2];
  const rows = patternsOf(data, formats[format]).slice(first * dim, end * dim);
  return { format, shape: [1, end - first, dim], data: storageOf(formats[format], rows) };
}

describe('mask-dependent-exp2', () => {
  const prefill = wavyProblem([1, 1, 200, 512], { causal: true });

  /** A query of the prefill alone, with the keys that it sees. */
  function decode(row: number): Problem {
    const seen = row + 512 - 200 + 1;
    return {
      ...prefill,
      q: rowsOf(prefill.q, row, row + 1),
      k: rowsOf(prefill.k, 0, seen),
      v: rowsOf(prefill.v, 0, seen),
    };
  }
  const rows = [0, 60, 100, 127, 128, 199];

  inTurn('has a query differ in bits between prefill and decode, which the kernel has not', () => {
    const kernel = runFa4(prefill).bits.lse;
    const variant = runVariant('mask-dependent-exp2', prefill).bits.lse;
    const differing = rows.filter((row) => {
      expect(runFa4(decode(row)).bits.lse[0]).toBe(kernel[row]);
      return runVariant('mask-dependent-exp2', decode(row)).bits.lse[0] !== variant[row];
    });
    // A row of the second tile meets one masked block, the first, in both.
    expect(differing.length).toBeGreaterThan(0);
    expect(differing.every((row) => row < 128)).toBe(true);
  });

  it('is hardware in the only block', () => {
    const problem = wavyProblem([1, 1, 3, 128]);
    expect(runVariant('mask-dependent-exp2', problem).bits).toEqual(runFa4(problem, hardware).bits);
  });
});

describe('exp2-bias-in-lse', () => {
  it('is 8.5e-5 short where a row sees one key and x comes out negative', () => {
    const heads = 24;
    const problem = wavyProblem([heads, heads, 1, 1], { scale: 0.3 });
    const exact = runFa4(problem).lse;
    const shifts = runVariant('exp2-bias-in-lse', problem).lse.map((lse, row) => lse - exact[row]);
    const short = shifts.filter((shift) => Math.abs(shift + 8.518e-5) < 2e-6);
    const right = shifts.filter((shift) => Math.abs(shift) < 2e-6);
    expect(short.length + right.length).toBe(heads);
    expect(short.length).toBeGreaterThan(0);
    expect(right.length).toBeGreaterThan(0);
  });
});

describe('a wrong digit in a coefficient', () => {
  const polynomial = exp2Coefficients[3];

  /** By the decimal digits: the third that is significant, one more. */
  function changed(coefficient: number): number {
    const [digits, exponent] = coefficient.toExponential(30).split('e');
    const wrong = digits.slice(0, 3) + String(Number(digits[3]) + 1) + digits.slice(4);
    return Number(`${wrong}e${exponent}`);
  }

  it.each([0, 1, 2, 3])('c%i moves the row sum by its change times the power', (k) => {
    const x = -0.5;
    const problem = scoredProblem({ queries: 1, keys: 2, key: (j) => j * x });
    const sumOf = (lse: number[]): number => Math.exp(lse[0]);
    const moved =
      sumOf(runVariant(`exp2-coefficient-c${k}`, problem, software).lse) -
      sumOf(runFa4(problem, software).lse);
    const change = changed(polynomial[k]) - polynomial[k];
    expect(change).toBeGreaterThan(0);
    // At x = 0 the fraction is 0; −0.5 is −1 + 0.5.
    const expected = change * (0 ** k + 0.5 ** k / 2);
    expect(Math.abs(moved - expected)).toBeLessThan(1e-6);
    expect(Math.abs(expected)).toBeGreaterThan(5e-6);
  });

  it('is not seen where the hardware computes all columns', () => {
    const problem = wavyProblem([1, 1, 2, 200]);
    const { bits } = runFa4(problem, hardware);
    for (const k of [0, 1, 2, 3])
      expect(runVariant(`exp2-coefficient-c${k}`, problem, hardware).bits).toEqual(bits);
  });
});

describe('exp2-integer-shifted', () => {
  const problem = (low: number) => scoredProblem({ queries: 1, keys: 2, key: (j) => j * low });

  it.each([-1, -3, -20])('halves 2^%i', (low) => {
    const { lse } = runVariant('exp2-integer-shifted', problem(low), software);
    expect(lse[0]).toBeCloseTo(Math.log1p(2 ** (low - 1)), 6);
  });

  it.each([-0.5, -2.75])('leaves 2^%d as it is', (low) => {
    const { bits } = runVariant('exp2-integer-shifted', problem(low), software);
    expect(bits).toEqual(runFa4(problem(low), software).bits);
  });
});

describe('exp2-nearest-reduction', () => {
  const problem = (low: number) => scoredProblem({ queries: 1, keys: 2, key: (j) => j * low });

  it.each([-0.25, -0.4375, -3.125])('has a negative fraction at %d', (low) => {
    const fraction = low - Math.round(low);
    expect(fraction).toBeLessThan(0);
    const p = exp2Coefficients[3].reduceRight((sum, c) => sum * fraction + c, 0);
    const { lse } = runVariant('exp2-nearest-reduction', problem(low), software);
    expect(lse[0]).toBeCloseTo(Math.log1p(p * 2 ** Math.round(low)), 6);
    expect(lse[0]).not.toBeCloseTo(runFa4(problem(low), software).lse[0], 5);
  });

  it.each([-0.75, -1, -2.625])('is the same at %d, whose fraction is below 1/2', (low) => {
    const { bits } = runVariant('exp2-nearest-reduction', problem(low), software);
    expect(bits).toEqual(runFa4(problem(low), software).bits);
  });
});

describe('score-overflow-nan', () => {
  const fp16 = (query: number, key: number): Problem =>
    scoredProblem({ queries: 1, keys: 3, query: () => query, key: (j) => key - j, format: 'fp16' });

  it('is NaN where a score is beyond 65504, which the kernel is not', () => {
    const problem = fp16(300, 300);
    expect(runVariant('score-overflow-nan', problem).out[0]).toBeNaN();
    expect(runFa4(problem).out[0]).toBe(1);
  });

  it('is not seen where scores are numbers of the format', () => {
    expect(runVariant('score-overflow-nan', fp16(3, 20)).bits).toEqual(runFa4(fp16(3, 20)).bits);
  });

  it('rounds scores to bf16 short of that', () => {
    const problem = {
      ...scoredProblem({ queries: 1, keys: 2 }),
      q: tensorOf('bf16', [1, 1, 16], (_h, _r, c) => (c < 2 ? 1 : 0)),
      k: tensorOf('bf16', [1, 2, 16], (_h, row, c) => (c === 0 ? 256 : c === 1 ? 1 - row : 0)),
    };
    // 257 and 256, both 256 in bf16.
    expect(runFa4(problem).lse[0]).toBeCloseTo(257 * Math.LN2 + Math.log(1.5), 4);
    expect(runVariant('score-overflow-nan', problem).lse[0]).toBeCloseTo(257 * Math.LN2, 4);
  });
});

describe('scale-twice', () => {
  it('is the kernel at the scale squared', () => {
    const problem = wavyProblem([1, 1, 20, 200], { scale: 0.25 });
    const squared = runFa4({ ...problem, scale: 0.0625 }).bits;
    expect(runVariant('scale-twice', problem).bits).toEqual(squared);
  });
});
