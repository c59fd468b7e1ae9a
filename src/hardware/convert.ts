import {
  convertFloat32Bits,
  decode,
  encode,
  type FormatName,
  formats,
  type NumberFormat,
  type OverflowMode,
  type RoundingMode,
  type RoundingOptions,
  smallestNormal,
  smallestSubnormal,
} from '../formats/index.js';
import { lazily } from '../reuse.js';
import { RequestError } from '../request-error.js';
import { type ArrayFunction, createScalarEngine } from '../simd/index.js';

/** The formats between which the modelled instructions convert. */
export type ConversionFormat = Exclude<FormatName, 'fp64' | 'tf32'>;

/** Rounding of an instruction, and its results for values that the destination cannot hold. */
export interface ConversionRule {
  /** Null where the instruction names none, since every result is exact. */
  readonly rounding: RoundingMode | null;
  /** Result for values beyond the destination's largest finite number, infinities included. */
  readonly overflow: OverflowMode;
  /**
   * Result for a NaN. `canonical`: the destination's canonical NaN, whatever its sign and payload.
   * `extended`: the input's pattern followed by zeros, so that sign and payload survive and a
   * signaling NaN stays signaling.
   */
  readonly nan: 'canonical' | 'extended';
}

/** One conversion instruction: its rule, and its model of one lane. */
export interface Conversion extends ConversionRule {
  readonly source: ConversionFormat;
  readonly destination: ConversionFormat;
  /**
   * Maps the bit pattern of a number of `source` to that of the result in `destination`, both from 0
   * to 2^storageBits − 1. Rounds as `rounding` says; subnormal inputs and results are kept. Throws a
   * RequestError for anything but a bit pattern of the source.
   */
  readonly evaluate: (bits: number) => number;
  /**
   * `evaluate` of each element: `results[i]` from `inputs[i]`, zero-extended. Throws a RequestError
   * when `results` is shorter than `inputs` or an input is no bit pattern of the source.
   */
  readonly evaluateArray: (inputs: Uint32Array, results: Uint32Array) => void;
}

function laneModel(
  source: NumberFormat<ConversionFormat>,
  destination: NumberFormat<ConversionFormat>,
  options: RoundingOptions,
  nan: ConversionRule['nan'],
): Conversion['evaluate'] {
  const extension = 2 ** (destination.storageBits - source.storageBits);
  return (bits) => {
    const value = decode(source, bits);
    return Number.isNaN(value) && nan === 'extended'
      ? bits * extension
      : encode(destination, value, options);
  };
}

/** A source of at most 16 bits has few enough patterns for a table of all results. */
function tableModel(
  source: NumberFormat<ConversionFormat>,
  evaluate: Conversion['evaluate'],
): Conversion['evaluateArray'] {
  const size = 2 ** source.storageBits;
  const table = lazily(() => Uint32Array.from({ length: size }, (_, bits) => evaluate(bits)));
  return (inputs, results) => {
    if (results.length < inputs.length)
      throw new RequestError(
        `${inputs.length} inputs but room for ${results.length} results; pass a longer array`,
      );
    const resultOf = table();
    for (let i = 0; i < inputs.length; i++) {
      const bits = inputs[i];
      if (bits >= size)
        throw new RequestError(
          `input ${i}, 0x${bits.toString(16)}, is no ${source.name} bit pattern; pass integers below 2^${source.storageBits}`,
        );
      results[i] = resultOf[bits];
    }
  };
}

/** The model of an instruction that converts from `source` to `destination` by the rule. */
function modelConversion(
  source: ConversionFormat,
  destination: ConversionFormat,
  rule: ConversionRule,
): Conversion {
  const [from, to] = [formats[source], formats[destination]];
  const options = { rounding: rule.rounding ?? 'nearest-even', overflow: rule.overflow } as const;
  const evaluate = laneModel(from, to, options, rule.nan);
  const evaluateArray: Conversion['evaluateArray'] =
    from.name === 'fp32' && to.name !== 'fp32'
      ? (inputs, results) => convertFloat32Bits(to, inputs, results, options)
      : tableModel(from, evaluate);
  return { source, destination, ...rule, evaluate, evaluateArray };
}

