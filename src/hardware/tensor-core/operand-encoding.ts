import { firstSpecialMagnitude, magnitudeBits, operandFormats } from './operand-formats.js';
import type { OperandFormatName } from './operand-formats.js';

/** How a format's numbers are decoded: the record that src/simd/assembly reads from its memory. */
export function packOperandEncoding(name: OperandFormatName): Int32Array {
  const format = operandFormats[name];
  return Int32Array.of(
    Math.ceil(format.storageBits / 8),
    format.paddingBits,
    magnitudeBits(format),
    format.precision - 1,
    format.exponentBias,
    firstSpecialMagnitude(format),
  );
}
