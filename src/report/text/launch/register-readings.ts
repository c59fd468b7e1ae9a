import { decode, type FormatName, formats, round } from '../../../formats/index.js';

/** One way to read the bits of a register. */
export interface Reading {
  /** `s32`, `f32`, … */
  readonly type: string;
  readonly read: (bits: bigint) => string;
}

/** Floating-point types of PTX, with the number of digits that distinguishes any two of their numbers. */
const floats: Readonly<Record<string, { readonly format: FormatName; readonly digits: number }>> = {
  f16: { format: 'fp16', digits: 5 },
  bf16: { format: 'bf16', digits: 4 },
  f32: { format: 'fp32', digits: 9 },
  f64: { format: 'fp64', digits: 17 },
};

/** The shortest decimal number that rounds to a value of a format. */
function shortest(value: number, format: FormatName, digits: number): string {
  if (!Number.isFinite(value) || value === 0) return Object.is(value, -0) ? '-0' : String(value);
  for (let count = 1; count < digits; count++) {
    const near = Number(value.toPrecision(count));
    if (round(formats[format], near) === value) return String(near);
  }
  return String(Number(value.toPrecision(digits)));
}

function floatReading(type: string): Reading {
  const { format, digits } = floats[type];
  const { storageBits } = formats[format];
  return {
    type,
    read: (bits) => {
      const pattern = BigInt.asUintN(storageBits, bits);
      const value = decode(formats[format], format === 'fp64' ? pattern : Number(pattern));
      return shortest(value, format, digits);
    },
  };
}

function integerReading(type: string): Reading {
  const bits = Number(type.slice(1));
  const cut = type.startsWith('s') ? BigInt.asIntN : BigInt.asUintN;
  return { type, read: (value) => String(cut(bits, value)) };
}

/** Two numbers of 16 bits in a register, the low one first. */
function pairReading(type: string): Reading {
  const { read } = floatReading(type.slice(0, -2));
  return { type, read: (bits) => `${read(bits)}, ${read(bits >> 16n)}` };
}

/** The types that bits without a type may have. */
const ofBits: Readonly<Record<string, readonly string[]>> = {
  b8: ['s8'],
  b16: ['s16', 'f16', 'bf16'],
  b32: ['s32', 'f32'],
  b64: ['s64', 'f64'],
};

/** The readings of a register that an instruction gives a type: bits alone in each type that they may have. */
export function readingsOf(type: string): readonly Reading[] {
  if (type === 'pred') return [{ type, read: (bits) => (bits === 0n ? 'false' : 'true') }];
  if (type in floats) return [floatReading(type)];
  if (type.endsWith('x2')) return [pairReading(type)];
  if (/^[us][0-9]+$/.test(type)) return [integerReading(type)];
  return (ofBits[type] ?? []).flatMap(readingsOf);
}
