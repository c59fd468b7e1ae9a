import type { RawWord } from './raw-word.js';
import { decidedValue, type Trace } from './trace.js';
import { type ValueFormat, valueFormat } from './value-format.js';

/** Where the parts of a floating-point number lie in the word that has its sign. */
export interface FloatFields {
  /** Bits of the significand in that word, the lowest ones, and of the exponent above them. */
  readonly significand: number;
  readonly exponent: number;
}

const fields: Readonly<Record<string, FloatFields>> = {
  f64: { significand: 20, exponent: 11 },
  f32: { significand: 23, exponent: 8 },
  f16: { significand: 10, exponent: 5 },
  bf16: { significand: 7, exponent: 8 },
  e5m2: { significand: 2, exponent: 5 },
  e4m3: { significand: 3, exponent: 4 },
};

/** The fields of a format's numbers (of fp64 those of the high word); null where it has none. */
export function floatFields({ name }: ValueFormat): FloatFields | null {
  return fields[name] ?? null;
}

/** Takes a raw word into a trace; returns the number of its value, which has no real value. */
export function addRawWord(trace: Trace, word: RawWord, bits: number): number {
  const value = trace.add(operationOf(trace, 'none', word, valueFormat('b32')!), 0, 0, 0, bits);
  trace.rawWords.set(value, word);
  return value;
}

type RawOrigin = 'none' | 'scale' | 'absolute' | 'negate';

function operationOf(
  trace: Trace,
  origin: RawOrigin,
  { name, site }: Pick<RawWord, 'name' | 'site'>,
  format: ValueFormat,
): number {
  const isFunction = origin === 'absolute' || origin === 'negate';
  return trace.knownOperation({
    origin: isFunction ? 'function' : origin,
    name: `${name} ${origin}`,
    function: isFunction ? origin : null,
    limit: null,
    format,
    site,
  });
}

/**
 * The number that the bits of a raw word prove to be: that of which they were made times a power of two, with its sign, the other
 * one, or one that does not depend on it. Null where they prove nothing: the exponent is that of zeros or infinities now.
 *
 * @param low the low word of a number of 64 bits, which is that of the number as well
 * @param top the raw word
 */
export function numberOfRawWord(
  trace: Trace,
  word: RawWord,
  low: number,
  top: number,
): number | null {
  const { of, isKept, isSignFixed } = word;
  const format = trace.formatOf(of);
  const own = floatFields(format);
  if (!isKept || own === null || of <= decidedValue) return null;
  const isWide = format.bytes === 8;
  const before = isWide ? trace.high[of] : trace.bits[of];
  const [was, is] = [before, top].map((bits) => ({
    exponent: (bits >>> own.significand) & (2 ** own.exponent - 1),
    isNegative: ((bits >>> (own.significand + own.exponent)) & 1) === 1,
  }));
  const isNormal = ({ exponent }: typeof was) => exponent > 0 && exponent < 2 ** own.exponent - 1;
  const exponent = is.exponent - was.exponent;
  if (exponent !== 0 && !(isNormal(was) && isNormal(is))) return null;
  const [significand, sign] = [2 ** own.significand - 1, own.significand + own.exponent];
  const append = (
    origin: 'scale' | 'absolute' | 'negate',
    value: number,
    negative: boolean,
    field: number,
  ) => {
    const operation = operationOf(trace, origin, word, format);
    const bits =
      ((before & significand) | (field << own.significand) | (negative ? 1 << sign : 0)) >>> 0;
    const c = origin === 'scale' ? exponent : 0;
    if (isWide) return trace.addWide(operation, [value, 0, c], (BigInt(bits) << 32n) | BigInt(low));
    return trace.add(operation, value, 0, c, bits);
  };
  let value = of;
  if (isSignFixed) value = append('absolute', value, false, was.exponent);
  if (is.isNegative !== (isSignFixed ? false : was.isNegative))
    value = append('negate', value, is.isNegative, was.exponent);
  return exponent === 0 ? value : append('scale', value, is.isNegative, is.exponent);
}
