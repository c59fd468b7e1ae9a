import { describe, expect, it } from 'vitest';
import {
  judgeOutputs,
  parseDeclaration,
  type Diagnosis,
  type PremiseDeclaration,
} from '../../src/audit/index.js';
import { isOwnCause } from '../../src/audit/premises/own-causes.js';
import { errsRowByRow, isTypical } from '../../src/audit/premises/row-fit.js';
import { sampled, testSeed } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { runPlainKernel, toFormat, type PlainArithmetic } from './declared-kernel.js';
import { faultyKernels, normalProblem, widened } from './premises-faults.js';

const inTurn = turns(import.meta.url);

const latent = { heads: 1, queries: 16, keys: 128, qkDim: 576, vDim: 512 };
const decode = { ...latent, heads: 16, queries: 1 };
const long = { heads: 1, queries: 64, keys: 1024 };
const wide = { heads: 1, queries: 128, keys: 512, qkDim: 128, vDim: 128 };
const narrow = { heads: 1, queries: 64, keys: 128, qkDim: 16, vDim: 16 };

/** Faults that were told a premise which excuses them, at sizes where they were. */
const complaints = [
  ['an output 0.5 % too small', { heads: 1 }, 1],
  ['an output 0.5 % too large', long, 1],
  ['a dropped last key', long, 1],
  ['a dropped last key', wide, 2],
  ['16 counted zero keys', wide, 2],
  ['one wrong key of one query', latent, 2],
  ['one wrong key of one query', latent, 3],
  ['one wrong key of one query', decode, 4],
  ['a dump widened to fp32', { heads: 1, queries: 64, keys: 64 }, 1],
] as const;

describe('a fault that a premise would excuse', () => {
  inTurn.each(complaints)('is told none: %s, %o, %d', (name, sizes, seed) => {
    const problem = normalProblem(seed, sizes);
    const { out, lse } = faultyKernels[name](problem);
    const given = name.includes('widened') ? widened(problem) : problem;
    for (const one of [lse, null]) {
      const { verdict } = judgeOutputs(given, { out, lse: one });
      expect(verdict.pass).toBe(false);
      expect(verdict.premise, verdict.sentence).toBeNull();
      expect(verdict.sentence).not.toContain('--premise');
    }
  });
});

describe('a kernel that quantises Q and K by token', () => {
  inTurn.each([
    [{ heads: 1, queries: 64, keys: 64 }, 1],
    [narrow, 2],
  ] as const)('is told that, and no wider premise that it would pass by: %o, %d', (sizes, seed) => {
    const problem = normalProblem(seed, sizes);
    const { out, lse } = faultyKernels['Q and K in int8'](problem);
    const flagsOf = (one: typeof lse | null) => {
      const { verdict } = judgeOutputs(problem, { out, lse: one });
      expect(verdict.pass).toBe(false);
      return verdict.premise?.flags;
    };
    const own = '--premise qk=int8,qBlock=1,kBlock=1,qkScale=scores';
    expect(flagsOf(null)).toBe(own);
    // An LSE beside it has to fit as well, or nothing is told.
    expect([undefined, own]).toContain(flagsOf(lse));
  });
});

/** Kernels that compute otherwise, and what they are to be told. */
const kernels: Readonly<
  Record<string, readonly [string, (plain: PlainArithmetic) => Partial<PlainArithmetic>]>
> = {
  'sums in fp16': [
    'qkAccumulator=fp16,pvAccumulator=fp16',
    () => ({ dotSum: toFormat('fp16'), valueSum: toFormat('fp16') }),
  ],
  'sums Q·K in bf16': ['qkAccumulator=bf16', () => ({ dotSum: toFormat('bf16') })],
  'sums P·V in bf16': ['pvAccumulator=bf16', () => ({ valueSum: toFormat('bf16') })],
  'scores in bf16': ['scores=bf16', () => ({ score: toFormat('bf16'), dividesFirst: true })],
};

describe('a kernel that computes otherwise', () => {
  inTurn.each(Object.entries(kernels))('is told so: %s', (_, [flags, changes]) => {
    const problem = normalProblem(testSeed, { heads: 1, queries: 64 });
    const { verdict } = judgeOutputs(problem, runPlainKernel(problem, changes));
    expect(verdict.premise?.declaration, verdict.sentence).toEqual(parseDeclaration(flags, 'it'));
  });
});

/** Errors of `rows` rows of four columns, by a function of row and column. */
function errorsOf(rows: number, error: (row: number, column: number) => number, lse = 0) {
  const places = Array.from({ length: 4 * rows }, (_, i) => [Math.floor(i / 4), i % 4] as const);
  return {
    out: Float64Array.from(places, ([row, column]) => error(row, column)),
    exact: Float64Array.from(places, ([row, column]) => 1 + 0.1 * ((row + column) % 3)),
    lse: new Float64Array(rows).fill(lse),
  };
}
const signs = (row: number, column: number) => ((row * 7 + column * 3) % 4 < 2 ? 1 : -1);
const headsOf = (rows: number, heads: number) =>
  Array.from({ length: rows }, (_, row) => Math.floor((row * heads) / rows));

