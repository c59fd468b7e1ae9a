import { describe, expect, it } from 'vitest';
import {
  formats,
  smallestNormal,
  smallestSubnormal,
  unitRoundoff,
} from '../../src/formats/index.js';

describe('the table of formats', () => {
  it.each([
    ['fp64', 2 ** -1022, 2 ** -1074, 2 ** -53, Number.MAX_VALUE],
    ['fp32', 2 ** -126, 2 ** -149, 2 ** -24, 3.4028234663852886e38],
    ['tf32', 2 ** -126, 2 ** -136, 2 ** -11, 3.4011621342146535e38],
    ['bf16', 2 ** -126, 2 ** -133, 2 ** -8, 3.3895313892515355e38],
    ['fp16', 2 ** -14, 2 ** -24, 2 ** -11, 65504],
    ['e4m3', 2 ** -6, 2 ** -9, 2 ** -4, 448],
    ['e5m2', 2 ** -14, 2 ** -16, 2 ** -3, 57344],
    ['e2m1', 1, 0.5, 0.25, 6],
  ] as const)('%s has the published extremes', (name, normal, subnormal, roundoff, maximum) => {
    const format = formats[name];
    expect(smallestNormal(format)).toBe(normal);
    expect(smallestSubnormal(format)).toBe(subnormal);
    expect(unitRoundoff(format)).toBe(roundoff);
    expect(format.maxFinite).toBe(maximum);
  });

  it.each(Object.values(formats))('$name accounts for every storage bit', (format) => {
    const { exponentBits, precision, paddingBits, storageBits } = format;
    expect(1 + exponentBits + (precision - 1) + paddingBits).toBe(storageBits);
  });
});