/** The conversions of two fp32 operands to one word that holds both results. */
export type PairConversionName =
  | 'cvt.rn.bf16x2.f32'
  | 'cvt.rz.bf16x2.f32'
  | 'cvt.rn.satfinite.bf16x2.f32'
  | 'cvt.rz.satfinite.bf16x2.f32'
  | 'cvt.rn.f16x2.f32'
  | 'cvt.rz.f16x2.f32'
  | 'cvt.rn.satfinite.f16x2.f32'
  | 'cvt.rz.satfinite.f16x2.f32'
  | 'cvt.rn.satfinite.e4m3x2.f32'
  | 'cvt.rn.satfinite.e5m2x2.f32';

/** The conversions of one word that holds two numbers to one that holds both results. */
export type PackedConversionName =
  | 'cvt.rn.satfinite.e4m3x2.f16x2'
  | 'cvt.rn.satfinite.e5m2x2.f16x2'
  | 'cvt.rn.f16x2.e4m3x2'
  | 'cvt.rn.f16x2.e5m2x2';

/** The conversions of one number. */
export type SingleConversionName = 'cvt.f32.f16' | 'cvt.f32.bf16';

/** The modelled conversions, as PTX spells them. */
export type ConversionName = PairConversionName | PackedConversionName | SingleConversionName;

const rn: ConversionRule = { rounding: 'nearest-even', overflow: 'overflow', nan: 'canonical' };
const rz: ConversionRule = { ...rn, rounding: 'toward-zero' };
const rnSatfinite: ConversionRule = { ...rn, overflow: 'saturate' };
const rzSatfinite: ConversionRule = { ...rz, overflow: 'saturate' };
const exact: ConversionRule = { ...rn, rounding: null };
/** An H200 runs cvt.f32.bf16 as a shift by 16 bits, which leaves NaNs as they are. */
const exactShift: ConversionRule = { ...exact, nan: 'extended' };

/**
 * The models of NVIDIA's conversion instructions, lane by lane; `convertPair` and `convertPacked`
 * pack the lanes. Rounding and saturation are those of the PTX ISA (instruction `cvt`), which has no
 * fp8 result without `.satfinite`; no instruction here flushes subnormals. Equal to an H200 bit for
 * bit, NaNs included (fixtures/silicon/sm_90): of the conversions from fp32 all 2^32 inputs were
 * compared, of the others all 65,536 or 256.
 */
export const conversions: { readonly [Name in ConversionName]: Conversion } = {
  'cvt.rn.bf16x2.f32': modelConversion('fp32', 'bf16', rn),
  'cvt.rz.bf16x2.f32': modelConversion('fp32', 'bf16', rz),
  'cvt.rn.satfinite.bf16x2.f32': modelConversion('fp32', 'bf16', rnSatfinite),
  'cvt.rz.satfinite.bf16x2.f32': modelConversion('fp32', 'bf16', rzSatfinite),
  'cvt.rn.f16x2.f32': modelConversion('fp32', 'fp16', rn),
  'cvt.rz.f16x2.f32': modelConversion('fp32', 'fp16', rz),
  'cvt.rn.satfinite.f16x2.f32': modelConversion('fp32', 'fp16', rnSatfinite),
  'cvt.rz.satfinite.f16x2.f32': modelConversion('fp32', 'fp16', rzSatfinite),
  'cvt.rn.satfinite.e4m3x2.f32': modelConversion('fp32', 'e4m3', rnSatfinite),
  'cvt.rn.satfinite.e5m2x2.f32': modelConversion('fp32', 'e5m2', rnSatfinite),
  'cvt.rn.satfinite.e4m3x2.f16x2': modelConversion('fp16', 'e4m3', rnSatfinite),
  'cvt.rn.satfinite.e5m2x2.f16x2': modelConversion('fp16', 'e5m2', rnSatfinite),
  'cvt.rn.f16x2.e4m3x2': modelConversion('e4m3', 'fp16', rn),
  'cvt.rn.f16x2.e5m2x2': modelConversion('e5m2', 'fp16', rn),
  'cvt.f32.f16': modelConversion('fp16', 'fp32', exact),
  'cvt.f32.bf16': modelConversion('bf16', 'fp32', exactShift),
};

