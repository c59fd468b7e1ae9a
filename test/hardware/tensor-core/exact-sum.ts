import { formats } from '../../../src/formats/index.js';
import { operandFormats } from '../../../src/hardware/index.js';
import type { OperandFormatName, TensorCoreArithmetic } from '../../../src/hardware/index.js';

/** A finite number as integer · 2^exponent; the integer is not normalised. */
interface Scaled {
  readonly integer: bigint;
  readonly exponent: number;
}

type Fields = Pick<
  (typeof operandFormats)['bf16'],
  'precision' | 'exponentBits' | 'exponentBias' | 'specials' | 'paddingBits' | 'storageBits'
>;

/** A pattern taken apart by its fields; NaN and infinities as numbers. */
function parse(format: Fields, pattern: number): Scaled | number {
  const { precision, exponentBits, exponentBias, specials, paddingBits, storageBits } = format;
  const bits = BigInt(pattern) >> BigInt(paddingBits);
  const fractionBits = BigInt(precision - 1);
  const fraction = bits & ((1n << fractionBits) - 1n);
  const field = Number((bits >> fractionBits) & ((1n << BigInt(exponentBits)) - 1n));
  const negative = bits >> BigInt(storageBits - paddingBits - 1) === 1n;
  const topmost = field === 2 ** exponentBits - 1;
  if (topmost && specials === 'ieee')
    return fraction !== 0n ? NaN : negative ? -Infinity : Infinity;
  if (topmost && specials === 'fn' && fraction === (1n << fractionBits) - 1n) return NaN;
  const magnitude = field === 0 ? fraction : fraction | (1n << fractionBits);
  return {
    integer: negative ? -magnitude : magnitude,
    exponent: Math.max(field, 1) - exponentBias - (precision - 1),
  };
}

function sign(x: Scaled | number): number {
  return typeof x === 'number' ? Math.sign(x) : Number(x.integer > 0n) - Number(x.integer < 0n);
}

function product(x: Scaled | number, y: Scaled | number): Scaled | number {
  if (typeof x === 'number' || typeof y === 'number')
    return (typeof x === 'number' ? x : sign(x)) * (typeof y === 'number' ? y : sign(y));
  return { integer: x.integer * y.integer, exponent: x.exponent + y.exponent };
}

/** Toward zero, also for negative numbers. */
function shiftRight(integer: bigint, bits: number): bigint {
  if (bits <= 0) return integer << BigInt(-bits);
  return integer / (1n << BigInt(bits));
}

/** The operands of one fused sum, as bit patterns. */
export interface FusedSum {
  readonly a: readonly number[];
  readonly b: readonly number[];
  readonly c: number;
}

/**
 * One fused sum with fp32 accumulator in integers of any size: an implementation of its own, from bit
 * patterns to bit pattern, to hold the others against.
 */
export function exactFusedSum(
  arithmetic: TensorCoreArithmetic,
  aFormat: OperandFormatName,
  bFormat: OperandFormatName,
  { a, b, c }: FusedSum,
): number {
  const [left, right] = [operandFormats[aFormat], operandFormats[bFormat]];
  /** Fraction bits of the products' significands, and of C's. */
  const productBits = left.precision - 1 + right.precision - 1;
  const terms = a.map((bits, i) => ({
    term: product(parse(left, bits), parse(right, b[i])),
    fractionBits: productBits,
  }));
  terms.push({ term: parse(formats.fp32, c), fractionBits: 23 });

  let special = 0;
  for (const { term } of terms) if (typeof term === 'number') special += term;
  if (Number.isNaN(special)) return 0x7fffffff;
  if (special !== 0) return special > 0 ? 0x7f800000 : 0xff800000;

  const finite = terms.flatMap(({ term, fractionBits }) =>
    typeof term !== 'number' && term.integer !== 0n ? [{ ...term, fractionBits }] : [],
  );
  const largest = Math.max(
    -133,
    ...finite.map(({ exponent, fractionBits }) => exponent + fractionBits),
  );
  const unit = largest - arithmetic.alignedFractionBits;
  let sum = 0n;
  for (const { integer, exponent } of finite) sum += shiftRight(integer, unit - exponent);
  return float32Pattern(sum, unit, arithmetic.resultFractionBits);
}

/** integer · 2^exponent toward zero, with this many fraction bits of fp32. */
function float32Pattern(integer: bigint, exponent: number, fractionBits: number): number {
  const magnitude = integer < 0n ? -integer : integer;
  const length = magnitude.toString(2).length;
  const binade = Math.max(exponent + length - 1, -126);
  const kept = shiftRight(magnitude, binade - fractionBits - exponent) << BigInt(23 - fractionBits);
  if (kept === 0n) return 0;
  if (binade > 127) return integer < 0n ? 0xff800000 : 0x7f800000;
  return (integer < 0n ? 0x80000000 : 0) + Number(kept + (BigInt(binade + 126) << 23n));
}
