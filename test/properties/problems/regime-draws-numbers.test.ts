import { describe, expect, it } from 'vitest';
import { type RegimeName } from '../../../properties/index.js';
import { formats, smallestSubnormal } from '../../../src/formats/index.js';
import { upTo, drawn, seeds, all, deviation, expectFilled } from './drawn-values.js';

describe('normal numbers', () => {
  it.each([
    ['normal', 1],
    ['normal-4', 2],
    ['normal-16', 4],
    ['positive-values', 2],
    ['ones', 1],
  ] as const)('%s: Q and K of deviation %d', (name, size) => {
    const { q, k, v } = drawn({ name, of: { queries: 60, keys: 120 } }, 1);
    for (const tensor of [q, k]) expect(Math.abs(deviation(tensor) / size - 1)).toBeLessThan(0.06);
    if (name === 'ones') expect(new Set(v)).toEqual(new Set([1]));
    else expect(Math.abs(deviation(v) - 1)).toBeLessThan(0.06);
    expect([...v].some((x) => x < 0)).toBe(name.startsWith('normal'));
  });

  it('large and tiny: by powers of two, of Q and K apart', () => {
    const sized = (name: RegimeName, tensor: 'q' | 'k') =>
      all({ name, of: { queries: 40, keys: 80 } }).map((values) =>
        Math.round(Math.log2(deviation(values[tensor]))),
      );
    for (const tensor of ['q', 'k'] as const) {
      expect(new Set(sized('large', tensor))).toEqual(new Set([1, 2, 3, 4, 5]));
      expect(new Set(sized('tiny', tensor))).toEqual(new Set(upTo(11, -12)));
    }
    for (const format of ['fp16', 'e5m2'] as const) {
      const { precision } = formats[format];
      const units = all({ name: 'tiny', of: { keys: 80 }, format }).map(({ v }) =>
        Math.round(Math.log2(deviation(v) / smallestSubnormal(formats[format]))),
      );
      expect(new Set(units)).toEqual(new Set(upTo(precision + 1)));
    }
    expect(sized('large', 'q')).not.toEqual(sized('large', 'k'));
  });

  it('student-t: a twentieth beyond 3.18, half beyond 0.765', () => {
    const { q, k, v } = drawn({ name: 'student-t', of: { queries: 400, keys: 800 } }, 3);
    for (const values of [q, k]) {
      const share = (limit: number) =>
        values.filter((x) => Math.abs(x) > limit).length / values.length;
      expect(Math.abs(share(3.182) - 0.05)).toBeLessThan(0.006);
      expect(Math.abs(share(0.765) - 0.5)).toBeLessThan(0.02);
    }
    expect(Math.abs(deviation(v) - 1)).toBeLessThan(0.06);
  });

  it('outlier-channel: one channel 16 to 128 times the others', () => {
    const channels = all({ name: 'outlier-channel', of: { queries: 30, keys: 60 } }).map(
      ({ q, k }) => {
        const sizesOf = [q, k].map((tensor) =>
          upTo(4).map((c) => deviation(tensor.filter((_, i) => i % 4 === c))),
        );
        const [channel] = upTo(4).filter((c) => sizesOf[0][c] > 8);
        for (const list of sizesOf)
          list.forEach((size, c) => {
            if (c !== channel) expect(Math.abs(size - 1)).toBeLessThan(0.3);
          });
        return { channel, factor: Math.round(Math.log2(sizesOf[1][channel])) };
      },
    );
    expect(new Set(channels.map(({ channel }) => channel))).toEqual(new Set([0, 1, 2, 3]));
    expect(new Set(channels.map(({ factor }) => factor))).toEqual(new Set([4, 5, 6, 7]));
  });
});

describe('sizes of numbers', () => {
  it('zeros: every choice of tensors, of either sign', () => {
    const cleared = all({ name: 'zeros' }).map(({ q, k, v }) =>
      [q, k, v].map((tensor) => tensor.every((x) => x === 0)),
    );
    expect(new Set(cleared.map(String)).size).toBe(7);
    expect(cleared.every((one) => one.includes(true))).toBe(true);
    const signs = all({ name: 'zeros' }).flatMap(({ q }) =>
      [...q].filter((x) => x === 0).map((x) => Object.is(x, -0)),
    );
    expect(new Set(signs)).toEqual(new Set([true, false]));
  });

  it('subnormal: whole units below the smallest normal number', () => {
    for (const format of ['e5m2', 'fp16'] as const) {
      const unit = smallestSubnormal(formats[format]);
      const most = 2 ** (formats[format].precision - 1) - 1;
      const drawnAll = all({ name: 'subnormal', format });
      const units = drawnAll.flatMap(({ v }) => [...v].map((x) => x / unit));
      expectFilled(units.map(Math.abs), 1, most);
      expect(units.every(Number.isInteger)).toBe(true);
      expect(new Set(units.map(Math.sign)).size).toBe(2);
      for (const tensor of ['q', 'k'] as const) {
        const share =
          drawnAll.filter((values) => deviation(values[tensor]) < 0.1).length / seeds.length;
        expect(share).toBeGreaterThan(0.1);
        expect(share).toBeLessThan(0.45);
      }
    }
  });

  it('wide-exponents: all of them, alike', () => {
    for (const format of ['e4m3', 'fp16', 'fp32'] as const) {
      const { minExponent, maxExponent, precision, maxFinite } = formats[format];
      const numbers = all({ name: 'wide-exponents', format }).flatMap(({ q, k, v }) =>
        [...q, ...k, ...v].map(Math.abs),
      );
      const lowest = minExponent - precision + 1;
      expectFilled(
        numbers.map((x) => Math.floor(Math.log2(x))),
        lowest,
        maxExponent,
        0,
      );
      expect(Math.max(...numbers)).toBeLessThanOrEqual(maxFinite);
      const middle = numbers.filter((x) => Math.log2(x) < (lowest + maxExponent + 1) / 2).length;
      expect(Math.abs(middle / numbers.length - 0.5)).toBeLessThan(0.05);
    }
  });
});
