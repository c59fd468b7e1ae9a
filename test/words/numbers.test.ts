import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatApart, formatNumber } from '../../src/words/numbers.js';

describe('two numbers told apart', () => {
  it('have two digits of their difference', () => {
    expect(formatApart(7.29002, 7.29)).toEqual(['7.290020', '7.290000']);
    expect(formatApart(-1.22e-7, -1.2157e-7)).toEqual(['-1.2200e-7', '-1.2157e-7']);
    expect(formatApart(123456.25, 123456)).toEqual(['1.2345625e+5', '1.2345600e+5']);
  });

  it('have three digits where these are enough, or where they are equal', () => {
    expect(formatApart(5.55, 4.86)).toEqual(['5.55', '4.86']);
    expect(formatApart(2, 2)).toEqual(['2', '2']);
    expect(formatApart(Infinity, 1)).toEqual(['Infinity', '1']);
    expect(formatApart(NaN, 0)).toEqual(['NaN', '0']);
  });

  it('differ as texts by their difference, to a tenth, down to the last digits of fp64', () => {
    const number = fc.double({ min: -1e30, max: 1e30, noNaN: true });
    fc.assert(
      fc.property(number, fc.integer({ min: 1, max: 12 }), (a, power) => {
        const b = a * (1 + 10 ** -power);
        const [first, second] = formatApart(a, b);
        if (a === b || Math.abs(a) < 1e-290) return;
        expect(first).not.toBe(second);
        const shown = Math.abs(Number(first) - Number(second));
        if (first !== formatNumber(a))
          expect(Math.abs(shown / Math.abs(a - b) - 1)).toBeLessThan(0.11);
      }),
    );
  });
});
