import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  fixedPointExponents,
  weightError,
  withSink,
} from '../../../oracles/attention/arbitrary-level.js';
import type { Row } from '../../../oracles/attention/row.js';
import type { ScaledVector } from '../../../oracles/attention/scores.js';
import type { ScoreLaw } from '../../../src/problem/index.js';
import { scaled } from '../../setup/effort.js';
import { loadMpfr, type Arena, type Real } from '../mpfr.js';

const mpfr = await loadMpfr();

/** Far more bits than any exponent here has. */
const precision = 1200;

/** |fixed · 2^-bits − exact| in units of 2^-bits. */
function units(arena: Arena, fixed: bigint, bits: number, exact: Real): number {
  const difference = arena.subtract(arena.scaled(fixed, -bits), exact);
  return Math.abs(arena.toNumber(arena.scale(difference, bits)));
}

/** Numbers of one exponent, from far below a unit to far beyond a softcap. */
const vector: fc.Arbitrary<ScaledVector> = fc.record({
  integers: fc.array(
    fc
      .bigInt({ min: -(2n ** 100n), max: 2n ** 100n })
      .chain((x) => fc.nat(100).map((cut) => x >> BigInt(cut))),
    { minLength: 1, maxLength: 4 },
  ),
  exponent: fc.integer({ min: -160, max: 60 }),
});

const bitsOfLevel = fc.constantFrom(8, 24, 53, 192);
const addend = fc.double({ min: -(2 ** 40), max: 2 ** 40, noNaN: true });

it('exponents and slopes in fixed point are within their units of what MPFR has', () => {
  fc.assert(
    fc.property(
      fc.record({
        scores: vector,
        bits: bitsOfLevel,
        // From 2^-20 to 2^30, most of them no power of two.
        softcap: fc.option(
          fc
            .tuple(fc.double({ min: 1, max: 2, noNaN: true }), fc.integer({ min: -20, max: 30 }))
            .map(([x, n]) => x * 2 ** n),
        ),
        signs: fc.array(fc.constantFrom(0, 0, 0, 1, -1), { minLength: 4, maxLength: 4 }),
        addends: fc.option(fc.array(addend, { minLength: 4, maxLength: 4 })),
        rest: fc.constantFrom(null, 2 ** -20, -(2 ** -30)),
      }),
      ({ scores, bits, softcap, signs, addends, rest }) => {
        const { integers, exponent } = scores;
        const row = {
          infinite: Int8Array.from(integers, (_, j) => signs[j]),
          addends: addends === null ? null : Float64Array.from(integers, (_, j) => addends[j]),
          addendRests: rest === null ? null : new Float64Array(integers.length).fill(rest),
        } as unknown as Row;
        const { y, slopes } = fixedPointExponents(scores, row, { softcap } as ScoreLaw, bits);
        expect(slopes === null).toBe(softcap === null);
        mpfr.withPrecision(precision, (a) => {
          const octaves = (x: Real) => a.divide(x, a.ln2());
          integers.forEach((integer, j) => {
            const score = a.scaled(integer, exponent);
            if (softcap === null) {
              // The addends of scores without a softcap are among the scores.
              expect(units(a, y[j], bits, octaves(score))).toBeLessThanOrEqual(1 + 2 ** -7);
              return;
            }
            const cap = a.of(softcap);
            const ratio = a.divide(score, cap);
            const sign = signs[j];
            const tanh = sign === 0 ? a.tanh(ratio) : a.of(sign);
            const added = a.add(a.of(addends?.[j] ?? 0), a.of(addends === null ? 0 : (rest ?? 0)));
            const exact = a.add(a.multiply(cap, tanh), added);
            const allowed = 2 + (addends === null ? 0 : 1 + 2 ** -7);
            expect(units(a, y[j], bits, octaves(exact))).toBeLessThanOrEqual(allowed);
            // 4e / (1 + e)² for e = exp(−2 |x| / cap).
            const e = a.exp(a.multiply(a.of(-2), a.absolute(ratio)));
            const sum = a.add(a.of(1), e);
            const slope = a.divide(a.multiply(a.of(4), e), a.multiply(sum, sum));
            const ofSlope = units(a, slopes!.integers[j], bits, sign === 0 ? slope : a.of(0));
            expect(ofSlope).toBeLessThanOrEqual(Number(slopes!.error));
          });
        });
        if (slopes !== null) expect(slopes.error).toBe(2n);
      },
    ),
    { numRuns: scaled(150) },
  );
});

it('a sink joins a sum within the units of a weight and of a shift, lifted where it is larger', () => {
  let [lifted, far] = [0, 0];
  fc.assert(
    fc.property(
      bitsOfLevel,
      fc.bigInt({ min: 1n, max: 2n ** 12n }),
      fc.integer({ min: -40, max: 40 }),
      fc.oneof(
        fc.double({ min: -60, max: 60, noNaN: true }),
        fc.constantFrom(0, 6900, 7200, -9000),
      ),
      (bits, size, reference, logit) => {
        const keys = { sum: (size << BigInt(bits)) / 7n, error: size };
        const row = { sink: { logit, inLse: true, weight: null } } as unknown as Row;
        const { sum, error, lift } = withSink(keys, BigInt(reference), row, bits);
        expect(error).toBe(size + weightError + 1n);
        mpfr.withPrecision(bits + 400, (a) => {
          const octaves = a.divide(a.of(logit), a.ln2());
          // At an octave's end a unit decides in which the sink is.
          const above = a.toNumber(octaves) - reference;
          expect(Number(lift)).toBeGreaterThanOrEqual(
            Math.max(0, Math.floor(above - 2 ** (2 - bits) - 2 ** -40)),
          );
          expect(Number(lift)).toBeLessThanOrEqual(Math.max(0, Math.floor(above + 2 ** -40)));
          if (lift > 0n) lifted++;
          if (lift > 10_000n) far++;
          const ofKeys = a.scale(a.scaled(keys.sum, -bits), -Number(lift));
          const ofSink = a.exp2(a.subtract(octaves, a.of(reference + Number(lift))));
          expect(units(a, sum, bits, a.add(ofKeys, ofSink))).toBeLessThanOrEqual(
            Number(weightError + 1n),
          );
        });
        const none = withSink(keys, BigInt(reference), { sink: null } as Row, bits);
        expect(none).toEqual({ ...keys, lift: 0n });
      },
    ),
    { numRuns: scaled(150) },
  );
  expect(lifted).toBeGreaterThan(0);
  expect(far).toBeGreaterThan(0);
});
