import { type Bits, type FormatName, type NumberFormat, smallestNormal } from './format.js';
import { decode } from './decode.js';

/** The kinds of floating-point datum. */
export type NumberClass = 'zero' | 'subnormal' | 'normal' | 'infinite' | 'nan';

/** What a bit pattern stands for. */
export interface Classification {
  readonly class: NumberClass;
  /** Whether the sign bit is set; zeros and NaNs have one too. */
  readonly negative: boolean;
}

/**
 * The class and the sign of a bit pattern of the format. The padding of tf32 is ignored, as by
 * {@link decode}, which also says what throws a RequestError.
 */
export function classify<Name extends FormatName>(
  format: NumberFormat<Name>,
  bits: Bits<Name>,
): Classification {
  const magnitude = Math.abs(decode(format, bits));
  return { class: classOfMagnitude(format, magnitude), negative: signBit(format, bits) };
}

function classOfMagnitude(format: NumberFormat, magnitude: number): NumberClass {
  if (Number.isNaN(magnitude)) return 'nan';
  if (magnitude === Infinity) return 'infinite';
  if (magnitude === 0) return 'zero';
  return magnitude < smallestNormal(format) ? 'subnormal' : 'normal';
}

function signBit(format: NumberFormat, bits: number | bigint): boolean {
  return bits >= 2 ** (format.storageBits - 1);
}
