import * as fc from 'fast-check';
import type { Rounding } from '../../src/profile/record.js';

/** An fp32 bit pattern: any at all, or one near the ends of some format's ranges. */
export const anyBits: fc.Arbitrary<number> = fc.oneof(
  fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  fc.constantFrom(0, 0x80000000, 1, 0x7f800000, 0xff800000, 0x7fc00000, 0x00800000, 0x7f7fffff),
  fc.integer({ min: 0x33000000, max: 0x34000000 }),
  fc.integer({ min: 0x43d00000, max: 0x43f00000 }),
  fc.integer({ min: 0x477f0000, max: 0x47800000 }),
  fc.integer({ min: 0x3f7f0000, max: 0x3f810000 }),
);

/** The roundings of the profiles. */
export const roundings: readonly Rounding[] = [
  { format: 'fp32', overflow: 'overflow' },
  { format: 'bf16', overflow: 'overflow' },
  { format: 'fp16', overflow: 'overflow' },
  { format: 'e4m3', overflow: 'saturate' },
  { format: 'e4m3', overflow: 'overflow' },
  { format: 'e5m2', overflow: 'overflow' },
];

/** The fp32 number of a bit pattern. */
export function float32(bits: number): number {
  return new Float32Array(Uint32Array.of(bits).buffer)[0];
}

/** The bit pattern of an fp32 number. */
export function bitsOf(value: number): number {
  return new Uint32Array(Float32Array.of(value).buffer)[0];
}
