import { describe, expect, it } from 'vitest';
import { loadMpfr } from '../mpfr.js';
import { scoredKeys, singleHead } from '../../setup/problems.js';
import { sees, withReference } from './reference-attention.js';

const mpfr = await loadMpfr();

describe('MPFR in WebAssembly', () => {
  it('computes at the asked precision', () => {
    mpfr.withPrecision(400, (arena) => {
      const third = arena.divide(arena.of(1), arena.of(3));
      const error = arena.subtract(arena.multiply(third, arena.of(3)), arena.of(1));
      expect(Math.abs(arena.toNumber(error))).toBeLessThanOrEqual(2 ** -399);
      const one = arena.multiply(arena.log(arena.exp(third)), arena.of(3));
      expect(arena.distance(one, 1)).toBeLessThan(2 ** -390);
    });
  });

  it('gives memory back', () => {
    const use = () =>
      mpfr.withPrecision(4096, (arena) => {
        for (let i = 0; i < 10_000; i++) arena.of(i);
      });
    use();
    const before = mpfr.heapBytes();
    for (let round = 0; round < 20; round++) use();
    expect(mpfr.heapBytes()).toBe(before);
  });
});

describe('the reference attention', () => {
  it('is the mean for equal scores', () => {
    const problem = scoredKeys('fp64', [3, 3, 3, 3], [1, 2, 3, 10]);
    withReference(mpfr, problem, (reference) => {
      expect(reference.outDistance(0, 0, 4)).toBeLessThan(2 ** -380);
      expect(reference.magnitude(0, 0)).toBe(4);
      expect(reference.lse(0)).toBe(3 + Math.log(4));
    });
  });

  it('is the logistic function for two keys', () => {
    const problem = scoredKeys('fp64', [0, Math.LN2], [0, 1]);
    withReference(mpfr, problem, (reference) => {
      // e^fl(ln 2) misses 2 by less than 2^-53.
      expect(reference.outDistance(0, 0, 2 / 3)).toBeLessThan(2 ** -53);
      expect(reference.outDistance(0, 0, 2 / 3 + 2 ** -50)).toBeGreaterThan(2 ** -51);
    });
  });

  it('caps the scaled score', () => {
    const problem = singleHead(
      'fp64',
      { q: [[2]], k: [[3]], v: [[1]] },
      { scale: 0.5, softcap: 4 },
    );
    withReference(mpfr, problem, (reference) =>
      expect(reference.lse(0)).toBeCloseTo(4 * Math.tanh(3 / 4), 14),
    );
  });

  it('masks as tables drawn by hand', () => {
    const table = (settings: Parameters<typeof singleHead>[2], queries: number, keys: number) => {
      const rows = (count: number) => Array.from({ length: count }, () => [0]);
      const problem = singleHead(
        'fp32',
        { q: rows(queries), k: rows(keys), v: rows(keys) },
        settings,
      );
      return Array.from({ length: queries }, (_, i) =>
        Array.from({ length: keys }, (_, j) => (sees(problem, i, j) ? 'x' : '.')).join(''),
      );
    };
    expect(table({}, 2, 3)).toEqual(['xxx', 'xxx']);
    expect(table({ causal: true }, 2, 4)).toEqual(['xxx.', 'xxxx']);
    expect(table({ causal: true }, 4, 2)).toEqual(['..', '..', 'x.', 'xx']);
    expect(table({ window: { left: 1, right: 0 } }, 3, 4)).toEqual(['xx..', '.xx.', '..xx']);
    expect(table({ window: { left: -1, right: 1 } }, 2, 4)).toEqual(['xxxx', 'xxxx']);
    expect(table({ window: { left: 0, right: -1 } }, 2, 3)).toEqual(['.xx', '..x']);
    expect(table({ causal: true, window: { left: 1, right: 2 } }, 2, 4)).toEqual(['.xx.', '..xx']);
    expect(table({ window: { left: 0, right: 0 } }, 3, 1)).toEqual(['.', '.', 'x']);
  });
});
