import { describe, expect, it } from 'vitest';
import type { Level } from '../../oracles/index.js';
import { testElements } from '../../src/audit/element-test.js';
import {
  judgeOutputs,
  premisePresets,
  type KernelOutputs,
  type PremiseDeclaration,
} from '../../src/audit/index.js';
import { testNumbers } from '../../src/audit/number-test.js';
import type { Problem, Tensor } from '../../src/problem/index.js';
import { singleHead } from '../setup/problems.js';
import { decode, encode } from './damage.js';
import { runPlainKernel, toFormat } from './declared-kernel.js';
import { compared, handMadeReference } from './hand-made.js';
import { roundingKernel } from './rounding-kernel.js';

const [queries, keys, dim] = [5, 7, 3];
const rows = (count: number, phase: number) =>
  Array.from({ length: count }, (_, i) =>
    Array.from({ length: dim }, (_, c) => Math.sin(phase + 2 * i + 0.7 * c)),
  );
const plain = singleHead('fp32', { q: rows(queries, 0), k: rows(keys, 1), v: rows(keys, 2) });
const correct = roundingKernel(plain, { outputFormat: 'fp32', lag: () => 0, tile: 4 });

function edited(tensor: Tensor, edit: (values: Float64Array) => void): Tensor {
  const values = decode(tensor);
  edit(values);
  return encode(values, tensor.format, tensor.shape);
}

function failures(problem: Problem, outputs: KernelOutputs): string[] {
  const { verdict } = judgeOutputs(problem, outputs, { diagnose: false });
  expect(verdict.pass).toBe(verdict.findings.length === 0);
  return verdict.findings.map(({ test }) => test);
}

describe('a NaN among the inputs with a finite output', () => {
  it('fails where it is in V: the column of every row that sees it', () => {
    const problem = { ...plain, v: edited(plain.v, (v) => (v[4 * dim + 1] = NaN)) };
    expect(failures(problem, correct)).toEqual(['non-finite']);
    const right = edited(correct.out, (out) => {
      for (let row = 0; row < queries; row++) out[row * dim + 1] = NaN;
    });
    expect(failures(problem, { ...correct, out: right })).toEqual([]);
    const oneFinite = edited(right, (out) => (out[3 * dim + 1] = 0.5));
    expect(failures(problem, { ...correct, out: oneFinite })).toEqual(['non-finite']);
    const oneInfinite = edited(right, (out) => (out[3 * dim + 1] = Infinity));
    expect(failures(problem, { ...correct, out: oneInfinite })).toEqual(['non-finite']);
  });

  it('fails where it is in Q or K: the rows, and their LSE', () => {
    const inQ = { ...plain, q: edited(plain.q, (q) => (q[2 * dim] = NaN)) };
    expect(failures(inQ, correct)).toEqual(['non-finite', 'lse-non-finite']);
    const out = edited(correct.out, (values) => values.fill(NaN, 2 * dim, 3 * dim));
    const lse = edited(correct.lse!, (values) => (values[2] = NaN));
    expect(failures(inQ, { out, lse })).toEqual([]);
    expect(failures(inQ, { out, lse: correct.lse })).toEqual(['lse-non-finite']);
    expect(failures(inQ, { out: correct.out, lse })).toEqual(['non-finite']);
    for (const infinity of [Infinity, -Infinity]) {
      const infinite = edited(lse, (values) => (values[2] = infinity));
      expect(failures(inQ, { out, lse: infinite })).toEqual(['lse-non-finite']);
    }
    const inK = { ...plain, k: edited(plain.k, (k) => (k[0] = NaN)) };
    expect(failures(inK, correct)).toEqual(['non-finite', 'lse-non-finite']);
  });

  it('and so does a score of +∞, whose LSE may be +∞ or NaN and nothing else', () => {
    const problem = {
      ...plain,
      q: edited(plain.q, (q) => q.fill(1)),
      k: edited(plain.k, (k) => (k[3 * dim] = Infinity)),
    };
    const out = edited(correct.out, (values) => values.fill(NaN));
    const withLse = (value: number) =>
      edited(correct.lse!, (values) => values.fill(Infinity).fill(value, 0, 1));
    for (const value of [Infinity, NaN])
      expect(failures(problem, { out, lse: withLse(value) })).toEqual([]);
    for (const value of [-Infinity, 1e30, 0])
      expect(failures(problem, { out, lse: withLse(value) })).toEqual(['lse-non-finite']);
    const finite = edited(out, (values) => (values[0] = 1));
    expect(failures(problem, { out: finite, lse: withLse(Infinity) })).toEqual(['non-finite']);
  });
});

