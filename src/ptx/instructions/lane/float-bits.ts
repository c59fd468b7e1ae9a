import { formats } from '../../../formats/index.js';

// Written and read back within one call: they hold no state between calls.
const words = new Uint32Array(2);
const floats = new Float32Array(words.buffer);

/** The fp32 number with the bit pattern `bits`, from 0 to 2^32 − 1. */
export function float32Of(bits: number): number {
  words[0] = bits;
  return floats[0];
}

/** The bit pattern of an fp32 number, from 0 to 2^32 − 1; every NaN gives 0x7fffffff. */
export function bitsOfFloat32(value: number): number {
  if (value !== value) return formats.fp32.canonicalNan;
  floats[0] = value;
  return words[0];
}
