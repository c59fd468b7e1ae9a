import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { instantiateForward } from '../../../kernels/online-softmax/webassembly/module.js';
import { fusedMultiplyAddFloat32 } from '../../../src/arith/index.js';

const kernels = instantiateForward();
const address = 2 ** 16;
kernels.memory.grow(1);

/** s·scale + bias in WebAssembly. */
function scaleSubtract(scores: readonly number[], scale: number, bias: number): number[] {
  const view = new Float32Array(kernels.memory.buffer, address, 4 * Math.ceil(scores.length / 4));
  view.fill(0);
  view.set(scores);
  kernels.scaleSubtract(address, view.length, scale, bias);
  return [...view.subarray(0, scores.length)];
}

const float = fc.float({ noNaN: true });

/**
 * 205·5237765 = 2^30 + 1 and 151·7110873 = 2^30 − 1: with a power of two as bias the sum lies a
 * quarter of an fp64 ulp beside the middle of two fp32 numbers, where rounding to fp64 first errs.
 */
const besideMiddle = fc
  .record({
    factors: fc.constantFrom([205, 5237765] as const, [151, 7110873] as const),
    exponent: fc.integer({ min: -60, max: 60 }),
    sign: fc.constantFrom(1, -1),
    biasSign: fc.constantFrom(1, -1),
  })
  .map(({ factors, exponent, sign, biasSign }) => ({
    s: sign * factors[0],
    scale: factors[1] * 2 ** (exponent - 30),
    // Half an ulp of the bias, or below it where the result is in the binade beneath.
    bias: biasSign * 2 ** (exponent + (sign * biasSign > 0 ? 24 : 25)),
  }));

describe('scale and subtract', () => {
  it('rounds once, for all numbers', () => {
    fc.assert(
      fc.property(fc.array(float, { minLength: 1 }), float, float, (scores, scale, bias) => {
        expect(scaleSubtract(scores, scale, bias)).toEqual(
          scores.map((s) => fusedMultiplyAddFloat32(s, scale, bias)),
        );
      }),
      { numRuns: 2000 },
    );
  });

  it('rounds once where rounding to fp64 before would tell', () => {
    let differing = 0;
    fc.assert(
      fc.property(besideMiddle, fc.integer({ min: 0, max: 3 }), ({ s, scale, bias }, lane) => {
        const scores = [1, 2, 3, 4];
        scores[lane] = s;
        const expected = fusedMultiplyAddFloat32(s, scale, bias);
        expect(scaleSubtract(scores, scale, bias)[lane]).toBe(expected);
        if (Math.fround(s * scale + bias) !== expected) differing++;
      }),
      { numRuns: 500 },
    );
    expect(differing).toBeGreaterThan(100);
  });

  it('rounds once to subnormal numbers', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2 ** 12 }),
        fc.integer({ min: 2 ** 23, max: 2 ** 24 - 1 }),
        fc.integer({ min: -4, max: 4 }),
        (s, significand, units) => {
          const scale = significand * 2 ** -149;
          const score = s * 2 ** -24;
          const bias = units * 2 ** -149;
          expect(scaleSubtract([score], scale, bias)).toEqual([
            fusedMultiplyAddFloat32(score, scale, bias),
          ]);
        },
      ),
      { numRuns: 2000 },
    );
  });
});
