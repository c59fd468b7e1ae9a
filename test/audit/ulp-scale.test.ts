import { describe, expect, it } from 'vitest';
import { createUlpScale } from '../../src/audit/index.js';

/** The ulps of rows of two elements with these exact values, in bf16. */
function ulpsOf(...out: number[]): number[] {
  const ulpAt = createUlpScale(Float64Array.from(out), 2, 'bf16');
  return out.map((_, i) => ulpAt(i));
}

describe('the ulp of an element', () => {
  it('is that of its exact value, where that is no smaller than its row', () => {
    expect(ulpsOf(1, 1, 8, -8)).toEqual([2 ** -7, 2 ** -7, 2 ** -4, 2 ** -4]);
  });
  it("is that of its row's root mean square next to zero", () => {
    // √((1 + 1e-60)/2) is in [1/2, 1).
    expect(ulpsOf(1, 1e-30)).toEqual([2 ** -7, 2 ** -8]);
    expect(ulpsOf(1, 0)).toEqual([2 ** -7, 2 ** -8]);
  });
  it("is that of the tensor's in a row of zeros, and takes no notice of what is not finite", () => {
    expect(ulpsOf(0, 0, 4, 4)).toEqual([2 ** -6, 2 ** -6, 2 ** -5, 2 ** -5]);
    expect(ulpsOf(NaN, 1)[1]).toBe(2 ** -7);
    expect(ulpsOf(1, Infinity)[0]).toBe(2 ** -7);
  });
  it('does not overflow', () => {
    expect(ulpsOf(3e38, 3e38)).toEqual([2 ** 120, 2 ** 120]);
    expect(ulpsOf(1e200, 1e200)).toEqual([2 ** 120, 2 ** 120]);
  });
});
