import { encode, formats, smallestNormal, smallestSubnormal } from '../../formats/index.js';
import { createScalarEngine, type ArrayFunction } from '../../simd/index.js';
import { conversions, type PairConversionName } from './conversions.js';

const formatBytes = 40;
const fp32FractionBits = 23;
const largestFloat32 = 0x7f7fffff;
const float32Infinity = 0x7f800000;

/**
 * The record that src/simd/assembly/convert.ts reads from its memory; what becomes of extremes is the
 * model's.
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
 * One lane of a conversion from fp32 on arrays of bit patterns, in WebAssembly: for every input what
 * the conversion's `evaluate` gives, zero-extended, several times as fast as its `evaluateArray`. Each
 * call makes an instance with memory of its own; make one per thread.
 */
export function createConversionArray(name: PairConversionName): ArrayFunction {
  const engine = createScalarEngine(formatBytes);
  const format = engine.place(packConversion(name));
  return engine.arrayFunction((inputs, results, count) =>
    engine.kernels.convert(inputs, results, count, format),
  );
}