describe('a NaN that a row may have', () => {
  const admitted: Readonly<Record<Level, boolean>> = {
    empty: false,
    fp64: false,
    'double-double': false,
    arbitrary: false,
    special: true,
  };
  const cases = Object.entries(admitted) as [Level, boolean][];

  it.each(cases)('a row of −∞ settled as %s: %s', (level, admits) => {
    // Only a row that sees keys, all with a score of −∞, is special and has an LSE of −∞.
    const reference = handMadeReference({
      queries: 2,
      lse: (row) => (row === 0 ? -Infinity : 1),
      level: (row) => (row === 0 ? level : 'fp64'),
    });
    const ofLse = (value: number) =>
      testNumbers(
        compared(reference, 'lse', Float64Array.of(value, 1), 'fp32'),
        Float64Array.of(1, 1),
      );
    expect(ofLse(-Infinity).nonFinite).toBe(0);
    expect(ofLse(NaN).nonFinite).toBe(admits ? 0 : 1);
    expect(ofLse(Infinity).nonFinite).toBe(1);
    expect(ofLse(-1e30).nonFinite).toBe(1);
    const ofOutput = (value: number) =>
      testElements(
        compared(reference, 'out', Float64Array.of(value, 0), 'fp32'),
        Float64Array.of(0, 0),
      );
    expect(ofOutput(0)).toMatchObject({ nonFinite: 0, outside: 0 });
    expect(ofOutput(NaN).nonFinite).toBe(admits ? 0 : 1);
    expect(ofOutput(Infinity).nonFinite).toBe(1);
    expect(ofOutput(2 ** -149)).toMatchObject({ nonFinite: 0, outside: 1 });
  });

  it('and not where the LSE is another, or the row the next one', () => {
    const reference = handMadeReference({
      queries: 2,
      vDim: 2,
      lse: (row) => (row === 0 ? -Infinity : 0),
      level: () => 'special',
    });
    const out = (i: number) => Float64Array.from({ length: 4 }, (_, at) => (at === i ? NaN : 0));
    const limits = new Float64Array(4);
    for (const i of [0, 1])
      expect(
        testElements(compared(reference, 'out', out(i), 'fp32'), limits).nonFinite,
        `element ${i}`,
      ).toBe(0);
    for (const i of [2, 3]) {
      const { nonFinite, firstNonFinite } = testElements(
        compared(reference, 'out', out(i), 'fp32'),
        limits,
      );
      expect(nonFinite).toBe(1);
      expect(firstNonFinite).toEqual({ batch: 0, head: 0, query: 1, column: i - 2 });
    }
  });
});

describe('rows without keys', () => {
  // Query i sees key j ≤ i − 2: the first two see none.
  const causal = { ...plain, q: { ...plain.q }, causal: true };
  const problem: Problem = {
    ...causal,
    k: encode(decode(plain.k).subarray(0, 3 * dim), 'fp32', [1, 1, 3, dim]),
    v: encode(decode(plain.v).subarray(0, 3 * dim), 'fp32', [1, 1, 3, dim]),
  };
  const outputs = roundingKernel(problem, { outputFormat: 'fp32', lag: () => 0, tile: 4 });

  it.each([NaN, Infinity, 0, -3e38])('may not have an LSE of %d', (value) => {
    expect(failures(problem, outputs)).toEqual([]);
    const lse = edited(outputs.lse!, (values) => (values[1] = value));
    expect(failures(problem, { ...outputs, lse })).toEqual(['lse-non-finite']);
    const all = edited(outputs.lse!, (values) => values.fill(value, 0, 2));
    const judged = judgeOutputs(problem, { ...outputs, lse: all }, { diagnose: false });
    const test = judged.outputs.lse?.numbers;
    expect(test).toMatchObject({ nonFinite: 2, rows: queries });
    expect(test!.firstNonFinite).toMatchObject({ at: { head: 0, query: 0 }, oracle: -Infinity });
  });

  it('may have neither NaN nor an infinity in the output', () => {
    for (const value of [NaN, Infinity, -Infinity]) {
      const out = edited(outputs.out, (values) => (values[2 * dim - 1] = value));
      expect(failures(problem, { ...outputs, out })).toEqual(['non-finite']);
    }
  });

  it('do not lend their liberty to the rows that see keys: −∞ is no LSE there', () => {
    const lse = edited(outputs.lse!, (values) => (values[2] = -Infinity));
    expect(failures(problem, { ...outputs, lse })).toEqual(['lse-non-finite']);
  });
});

