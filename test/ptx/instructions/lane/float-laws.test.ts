import { describe, expect, it } from 'vitest';
import { bits64, type Exact, exact, float32, order, product, sum } from '../../../arith/exact.js';
import { operand, row } from './rows.js';
import { patternCount } from './silicon-patterns.js';
import { turns } from '../../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** Whether no neighbour of a number of the format is nearer to the exact value, ties to even. */
function isNearest(
  bits: number,
  target: Exact,
  { numberOf, largest }: { numberOf: (bits: number) => number; largest: number },
): boolean {
  const magnitude = bits & 0x7fff;
  const sign = bits >>> 15 === 1 ? -1 : 1;
  const valueOf = (index: number) => (index > largest ? NaN : sign * numberOf(index));
  if (magnitude > largest) return magnitude === largest + 1;
  const distance = (index: number): Exact => {
    const value = exact(valueOf(index));
    const { integer, exponent } = sum(target, { ...value, integer: -value.integer });
    return { integer: integer < 0n ? -integer : integer, exponent };
  };
  const own = distance(magnitude);
  return [magnitude - 1, magnitude + 1]
    .filter((index) => index >= 0 && index <= largest)
    .every((index) => {
      const side = order(own, distance(index));
      return side < 0 || (side === 0 && magnitude % 2 === 0);
    });
}

describe('half precision', () => {
  const half = (fraction: number, bias: number) => (bits: number) => {
    const field = bits >>> fraction;
    const rest = bits & (2 ** fraction - 1);
    const exponent = Math.max(field, 1) - bias - fraction;
    return (rest + (field === 0 ? 0 : 2 ** fraction)) * 2 ** exponent;
  };
  const formats = {
    f16: { numberOf: half(10, 15), largest: 0x7bff },
    bf16: { numberOf: half(7, 127), largest: 0x7f7f },
  };

  it.each(['f16', 'bf16'] as const)('%s is rounded once', (type) => {
    const { numberOf, largest } = formats[type];
    const numbers = (pattern: number) => [0, 1, 2].map((k) => Number(operand(pattern, k, 16)));
    let compared = 0;
    for (let pattern = 0; pattern < patternCount; pattern += 3) {
      const bits = numbers(pattern);
      if (bits.some((word) => (word & 0x7fff) > largest)) continue;
      const [a, b, c] = bits.map((word) => exact((word >>> 15 ? -1 : 1) * numberOf(word & 0x7fff)));
      const cases: readonly (readonly [string, Exact])[] = [
        [`add.${type}`, sum(a, b)],
        [`mul.${type}`, product(a, b)],
        [`fma.rn.${type}`, sum(product(a, b), c)],
      ];
      for (const [name, target] of cases) {
        if (target.integer === 0n) continue;
        compared++;
        const result = row(name).evaluate(...bits) as number;
        const isSigned = (result >>> 15 === 1) === target.integer < 0n;
        // What rounds to zero keeps its sign.
        if (!isSigned || !isNearest(result, target, formats[type]))
          expect.fail(
            `${name}(${bits.map((word) => word.toString(16)).join()}) = ${result.toString(16)}`,
          );
      }
    }
    expect(compared).toBeGreaterThan(1000);
  });

  it('has special values', () => {
    expect(row('add.f16').evaluate(0x7c00, 0xfc00)).toBe(0x7fff);
    expect(row('add.sat.f16').evaluate(0x4000, 0x3c00)).toBe(0x3c00);
    expect(row('fma.rn.relu.bf16').evaluate(0xbf80, 0x3f80, 0)).toBe(0);
    // The product is halfway between two numbers, and c, far below it, decides.
    expect(row('fma.rn.bf16').evaluate(0x3f81, 0x3fc0, 0x8d80)).toBe(0x3fc1);
    expect(row('mul.ftz.f16').evaluate(0x0400, 0x3800)).toBe(0);
    expect(row('min.NaN.bf16x2').evaluate(0x7fc03f80, 0x3f804000)).toBe(0x7fff3f80);
    expect(row('max.xorsign.abs.f16').evaluate(0xc000, 0x3c00)).toBe(0xc000);
    expect(row('neg.bf16').evaluate(0)).toBe(0x8000);
  });
});

