import { decode, formats, type NumberFormat } from '../../formats/index.js';
import { lazily } from '../../reuse.js';

/** The format of a value: how many bytes it takes, and the number that they stand for. */
export interface ValueFormat {
  /** As PTX writes the type: `f32`, `bf16`, `e4m3`, `s32`, …. */
  readonly name: string;
  readonly bytes: 1 | 2 | 4 | 8;
  readonly isInteger: boolean;
  /** The largest number below infinity; of integers, and of what is no number, infinity. */
  readonly largest: number;
  /** The number of a pattern, given as its low and its high word; NaN for patterns of no number. */
  readonly decode: (low: number, high: number) => number;
}

const scratch = new DataView(new ArrayBuffer(8));

function float32(low: number): number {
  scratch.setUint32(0, low);
  return scratch.getFloat32(0);
}

function float64(low: number, high: number): number {
  scratch.setUint32(0, high);
  scratch.setUint32(4, low);
  return scratch.getFloat64(0);
}

/** A format of src/formats of at most 16 bits, whose numbers are in a table. */
function short(name: string, bytes: 1 | 2, format: NumberFormat): ValueFormat {
  const mask = 2 ** format.storageBits - 1;
  const numbers = lazily(() =>
    Float64Array.from({ length: mask + 1 }, (_, bits) => Number(decode(format, bits))),
  );
  return {
    name,
    bytes,
    isInteger: false,
    largest: format.maxFinite,
    decode: (low) => numbers()[low & mask],
  };
}

function integer(name: string, bytes: 1 | 2 | 4 | 8): ValueFormat {
  const bits = 8 * bytes;
  const decodeInteger = (low: number, high: number): number => {
    if (bits === 64) return (name.startsWith('s') ? high | 0 : high >>> 0) * 2 ** 32 + (low >>> 0);
    const value = bits === 32 ? low >>> 0 : low & (2 ** bits - 1);
    return name.startsWith('s') && value >= 2 ** (bits - 1) ? value - 2 ** bits : value;
  };
  return { name, bytes, isInteger: true, largest: Infinity, decode: decodeInteger };
}

/** Factors of blocks: powers of two by their exponent, of which the last is NaN (OCP Microscaling Formats 1.0). */
const powers: ValueFormat = {
  name: 'ue8m0',
  bytes: 1,
  isInteger: false,
  largest: 2 ** 127,
  decode: (low) => ((low & 0xff) === 0xff ? NaN : 2 ** ((low & 0xff) - 127)),
};

/** Bits that are no number: two that share a byte, or a number's bits after an operation on them. */
function bitsOnly(name: string, bytes: 1 | 4): ValueFormat {
  return { name, bytes, isInteger: false, largest: Infinity, decode: () => NaN };
}

/** The formats of values, by the names of PTX types; `fp32` and its like are those of src/formats and of products. */
const table: readonly ValueFormat[] = [
  { name: 'f32', bytes: 4, isInteger: false, largest: formats.fp32.maxFinite, decode: float32 },
  { name: 'f64', bytes: 8, isInteger: false, largest: Number.MAX_VALUE, decode: float64 },
  short('f16', 2, formats.fp16),
  short('bf16', 2, formats.bf16),
  short('e4m3', 1, formats.e4m3),
  short('e5m2', 1, formats.e5m2),
  short('e2m1', 1, formats.e2m1),
  powers,
  bitsOnly('e2m1x2', 1),
  bitsOnly('b32', 4),
  ...(['s', 'u'] as const).flatMap((sign) =>
    ([1, 2, 4, 8] as const).map((bytes) => integer(`${sign}${8 * bytes}`, bytes)),
  ),
];

const otherNames: Readonly<Record<string, string>> = {
  fp32: 'f32',
  fp64: 'f64',
  fp16: 'f16',
  tf32: 'f32',
  ue4m3: 'e4m3',
};

const byName = new Map(table.map((format) => [format.name, format]));

/** The format of that name, of PTX or of src/formats (`fp32`; `tf32` is read as fp32); null where values have no such format. */
export function valueFormat(name: string): ValueFormat | null {
  return byName.get(otherNames[name] ?? name) ?? null;
}