describe('an output beyond the range of its format', () => {
  const fp16 = (exact: number, value: number, limit: number) =>
    testElements(
      compared(
        handMadeReference({ queries: 1, out: () => exact }),
        'out',
        Float64Array.of(value),
        'fp16',
      ),
      Float64Array.of(limit),
    );

  it('is the infinity of its sign, and not the other', () => {
    for (const sign of [1, -1]) {
      expect(fp16(sign * 70_000, sign * Infinity, 40).nonFinite).toBe(0);
      expect(fp16(sign * 70_000, -sign * Infinity, 40).nonFinite).toBe(1);
      expect(fp16(sign * 70_000, NaN, 40).nonFinite).toBe(1);
    }
  });

  it('is that infinity, or NaN, where the exact one is infinite', () => {
    for (const sign of [1, -1]) {
      expect(fp16(sign * Infinity, sign * Infinity, 40).nonFinite).toBe(0);
      expect(fp16(sign * Infinity, NaN, 40).nonFinite).toBe(0);
      expect(fp16(sign * Infinity, -sign * Infinity, 40).nonFinite).toBe(1);
      expect(fp16(sign * Infinity, sign * 65_504, 40).nonFinite).toBe(1);
    }
    expect(fp16(NaN, NaN, 40).nonFinite).toBe(0);
    expect(fp16(NaN, Infinity, 40).nonFinite).toBe(1);
  });

  it('is infinite only where the error may carry it there', () => {
    // 65504 is the largest number of fp16, 32 its ulp.
    expect(fp16(65_000, Infinity, 400).nonFinite).toBe(1);
    expect(fp16(-65_000, -Infinity, 400).nonFinite).toBe(1);
    expect(fp16(65_000, Infinity, 600).nonFinite).toBe(0);
    expect(fp16(-65_000, -Infinity, 600).nonFinite).toBe(0);
    expect(fp16(0, Infinity, 600).nonFinite).toBe(1);
    expect(fp16(65_000, Infinity, 536).nonFinite).toBe(0);
    expect(fp16(65_000, Infinity, 535).nonFinite).toBe(1);
  });

  it('fails a whole audit with the wrong sign', () => {
    const problem: Problem = { ...plain, v: edited(plain.v, (v) => v.fill(-70_000)) };
    const out = (value: number) =>
      encode(new Float64Array(queries * dim).fill(value), 'fp16', correct.out.shape);
    expect(failures(problem, { ...correct, out: out(-Infinity) })).toEqual([]);
    expect(failures(problem, { ...correct, out: out(Infinity) })).toEqual(['non-finite']);
  });
});

describe('a row without a bound', () => {
  const ofLse = (value: number, bound: number, admitsOverflow: boolean, exact = 1) =>
    testNumbers(
      compared(
        handMadeReference({ queries: 1, lse: () => exact }),
        'lse',
        Float64Array.of(value),
        'fp32',
      ),
      Float64Array.of(bound),
      () => admitsOverflow,
    );

  it.each([NaN, Infinity, -Infinity])(
    'has an LSE of %d only where a short range is declared',
    (value) => {
      expect(ofLse(value, Infinity, true)).toMatchObject({ nonFinite: 0, unbounded: 1 });
      expect(ofLse(value, Infinity, false)).toMatchObject({ nonFinite: 1, unbounded: 1 });
      expect(ofLse(value, 1e30, true)).toMatchObject({ nonFinite: 1, unbounded: 0 });
    },
  );

  it('has none where the exact LSE is no number', () => {
    expect(ofLse(NaN, Infinity, true, -Infinity).nonFinite).toBe(1);
    expect(ofLse(1, Infinity, true, Infinity).nonFinite).toBe(1);
    expect(ofLse(-Infinity, Infinity, true, NaN).nonFinite).toBe(1);
  });

  const scaledRows = (values: readonly number[][], factor: (row: number) => number) =>
    values.map((row, i) => row.map((x) => x * factor(i)));
  // Scores of row 0 are beyond 65504; those of others are not.
  const large = singleHead('fp16', {
    q: scaledRows(rows(queries, 0), (row) => (row === 0 ? 1e4 : 0.01)),
    k: scaledRows(rows(keys, 1), () => 100),
    v: rows(keys, 2),
  });
  const short = runPlainKernel(large, () => ({ score: toFormat('fp16'), dividesFirst: true }));
  const judged = (outputs: KernelOutputs, premises: PremiseDeclaration) =>
    judgeOutputs(large, outputs, { premises, diagnose: false });

  it('leaves the others of a kernel that writes its scores in fp16 to be judged', () => {
    expect(decode(short.lse!).map((x) => Number(Number.isNaN(x)))).toEqual(
      new Float64Array([1, 0, 0, 0, 0]),
    );
    const { verdict, outputs } = judged(short, premisePresets['eager'].premises);
    expect(verdict).toMatchObject({ pass: true, judged: true, findings: [] });
    expect(verdict.sentence).toContain(
      '3 of 15 elements have none; the LSE of 1 of 5 rows has none',
    );
    expect(outputs.lse?.numbers).toMatchObject({ unbounded: 1, nonFinite: 0 });
  });

  it('is an alarm where nothing is declared, and so is another row', () => {
    const tests = (outputs: KernelOutputs, premises: PremiseDeclaration) =>
      judged(outputs, premises).verdict.findings.map(({ test }) => test);
    expect(tests(short, {}).slice(0, 2)).toEqual(['non-finite', 'lse-non-finite']);
    const lse = edited(short.lse!, (values) => (values[1] = NaN));
    expect(tests({ ...short, lse }, premisePresets['eager'].premises)).toEqual(['lse-non-finite']);
  });
});