describe('quotients and roots of fp32', () => {
  const modes = ['rn', 'rz', 'rm', 'rp'] as const;
  const step = (bits: number, up: boolean) =>
    float32((bits >>> 31 === 0) === up ? bits + 1 : bits - 1);

  /** Whether a result is the exact number rounded, by what `compare` says of results and their middles. */
  const isRounded = (bits: number, mode: (typeof modes)[number], compare: (x: Exact) => number) => {
    const result = float32(bits);
    const side = compare(exact(result));
    if (side === 0) return true;
    const isBelow = side < 0;
    const other = step(bits, isBelow);
    if (compare(exact(other)) < 0 === isBelow) return false;
    if (mode === 'rm') return isBelow;
    if (mode === 'rp') return !isBelow;
    if (mode === 'rz') return isBelow === result > 0;
    const middle = compare(exact((result + other) / 2));
    return middle === 0 ? bits % 2 === 0 : middle > 0 === isBelow;
  };

  it('are rounded once in each mode', () => {
    let compared = 0;
    for (let pattern = 0; pattern < patternCount; pattern += 5) {
      const [a, b] = [0, 1].map((k) => Number(operand(pattern, k, 32)));
      const [x, y] = [float32(a), float32(b)];
      const isPlain = [x, y].every(
        (value) => Math.abs(value) > 2 ** -120 && Math.abs(value) < 2 ** 120,
      );
      const quotient = Math.abs(x / y);
      if (!isPlain || quotient < 2 ** -120 || quotient > 2 ** 120) continue;
      for (const mode of modes) {
        compared++;
        const divisor = exact(Math.abs(y));
        const dividend = exact(y < 0 ? -x : x);
        const divided = row(`div.${mode}.f32`).evaluate(a, b) as number;
        expect(isRounded(divided, mode, (r) => order(product(r, divisor), dividend))).toBe(true);
        if (x < 0) continue;
        const root = row(`sqrt.${mode}.f32`).evaluate(a) as number;
        expect(isRounded(root, mode, (r) => order(product(r, r), exact(x)))).toBe(true);
      }
    }
    expect(compared).toBeGreaterThan(500);
  });

  it('have special values', () => {
    expect(row('div.rn.f32').evaluate(0x3f800000, 0x80000000)).toBe(0xff800000);
    expect(row('div.rn.f32').evaluate(0, 0)).toBe(0x7fffffff);
    expect(row('div.rz.f32').evaluate(0x7f7fffff, 0x3f000000)).toBe(0x7f7fffff);
    expect(row('div.rn.ftz.f32').evaluate(0x00800000, 0x40000000)).toBe(0);
    expect(row('rcp.rn.f32').evaluate(0x7f000000)).toBe(0x00400000);
    expect(row('sqrt.rn.f32').evaluate(0x80000000)).toBe(0x80000000);
    expect(row('div.full.f32').evaluate(0x7f000001, 0x7f000001)).toBe(0x3f800000);
    expect(row('fma.rn.sat.f32').evaluate(0x7fc00000, 0, 0)).toBe(0);
    expect(row('min.xorsign.abs.f32').evaluate(0xc0000000, 0x3f800000)).toBe(0xbf800000);
  });
});

describe('fp64', () => {
  it('passes NaN on, and has special values', () => {
    expect(row('add.f64').evaluate(0x7ff0000000000001n, bits64(1))).toBe(0x7ff8000000000001n);
    const [a, b, c] = [1n, 2n, 3n].map((payload) => 0x7ff8000000000000n + payload);
    expect(row('fma.rn.f64').evaluate(a, b, c)).toBe(b);
    expect(row('fma.rn.f64').evaluate(a, 0n, c)).toBe(c);
    expect(row('mul.f64').evaluate(a, b)).toBe(b);
    expect(row('neg.f64').evaluate(0xfff0000000000001n)).toBe(0xfff8000000000001n);
    expect(row('sub.f64').evaluate(bits64(Infinity), bits64(Infinity))).toBe(0xfff8000000000000n);
    expect(row('max.f64').evaluate(0x7ff0000000000001n, bits64(1))).toBe(bits64(1));
    expect(row('min.f64').evaluate(bits64(-0), 0n)).toBe(bits64(-0));
    expect(row('abs.f64').evaluate(bits64(-3))).toBe(bits64(3));
    expect(row('rcp.rn.f64').evaluate(bits64(3))).toBe(bits64(1 / 3));
    expect(row('fma.rz.f64').evaluate(bits64(3), bits64(1 / 3), bits64(-1))).toBe(
      bits64(-(2 ** -54)),
    );
  });
});

describe('fma.oob', () => {
  inTurn('is fma, and 0 where a factor is the NaN of what lies outside of a tensor', () => {
    for (const type of ['f16', 'bf16'] as const)
      for (let pattern = 0; pattern < patternCount; pattern++) {
        const [a, b, c] = [0, 1, 2].map((k) => Number(operand(pattern, k, 16)));
        for (const relu of ['', '.relu']) {
          const fused = row(`fma.rn.oob${relu}.${type}`);
          const isOutside = [a, b].some((half) => (half & 0x7fff) === 0x7ff7);
          const due = isOutside ? 0 : row(`fma.rn${relu}.${type}`).evaluate(a, b, c);
          expect(fused.evaluate(a, b, c)).toBe(due);
          for (const nan of [0x7ff7, 0xfff7]) {
            expect(fused.evaluate(nan, b, c)).toBe(0);
            expect(fused.evaluate(a, nan, c)).toBe(0);
          }
        }
      }
  });
});
