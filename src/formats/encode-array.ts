import { RequestError } from '../request-error.js';
import { highWordIndex, lowWordIndex } from './binary64.js';
import type { FormatName, NumberFormat } from './format.js';
import { round, type RoundingOptions } from './round.js';
import {
  float32Word,
  float64Word,
  planWordRounding,
  roundWords,
  type ShortFormatName,
  shortPrecision,
} from './word-rounding.js';
import { allocateStorage, patternsOf, type StorageArrays } from './tensor.js';

/**
 * The values rounded to the format, in a new array of its storage type. Every element's bit pattern
 * is that of `encode` with the same options, NaNs included.
 */
export function encodeFromFloat64<Name extends FormatName>(
  format: NumberFormat<Name>,
  values: Float64Array,
  options: RoundingOptions = {},
): StorageArrays[Name] {
  const storage = allocateStorage(format, values.length);
  if (isShort(format)) {
    roundStickyHighWords(format, values, patternsOf(storage, format), options);
  } else {
    roundWide(format, values, storage as Float64Array | Float32Array, options);
  }
  return storage;
}

/** Like {@link encodeFromFloat64}, from fp32 values. */
export function encodeFromFloat32<Name extends FormatName>(
  format: NumberFormat<Name>,
  values: Float32Array,
  options: RoundingOptions = {},
): StorageArrays[Name] {
  const storage = allocateStorage(format, values.length);
  if (isShort(format)) {
    const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
    const plan = planWordRounding(float32Word, format, options);
    roundWords(plan, words, words.length, patternsOf(storage, format), 0);
  } else {
    roundWide(format, values, storage as Float64Array | Float32Array, options);
  }
  return storage;
}

/**
 * The fp32 numbers with the given bit patterns, rounded to a short format, as bit patterns in `out`
 * (from its beginning; zero-extended when it is wider than the format). Equal, for every one of the
 * 2^32 inputs, to NVIDIA's cvt.rn.bf16x2.f32 and cvt.rn.f16x2.f32, and with
 * `{ overflow: 'saturate' }` to cvt.rn.satfinite.e4m3x2.f32 and cvt.rn.satfinite.e5m2x2.f32. Throws
 * a RequestError when `out` is too short, or narrower than the format's storage.
 */
export function convertFloat32Bits(
  format: NumberFormat<ShortFormatName>,
  bits: Uint32Array,
  out: Uint8Array | Uint16Array | Uint32Array,
  options: RoundingOptions = {},
): void {
  if (out.length < bits.length) {
    throw new RequestError(
      `the output array holds ${out.length} elements but ${bits.length} are converted; pass a longer one`,
    );
  }
  if (out.BYTES_PER_ELEMENT * 8 < format.storageBits) {
    throw new RequestError(
      `the output array's elements have ${out.BYTES_PER_ELEMENT * 8} bits but ${format.name} patterns have ${format.storageBits}; pass a wider one`,
    );
  }
  roundWords(planWordRounding(float32Word, format, options), bits, bits.length, out, 0);
}

/** Values per pass over fp64 input: few enough for their words to stay in the first-level cache. */
const chunk = 1024;

function roundStickyHighWords(
  format: NumberFormat<ShortFormatName>,
  values: Float64Array,
  out: Uint8Array | Uint16Array | Uint32Array,
  options: RoundingOptions,
): void {
  const plan = planWordRounding(float64Word, format, options);
  const halves = new Uint32Array(values.buffer, values.byteOffset, values.length * 2);
  const words = new Uint32Array(chunk);
  for (let first = 0; first < values.length; first += chunk) {
    const count = Math.min(chunk, values.length - first);
    for (let i = 0; i < count; i++) {
      const at = 2 * (first + i);
      words[i] = halves[at + highWordIndex] | (halves[at + lowWordIndex] === 0 ? 0 : 1);
    }
    roundWords(plan, words, count, out, first);
  }
}

function roundWide(
  format: NumberFormat,
  values: Float64Array | Float32Array,
  storage: Float64Array | Float32Array,
  options: RoundingOptions,
): void {
  const { rounding = 'nearest-even', overflow = 'overflow', flushSubnormals = false } = options;
  if (rounding === 'nearest-even' && overflow === 'overflow' && !flushSubnormals) {
    storage.set(values); // ECMAScript stores to nearest, ties to even.
  } else {
    for (let i = 0; i < values.length; i++) storage[i] = round(format, values[i], options);
  }
  // ECMAScript leaves open which NaN a store writes, so write the pattern.
  const nan = format.canonicalNan;
  const { buffer, byteOffset, length } = storage;
  if (typeof nan === 'bigint') {
    const patterns = new BigUint64Array(buffer, byteOffset, length);
    for (let i = 0; i < length; i++) if (Number.isNaN(values[i])) patterns[i] = nan;
  } else {
    const patterns = new Uint32Array(buffer, byteOffset, length);
    for (let i = 0; i < length; i++) if (Number.isNaN(values[i])) patterns[i] = nan;
  }
}

function isShort(format: NumberFormat): format is NumberFormat<ShortFormatName> {
  return format.precision <= shortPrecision;
}
