import { decode, encode, formats, type RoundingOptions } from '../../formats/index.js';
import type { LaneValue, RegisterWidth } from '../instruction.js';

/** A floating-point type of PTX: its registers, and the numbers that their bits stand for. */
export interface FloatType {
  /** Name in PTX. */
  readonly name: 'f16' | 'bf16' | 'f32' | 'f64';
  readonly width: 16 | 32 | 64;
  /** The number, exact; every NaN gives NaN. */
  readonly numberOf: (bits: LaneValue) => number;
  /** The bits of a number rounded to the type; NaN gives the type's canonical one. */
  readonly bitsOf: (value: number, options?: RoundingOptions) => LaneValue;
  /** The smallest normal number. */
  readonly smallestNormal: number;
  /** Bits of the fraction. */
  readonly fractionBits: number;
}

/** The floating-point types of registers. */
export const floatTypes: Readonly<Record<FloatType['name'], FloatType>> = {
  f16: {
    name: 'f16',
    width: 16,
    numberOf: (bits) => decode(formats.fp16, Number(bits) & 0xffff),
    bitsOf: (value, options) => encode(formats.fp16, value, options),
    smallestNormal: 2 ** -14,
    fractionBits: 10,
  },
  bf16: {
    name: 'bf16',
    width: 16,
    numberOf: (bits) => decode(formats.bf16, Number(bits) & 0xffff),
    bitsOf: (value, options) => encode(formats.bf16, value, options),
    smallestNormal: 2 ** -126,
    fractionBits: 7,
  },
  f32: {
    name: 'f32',
    width: 32,
    numberOf: (bits) => decode(formats.fp32, Number(bits)),
    bitsOf: (value, options) => encode(formats.fp32, value, options),
    smallestNormal: 2 ** -126,
    fractionBits: 23,
  },
  f64: {
    name: 'f64',
    width: 64,
    numberOf: (bits) => decode(formats.fp64, BigInt(bits)),
    bitsOf: (value) => encode(formats.fp64, value),
    smallestNormal: 2 ** -1022,
    fractionBits: 52,
  },
};

/** A number of a type, with subnormal numbers as the zero of their sign. */
export function flushed({ smallestNormal }: FloatType, value: number): number {
  return Math.abs(value) < smallestNormal ? value * 0 : value;
}

/** The sign bit of a type. */
export function signBit({ width }: FloatType): bigint {
  return 1n << BigInt(width - 1);
}

/** The value of a register of that width with these bits. */
export function laneValue(width: RegisterWidth, bits: bigint): LaneValue {
  return width === 64 || width === 128 ? bits : Number(bits);
}