/** The premises that a narrow step may be, by the cause that is found. */
const premisesOfCause: Readonly<Record<string, readonly string[]>> = {
  'scores-narrow': ['scores', 'scale', 'qkAccumulator'],
  'scaled-query-narrow': ['scores', 'scale'],
  'exponent-narrow': ['scores'],
  'product-narrow': ['scores', 'scale', 'qkAccumulator', 'pvAccumulator'],
  'accumulator-narrow': ['qkAccumulator', 'pvAccumulator', 'partials'],
  'partials-narrow': ['partials', 'pvAccumulator'],
  'weights-narrow': ['weights', 'weightScale'],
  'weights-underflow': ['weightScale'],
  'row-sum-narrow': ['rowSum'],
  'rescale-narrow': ['factors'],
  'exp2-coefficient': ['rowSum', 'factors'],
  'output-truncated': ['outputRounding'],
  'output-rounded-one-way': ['outputRounding'],
  'output-rounded-twice': ['outputRounding'],
};
const allPremises = [...new Set(Object.values(premisesOfCause).flat()), 'exponential'];

describe('a cause beside a premise', () => {
  const caused = (id: string, ...equivalents: string[]): Diagnosis => ({
    id,
    equivalents,
    technique: null,
    place: null,
    sentence: id,
    evidence: [],
    candidates: [],
  });

  it('leaves what it, or one that explains as much, says of a kernel, and nothing beside a fault', () => {
    const scores = { scores: 'bf16' } as const;
    expect(isOwnCause(null, scores)).toBe(true);
    expect(isOwnCause(caused('scores-narrow'), scores)).toBe(true);
    expect(isOwnCause(caused('scores-narrow', 'accumulator-narrow'), scores)).toBe(true);
    expect(isOwnCause(caused('accumulator-narrow'), scores)).toBe(false);
    expect(isOwnCause(caused('scores-narrow', 'key-dropped'), scores)).toBe(false);
    expect(isOwnCause(caused('key-dropped'), scores)).toBe(false);
  });

  it.each(Object.entries(premisesOfCause))('leaves %s to %j, and to no others', (id, premises) => {
    for (const name of allPremises) {
      const declared = { [name]: 'bf16' } as PremiseDeclaration;
      expect(isOwnCause(caused(id), declared), name).toBe(premises.includes(name));
      expect(isOwnCause(caused('unexplained'), declared)).toBe(true);
      expect(isOwnCause(caused(id, 'key-dropped'), declared)).toBe(false);
      expect(isOwnCause(caused('key-dropped', id), declared)).toBe(false);
    }
    expect(isOwnCause(caused(id), {})).toBe(false);
    const both = { exponential: 1e-3, [premises[0]]: 'bf16' } as PremiseDeclaration;
    expect(isOwnCause(caused(id), both)).toBe(true);
  });
});

describe('the fit of a premise', () => {
  const rows = 32;
  const predicted = errorsOf(rows, signs);
  const usual = errorsOf(rows, () => 0.01);
  const compare = (found: ReturnType<typeof errorsOf>) => ({
    found,
    predicted,
    usual,
    heads: headsOf(rows, 4),
    lseRounding: 1e-7,
  });

  it('is of most rows: three in four, and no fewer', () => {
    const wrongFrom = (limit: number) =>
      compare(
        errorsOf(rows, (row, column) => (row % 4 === 0 && row < limit ? 0.01 : signs(row, column))),
      );
    expect(errsRowByRow(wrongFrom(32), true)).toBe(true);
    const half = compare(
      errorsOf(rows, (row, column) => (row % 2 === 0 ? 0.01 : signs(row, column))),
    );
    expect(errsRowByRow(half, true)).toBe(false);
  });

  it('is of every head', () => {
    // A fourth of the rows: those of one head.
    const oneHead = compare(errorsOf(rows, (row, column) => (row < 8 ? 0.01 : signs(row, column))));
    expect(errsRowByRow(oneHead, true)).toBe(false);
  });

  it.each(sampled([0.3, 3], 2))('is of the size: a factor of %d is none', (factor) => {
    const found = compare(errorsOf(rows, (row, column) => factor * signs(row, column)));
    expect(errsRowByRow(found, true)).toBe(false);
  });

  it('is of the direction, where that follows from the problem', () => {
    const found = compare(errorsOf(rows, (row, column) => -signs(row, column)));
    expect(errsRowByRow(found, true)).toBe(false);
    expect(errsRowByRow(found, false)).toBe(true);
  });

  it('leaves no common part: of O, of its columns, of the LSE', () => {
    const beside = (error: (row: number, column: number) => number, lse = 0) =>
      isTypical(
        compare(errorsOf(rows, (row, column) => signs(row, column) + error(row, column), lse)),
      );
    const noise = (row: number, column: number) => 0.1 * (((row * 13 + column * 5) % 8) - 3.5);
    expect(beside(noise)).toBe(true);
    expect(beside((row, column) => noise(row, column) + 0.4)).toBe(false);
    expect(beside(noise, 1e-5)).toBe(false);
    // Larger where O is, and no higher on the whole.
    const exact = (row: number, column: number) => 1 + 0.1 * ((row + column) % 3);
    const mean = (row: number) =>
      [0, 1, 2, 3].reduce((sum, column) => sum + exact(row, column), 0) / 4;
    const sloped = (row: number, column: number) => 0.5 * (exact(row, column) - mean(row));
    expect(beside(sloped)).toBe(false);
  });
});
