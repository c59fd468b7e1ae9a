import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decode, encode, formats, nextUp } from '../../../src/formats/index.js';
import type { RoundingMode } from '../../../src/formats/index.js';
import { conversions, convertPacked, convertPair } from '../../../src/hardware/index.js';
import type { ConversionName, PairConversionName } from '../../../src/hardware/index.js';
import { RequestError } from '../../../src/request-error.js';
import { scaled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { fromFp8PairNames, fromHalfPairNames, pairNames } from './captures.js';

const inTurn = turns(import.meta.url);

const names = Object.keys(conversions) as ConversionName[];
const float32Bits = fc.oneof(
  fc.integer({ min: 0, max: 0xffffffff }),
  // The range in which the narrow formats have numbers.
  fc.integer({ min: encode(formats.fp32, 2 ** -28), max: encode(formats.fp32, 2 ** 17) }),
);
const runs = { numRuns: scaled(80) };

function bitsOf(name: ConversionName): fc.Arbitrary<number> {
  const { source } = conversions[name];
  return source === 'fp32'
    ? float32Bits
    : fc.integer({ min: 0, max: 2 ** formats[source].storageBits - 1 });
}

function input(name: ConversionName, bits: number): number {
  return decode(formats[conversions[name].source], bits);
}

function result(name: ConversionName, bits: number): number {
  return decode(formats[conversions[name].destination], conversions[name].evaluate(bits));
}

describe.each(names)('%s', (name) => {
  const { source, destination, rounding, overflow, nan, evaluate, evaluateArray } =
    conversions[name];
  const [from, to] = [formats[source], formats[destination]];
  const sourceSign = 2 ** (from.storageBits - 1);
  const resultSign = 2 ** (to.storageBits - 1);

  it('does what its name says', () => {
    const [cvt, ...parts] = name.split('.');
    const spelled = (format: string): string => format.replace('fp', 'f');
    const roundings: Record<string, RoundingMode> = { rn: 'nearest-even', rz: 'toward-zero' };
    expect(cvt).toBe('cvt');
    expect(rounding).toBe(roundings[parts[0]] ?? null);
    expect(overflow).toBe(parts.includes('satfinite') ? 'saturate' : 'overflow');
    const types = parts.slice(-2).map((type) => type.replace('x2', ''));
    // fp32 is f32 and fp16 is f16 to PTX.
    expect(types).toEqual([spelled(destination), spelled(source)]);
  });

  it('gives the same by arrays, in place too', () => {
    fc.assert(
      fc.property(fc.array(bitsOf(name), { maxLength: 40 }), (inputs) => {
        const expected = inputs.map(evaluate);
        const results = new Uint32Array(inputs.length);
        evaluateArray(Uint32Array.from(inputs), results);
        expect([...results]).toEqual(expected);
        const both = Uint32Array.from(inputs);
        evaluateArray(both, both);
        expect([...both]).toEqual(expected);
      }),
      { numRuns: scaled(30) },
    );
  });

  it('gives a bit pattern of the destination, with the sign of the input but for NaN', () => {
    fc.assert(
      fc.property(bitsOf(name), (bits) => {
        const pattern = evaluate(bits);
        expect(Number.isInteger(pattern) && 0 <= pattern && pattern < 2 * resultSign).toBe(true);
        if (Number.isNaN(input(name, bits))) return;
        const opposite = bits < sourceSign ? bits + sourceSign : bits - sourceSign;
        expect(Math.abs(evaluate(opposite) - pattern)).toBe(resultSign);
        expect(pattern >= resultSign).toBe(bits >= sourceSign);
      }),
      runs,
    );
  });

  it('turns NaN, and nothing else, into NaN: the canonical one or the extended one', () => {
    const first = source === 'e4m3' ? 0x7f : encode(from, Infinity) + 1;
    fc.assert(
      fc.property(fc.integer({ min: first, max: sourceSign - 1 }), fc.boolean(), (one, minus) => {
        const bits = minus ? one + sourceSign : one;
        const extended = bits * 2 ** (to.storageBits - from.storageBits);
        expect(evaluate(bits)).toBe(nan === 'canonical' ? to.canonicalNan : extended);
        expect(result(name, bits)).toBeNaN();
      }),
    );
    fc.assert(
      fc.property(bitsOf(name), (bits) => {
        expect(Number.isNaN(result(name, bits))).toBe(Number.isNaN(input(name, bits)));
      }),
      runs,
    );
  });

  it('is monotone', () => {
    fc.assert(
      fc.property(bitsOf(name), bitsOf(name), (a, b) => {
        fc.pre(input(name, a) <= input(name, b));
        expect(result(name, a)).toBeLessThanOrEqual(result(name, b));
      }),
      runs,
    );
  });

  it('rounds in its direction', () => {
    fc.assert(
      fc.property(bitsOf(name), (bits) => {
        const x = Math.abs(input(name, bits));
        const y = Math.abs(result(name, bits));
        fc.pre(x <= to.maxFinite);
        if (rounding === null) {
          expect(y).toBe(x);
          return;
        }
        if (rounding === 'toward-zero') {
          expect(y).toBeLessThanOrEqual(x);
          expect(nextUp(to, y)).toBeGreaterThan(x);
          return;
        }
        const below = y === 0 ? 0 : -nextUp(to, -y);
        const above = y === to.maxFinite ? Infinity : nextUp(to, y);
        const even = evaluate(bits) % 2 === 0;
        for (const other of [below, above].filter((value) => value !== y)) {
          expect(Math.abs(x - y)).toBeLessThanOrEqual(Math.abs(x - other));
          if (Math.abs(x - y) === Math.abs(x - other)) expect(even).toBe(true);
        }
      }),
      runs,
    );
  });
});

describe('saturation', () => {
  const saturating = pairNames.filter(
    (name) => name.includes('satfinite') && name.replace('.satfinite', '') in conversions,
  );

  it.each(saturating)('%s changes infinite results only, to the largest finite number', (name) => {
    expect(saturating).toHaveLength(4);
    const plain = name.replace('.satfinite', '') as PairConversionName;
    const { destination, evaluate } = conversions[name];
    const { maxFinite } = formats[destination];
    const beyond = fc.integer({ min: encode(formats.fp32, maxFinite), max: 0x7f800000 });
    fc.assert(
      fc.property(fc.oneof(float32Bits, beyond), (bits) => {
        const unsaturated = result(plain, bits);
        if (Math.abs(unsaturated) === Infinity)
          expect(result(name, bits)).toBe(Math.sign(unsaturated) * maxFinite);
        else expect(evaluate(bits)).toBe(conversions[plain].evaluate(bits));
      }),
      runs,
    );
  });

  it.each(names.filter((name) => conversions[name].overflow === 'saturate'))(
    '%s turns infinities into the largest finite number',
    (name) => {
      const { source, destination } = conversions[name];
      const { maxFinite } = formats[destination];
      expect(result(name, encode(formats[source], Infinity))).toBe(maxFinite);
      expect(result(name, encode(formats[source], -Infinity))).toBe(-maxFinite);
    },
  );
});

/** The bit patterns of a format of at most 16 bits that the predicate does not hold for. */
function exceptions(storageBits: number, holds: (bits: number) => boolean): number[] {
  return Array.from({ length: 2 ** storageBits }, (_, bits) => bits).filter((bits) => !holds(bits));
}

const narrowing = [...pairNames, ...fromHalfPairNames];

describe.each(narrowing)('%s', (name) => {
  const { source, destination, evaluate, overflow } = conversions[name];

  inTurn('leaves every number of the destination as it is', () => {
    const leaves = (pattern: number): boolean => {
      const value = decode(formats[destination], pattern);
      if (Number.isNaN(value)) return true;
      if (Math.abs(value) === Infinity && overflow === 'saturate') return true;
      return evaluate(encode(formats[source], value)) === pattern;
    };
    expect(exceptions(formats[destination].storageBits, leaves)).toEqual([]);
  });
});

describe('conversions after one another', () => {
  inTurn.each([
    ['cvt.f32.f16', 'cvt.rn.f16x2.f32'],
    ['cvt.f32.f16', 'cvt.rz.f16x2.f32'],
    ['cvt.f32.bf16', 'cvt.rn.bf16x2.f32'],
    ['cvt.f32.bf16', 'cvt.rz.bf16x2.f32'],
    ['cvt.rn.f16x2.e4m3x2', 'cvt.rn.satfinite.e4m3x2.f16x2'],
    ['cvt.rn.f16x2.e5m2x2', 'cvt.rn.satfinite.e5m2x2.f16x2'],
  ] as const)('%s is undone by %s, but for NaN payloads and saturation', (widen, narrow) => {
    const format = formats[conversions[widen].source];
    const saturates = conversions[narrow].overflow === 'saturate';
    const expected = (bits: number): number => {
      const value = decode(format, bits);
      if (Number.isNaN(value)) return format.canonicalNan;
      const infinite = Math.abs(value) === Infinity;
      return infinite && saturates ? encode(format, Math.sign(value) * format.maxFinite) : bits;
    };
    const undone = (bits: number): boolean =>
      conversions[narrow].evaluate(conversions[widen].evaluate(bits)) === expected(bits);
    expect(exceptions(format.storageBits, undone)).toEqual([]);
  });

  it.each([
    ['cvt.rn.satfinite.e4m3x2.f16x2', 'cvt.rn.satfinite.e4m3x2.f32'],
    ['cvt.rn.satfinite.e5m2x2.f16x2', 'cvt.rn.satfinite.e5m2x2.f32'],
  ] as const)('%s is cvt.f32.f16 and then %s', (direct, fromFloat32) => {
    const same = (bits: number): boolean =>
      conversions[direct].evaluate(bits) ===
      conversions[fromFloat32].evaluate(conversions['cvt.f32.f16'].evaluate(bits));
    expect(exceptions(16, same)).toEqual([]);
  });
});

describe('packing', () => {
  it.each(pairNames)('%s puts the first operand in the high half', (name) => {
    const width = 2 ** formats[conversions[name].destination].storageBits;
    fc.assert(
      fc.property(float32Bits, float32Bits, (first, second) => {
        const word = convertPair(name, first, second);
        expect(Math.floor(word / width)).toBe(conversions[name].evaluate(first));
        expect(word % width).toBe(conversions[name].evaluate(second));
      }),
    );
  });

  it.each([...fromHalfPairNames, ...fromFp8PairNames])('%s keeps the order of halves', (name) => {
    const { source, destination, evaluate } = conversions[name];
    const [from, to] = [source, destination].map((format) => 2 ** formats[format].storageBits);
    const half = bitsOf(name);
    fc.assert(
      fc.property(half, half, (high, low) => {
        const word = convertPacked(name, high * from + low);
        expect(word).toBe(evaluate(high) * to + evaluate(low));
      }),
    );
  });
});

describe('bad requests', () => {
  const refused = (request: () => unknown, message: RegExp): void => {
    expect(request).toThrow(RequestError);
    expect(request).toThrow(message);
  };

  it('are refused: what is no bit pattern of the source', () => {
    refused(() => conversions['cvt.f32.f16'].evaluate(65536), /no fp16 bit pattern/);
    refused(() => convertPair('cvt.rn.f16x2.f32', 0, -1), /no fp32 bit pattern/);
    refused(() => convertPacked('cvt.rn.f16x2.e4m3x2', 65536), /no pair of e4m3 numbers; .* 2\^16/);
    refused(() => convertPacked('cvt.rn.f16x2.e4m3x2', 0.5), /0\.5 is no pair/);
    const inputs = Uint32Array.of(0, 256);
    refused(
      () => conversions['cvt.rn.f16x2.e5m2x2'].evaluateArray(inputs, new Uint32Array(2)),
      /input 1, 0x100, is no e5m2 bit pattern; pass integers below 2\^8/,
    );
  });

  it.each(names)('are refused: no room for the results of %s', (name) => {
    const inputs = new Uint32Array(3);
    refused(() => conversions[name].evaluateArray(inputs, new Uint32Array(2)), /2 .*longer/);
  });
});
