import { describe, expect, it } from 'vitest';
import {
  decode,
  encode,
  encodeFromFloat32,
  encodeFromFloat64,
  formats,
  round,
  type RoundingMode,
} from '../../src/formats/index.js';
import { patternsOf } from '../../src/formats/tensor.js';
import {
  count,
  doubleSource,
  everyOption,
  fromCount,
  fromPattern64,
  pattern64,
  roundExactly,
} from './exact.js';
import { scaled, testSeed } from '../setup/effort.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const tabulated = [formats.bf16, formats.fp16, formats.e4m3, formats.e5m2, formats.e2m1];
const modes: RoundingMode[] = ['nearest-even', 'toward-zero', 'down', 'up'];

/**
 * The finite magnitudes of a format, as bit patterns 0, 1, 2, … and as values, with one more entry:
 * the number that would follow the largest if the exponent had no upper bound.
 */
function magnitudes(format: (typeof tabulated)[number]): number[] {
  const values = [];
  for (
    let bits = 0;
    bits < 2 ** (format.storageBits - 1) && Number.isFinite(decode(format, bits));
    bits++
  )
    values.push(decode(format, bits));
  values.push(fromCount(2n * count(values[values.length - 1]) - count(values[values.length - 2])));
  return values;
}

describe.each(tabulated)('rounding to $name around every midpoint', (format) => {
  const values = magnitudes(format);
  const midpoints = values.slice(1).map((above, lower) => {
    const sum = count(values[lower]) + count(above);
    expect(sum % 2n).toBe(0n);
    return fromCount(sum / 2n);
  });
  const signBit = 2 ** (format.storageBits - 1);
  const overflowBits = format.specials === 'ieee' ? values.length - 1 : format.canonicalNan;

  /** What a magnitude between neighbours `lower` and `lower + 1` must become, by which side of the middle. */
  function expectedBits(
    lower: number,
    side: -1 | 0 | 1,
    negative: boolean,
    rounding: RoundingMode,
    saturate: boolean,
  ): number {
    const nearest = side === 0 ? lower + (lower % 2) : side < 0 ? lower : lower + 1;
    const picks = {
      'nearest-even': nearest,
      'toward-zero': lower,
      down: negative ? lower + 1 : lower,
      up: negative ? lower : lower + 1,
    };
    const pick = picks[rounding];
    if (pick < values.length - 1) return negative ? pick + signBit : pick;
    if (saturate || format.specials === 'finite') return negative ? pick - 1 + signBit : pick - 1;
    return negative && format.specials === 'ieee' ? overflowBits + signBit : overflowBits;
  }

  inTurn.each(modes)('is right for %s, both signs, both overflow modes', (rounding) => {
    for (const overflow of ['overflow', 'saturate'] as const) {
      const options = { rounding, overflow };
      midpoints.forEach((midpoint, lower) => {
        const middle = pattern64(midpoint);
        for (const side of [-1, 0, 1] as const) {
          const magnitude = fromPattern64(middle + BigInt(side));
          for (const negative of [false, true]) {
            const value = negative ? -magnitude : magnitude;
            const bits = encode(format, value, options);
            const expected = expectedBits(lower, side, negative, rounding, overflow === 'saturate');
            if (bits !== expected) {
              expect.fail(
                `${value} ${overflow} gives 0x${bits.toString(16)} not 0x${expected.toString(16)}`,
              );
            }
          }
        }
      });
    }
  });

  inTurn('does in arrays what it does one by one, from fp64 and fp32, with every option', () => {
    // All near the ends of the two regimes, which is all of a short format; of the rest every 31st.
    const ends = [0, 2 ** (format.precision - 1), midpoints.length - 1];
    const around = midpoints.flatMap((midpoint, lower) => {
      const near = ends.some((end) => Math.abs(lower - end) < 128);
      if (!near && lower % 31 !== testSeed % 31) return [];
      const middle = pattern64(midpoint);
      return [values[lower], fromPattern64(middle - 1n), midpoint, fromPattern64(middle + 1n)];
    });
    const special = [0, NaN, Infinity, 2 ** -1074, 2 ** -149, 2 ** -150, Number.MAX_VALUE];
    const magnitudes64 = Float64Array.from([...around, ...special]);
    const values64 = Float64Array.from([...magnitudes64, ...magnitudes64.map((x) => -x)]);
    const values32 = Float32Array.from(values64);
    for (const options of everyOption) {
      const bits64 = patternsOf(encodeFromFloat64(format, values64, options), format);
      const bits32 = patternsOf(encodeFromFloat32(format, values32, options), format);
      for (let i = 0; i < values64.length; i++) {
        const expected = [
          encode(format, values64[i], options),
          encode(format, values32[i], options),
        ];
        if (bits64[i] !== expected[0] || bits32[i] !== expected[1]) {
          expect.fail(`${values64[i]} with ${JSON.stringify(options)}`);
        }
      }
    }
  });
});

describe.each(Object.values(formats))('rounding to $name, against bigints', (format) => {
  const { minExponent, maxExponent, precision } = format;
  const sources = [
    doubleSource(64 * testSeed + 11, Math.max(minExponent - precision - 2, -1023), minExponent + 2),
    doubleSource(64 * testSeed + 12, maxExponent - 1, Math.min(maxExponent + 2, 1023)),
    doubleSource(64 * testSeed + 13, -1023, 1023),
    doubleSource(64 * testSeed + 14, -4, 4),
  ];
  const randoms = sources.flatMap((source) => Array.from({ length: scaled(60) }, source));
  const normal = 2 ** minExponent;
  const boundaries = [normal, normal * (1 - 2 ** -precision), normal * (1 - 2 ** (-precision - 1))];
  const near = [...boundaries, format.maxFinite].flatMap((x) =>
    [-1n, 0n, 1n].map((step) => fromPattern64(pattern64(x) + step)),
  );
  // Keep a few more digits than the format, so that ties and near ties are frequent.
  const short = randoms.map((x) => fromPattern64((pattern64(x) >> 41n) << 41n));
  const edges = [...near, ...near.map((x) => -x), 0, -0, NaN, Infinity, -Infinity, 5e-324, -5e-324];
  const values = Float64Array.from([...randoms, ...short, ...edges]);

  it.each(everyOption)('$rounding, $overflow, flush $flushSubnormals', (options) => {
    const array = patternsOf(encodeFromFloat64(format, values, options), format);
    for (let i = 0; i < values.length; i++) {
      const expected = roundExactly(format, values[i], options);
      const rounded = round(format, values[i], options);
      const bits = encode(format, values[i], options);
      if (!Object.is(rounded, expected) || !Object.is(decode(format, bits), expected)) {
        expect.fail(`${values[i]} gives ${rounded}, bits ${bits}, not ${expected}`);
      }
      const stored = typeof bits === 'bigint' ? new BigUint64Array(array.buffer)[i] : array[i];
      if (stored !== bits) expect.fail(`${values[i]} is stored as ${stored} not ${bits}`);
    }
  });
});
