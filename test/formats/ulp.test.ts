import { describe, expect, it } from 'vitest';
import {
  decode,
  formats,
  nextDown,
  nextUp,
  smallestSubnormal,
  ulp,
} from '../../src/formats/index.js';
import { RequestError } from '../../src/request-error.js';
import { doubleSource, fromPattern64, pattern64 } from './exact.js';

const tabulated = [formats.bf16, formats.fp16, formats.e4m3, formats.e5m2, formats.e2m1];

describe.each(tabulated)('the neighbours of every $name number', (format) => {
  const finite: number[] = [];
  for (
    let bits = 0;
    bits < 2 ** (format.storageBits - 1) && Number.isFinite(decode(format, bits));
    bits++
  )
    finite.push(decode(format, bits));

  it('are the numbers of the adjacent patterns, an ulp away', () => {
    for (let i = 1; i < finite.length; i++) {
      const [below, x] = [finite[i - 1], finite[i]];
      const right =
        nextUp(format, below) === x &&
        Object.is(nextDown(format, x), below) &&
        Object.is(nextUp(format, -x), -below) &&
        nextDown(format, -below) === -x &&
        ulp(format, below) === x - below &&
        ulp(format, -below) === x - below &&
        ulp(format, (below + x) / 2) === x - below;
      if (!right) expect.fail(`between ${below} and ${x}`);
    }
  });

  it('end at infinity, or at NaN where there is none', () => {
    const top = format.specials === 'ieee' ? Infinity : NaN;
    expect(nextUp(format, format.maxFinite)).toBe(top);
    expect(nextDown(format, -format.maxFinite)).toBe(-top);
    if (format.specials === 'ieee') {
      expect(nextUp(format, -Infinity)).toBe(-format.maxFinite);
      expect(nextUp(format, Infinity)).toBe(Infinity);
      expect(nextDown(format, Infinity)).toBe(format.maxFinite);
    } else {
      expect(() => nextUp(format, Infinity)).toThrow(RequestError);
    }
  });
});

describe('neighbours in fp64 and fp32', () => {
  it('are the adjacent fp64 patterns', () => {
    const next = doubleSource(41, -1023, 1023);
    const powers = Array.from({ length: 2098 }, (_, i) => 2 ** (i - 1074));
    for (const x of [...Array.from({ length: 20_000 }, next), ...powers, Number.MAX_VALUE]) {
      const magnitude = Math.abs(x);
      const above = fromPattern64(pattern64(magnitude) + 1n);
      const below = fromPattern64(pattern64(magnitude) - 1n);
      const right =
        Object.is(nextUp(formats.fp64, magnitude), above) &&
        Object.is(nextDown(formats.fp64, magnitude), below) &&
        Object.is(nextUp(formats.fp64, -magnitude), -below);
      if (!right) expect.fail(`${x}`);
    }
  });

  it('refuse a number that the format does not hold', () => {
    expect(() => nextUp(formats.fp32, 0.1)).toThrow(
      /^0.1 is no fp32 number, .* round it first \(to nearest: 0.10000000149011612\)$/,
    );
  });
});

describe.each(Object.values(formats))('at the ends of $name', (format) => {
  it('an ulp is the smallest subnormal at zero and that of the top binade beyond the range', () => {
    expect(ulp(format, 0)).toBe(smallestSubnormal(format));
    expect(ulp(format, -0)).toBe(smallestSubnormal(format));
    expect(ulp(format, smallestSubnormal(format) / 2)).toBe(smallestSubnormal(format));
    expect(ulp(format, Number.MAX_VALUE)).toBe(ulp(format, format.maxFinite));
    expect(ulp(format, format.maxFinite)).toBe(
      format.maxFinite - nextDown(format, format.maxFinite),
    );
  });

  it('an ulp of what is not finite is NaN, and so is a neighbour of NaN', () => {
    for (const x of [NaN, Infinity, -Infinity]) expect(ulp(format, x)).toBe(NaN);
    expect(nextUp(format, NaN)).toBe(NaN);
    expect(nextDown(format, NaN)).toBe(NaN);
  });

  it('the neighbours of both zeros are the smallest subnormals', () => {
    const smallest = smallestSubnormal(format);
    for (const zero of [0, -0]) {
      expect(nextUp(format, zero)).toBe(smallest);
      expect(nextDown(format, zero)).toBe(-smallest);
    }
    expect(nextUp(format, -smallest)).toBe(-0);
    expect(nextDown(format, smallest)).toBe(0);
  });
});