/**
 * The result d of `cvt… d, a, b` on two fp32 operands, from the bit patterns of a and b: the result
 * of a, the first operand, is in the high half and that of b in the low half (PTX ISA, instruction
 * `cvt`). It has 32 bits for 16-bit results and 16 bits for fp8. Each half rounds as the
 * instruction's {@link conversions}. Throws a RequestError for anything but fp32 bit patterns.
 */
export function convertPair(name: PairConversionName, first: number, second: number): number {
  const { destination, evaluate } = conversions[name];
  return join(evaluate(first), evaluate(second), formats[destination].storageBits);
}

/**
 * The result d of `cvt… d, a` on a word of two numbers, from the bits of a: the two halves, each
 * converted as the instruction's {@link conversions}, in the same order. A word of two fp16 numbers
 * has 32 bits and one of two fp8 numbers 16. Throws a RequestError for anything but such a word.
 */
export function convertPacked(name: PackedConversionName, word: number): number {
  const { source, destination, evaluate } = conversions[name];
  const bits = formats[source].storageBits;
  if (!(Number.isInteger(word) && word >= 0 && word < 2 ** (2 * bits)))
    throw new RequestError(
      `${word} is no pair of ${source} numbers; pass an integer from 0 to 2^${2 * bits} - 1`,
    );
  const high = Math.floor(word / 2 ** bits);
  const low = word % 2 ** bits;
  return join(evaluate(high), evaluate(low), formats[destination].storageBits);
}

function join(high: number, low: number, bits: number): number {
  return high * 2 ** bits + low;
}

const formatBytes = 40;
const fp32FractionBits = 23;
const largestFloat32 = 0x7f7fffff;
const float32Infinity = 0x7f800000;

/**
 * The record that src/simd/assembly/convert.ts reads from its memory; results for extremes are taken
 * from the model.
 */
export function packConversion(name: PairConversionName): DataView {
  const { destination, rounding, evaluate } = conversions[name];
  const format = formats[destination];
  const rebias = formats.fp32.exponentBias - format.exponentBias;
  // With fp32's exponents the format's subnormal numbers are those of fp32: their bits line up.
  const hasOwnSubnormals = rebias !== 0;
  const packed = new DataView(new ArrayBuffer(formatBytes));
  const words = [
    fp32FractionBits - (format.precision - 1),
    rebias * 2 ** fp32FractionBits,
    hasOwnSubnormals ? encode(formats.fp32, smallestNormal(format)) : 0,
    hasOwnSubnormals ? encode(formats.fp32, 1 / smallestSubnormal(format)) : 0,
    encode(format, format.maxFinite),
    evaluate(largestFloat32),
    evaluate(float32Infinity),
    evaluate(formats.fp32.canonicalNan),
    formats.fp32.storageBits - format.storageBits,
    rounding === 'toward-zero' ? 1 : 0,
  ];
  words.forEach((word, i) => packed.setUint32(4 * i, word, true));
  return packed;
}

/**
 * One lane of a conversion from fp32 on arrays of bit patterns, in WebAssembly: for every input the
 * result of the conversion's `evaluate`, zero-extended, several times as fast as its `evaluateArray`.
 * Each call makes an instance with memory of its own; make one per thread.
 */
export function createConversionArray(name: PairConversionName): ArrayFunction {
  const engine = createScalarEngine(formatBytes);
  const format = engine.place(packConversion(name));
  return engine.arrayFunction((inputs, results, count) =>
    engine.kernels.convert(inputs, results, count, format),
  );
}
