import { formats } from '../formats/index.js';

// Written and read back within one call: they hold no state between calls.
const words = new Uint32Array(1);
const floats = new Float32Array(words.buffer);

const { canonicalNan } = formats.fp32;

/** The fp32 number with a bit pattern from 0 to 2^32 − 1; the payload of a NaN is lost. */
export function float32Of(bits: number): number {
  words[0] = bits;
  return floats[0];
}

/**
 * The bit pattern of a number, from 0 to 2^32 − 1: of the nearest fp32 number (to nearest even) where it is none itself.
 * Every NaN gives 0x7fffffff, which NVIDIA's arithmetic delivers.
 */
export function bitsOfFloat32(value: number): number {
  if (value !== value) return canonicalNan;
  floats[0] = value;
  return words[0];
}
