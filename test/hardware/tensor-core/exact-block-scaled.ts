import type { BlockScaledArithmetic, OperandFormatName } from '../../../src/hardware/index.js';

/** One element of D: a row of A, a column of B, their factors and C, as bit patterns. */
export interface Terms {
  readonly aFormat: OperandFormatName;
  readonly bFormat: OperandFormatName;
  readonly a: readonly number[];
  readonly b: readonly number[];
  readonly aScales: readonly number[];
  readonly bScales: readonly number[];
  readonly c: number;
}

/** A number in units of 2^-600. */
export interface Fixed {
  readonly value: bigint;
}

const point = 600;

/** Exponent bits, fraction bits and bias, from the OCP specifications of FP8 and of Microscaling formats. */
const fields: Readonly<Record<string, readonly [number, number, number]>> = {
  e4m3: [4, 3, 7],
  e5m2: [5, 2, 15],
  e2m3: [2, 3, 1],
  e3m2: [3, 2, 3],
  e2m1: [2, 1, 1],
  fp32: [8, 23, 127],
};

/** A pattern as integer · 2^exponent, the exponent of its significand's point, and that of its leading place. */
function parse(format: string, pattern: number) {
  const [exponentBits, fractionBits, bias] = fields[format];
  const fraction = pattern % 2 ** fractionBits;
  const field = Math.floor(pattern / 2 ** fractionBits) % 2 ** exponentBits;
  const isNegative = Math.floor(pattern / 2 ** (fractionBits + exponentBits)) === 1;
  const integer = field === 0 ? fraction : fraction + 2 ** fractionBits;
  const leading = Math.max(field, 1) - bias;
  return { integer: isNegative ? -integer : integer, exponent: leading - fractionBits, leading };
}

/** A factor, of which ue4m3 has no sign. */
function parseScale(format: string, pattern: number) {
  return format === 'ue8m0'
    ? { integer: 1, exponent: pattern - 127, leading: pattern - 127 }
    : parse('e4m3', pattern & 0x7f);
}

/** Products that make one term, and F: what MMA-Sim has found of a B200, written down once more. */
export const publishedSums: Readonly<
  Record<BlockScaledArithmetic['kind'], readonly [productsPerTerm: number, fractionBits: number]>
> = { mxf8f6f4: [1, 25], mxf4: [16, 35], mxf4nvf4: [16, 35] };

const shifted = (integer: bigint, exponent: number): bigint => integer << BigInt(exponent + point);

/**
 * The exact sum of one element, and that of its terms truncated toward zero to multiples of 2^(E - F), in integers. Written
 * from MMA-Sim's description, apart from the implementation: products by themselves with 25 bits, or sums of 16 with 35.
 */
export function exactSum(
  { kind, k, block, scale }: Pick<BlockScaledArithmetic, 'kind' | 'k' | 'block' | 'scale'>,
  { aFormat, bFormat, a, b, aScales, bScales, c }: Terms,
): { readonly sum: Fixed; readonly truncated: Fixed; readonly unit: Fixed } {
  const [productsPerTerm, fractionBits] = publishedSums[kind];
  const terms: { readonly value: bigint; readonly exponent: number | null }[] = [];
  for (let first = 0; first < k; first += productsPerTerm) {
    const at = Math.floor(first / block);
    const [p, q] = [parseScale(scale, aScales[at]), parseScale(scale, bScales[at])];
    let [value, ofProducts] = [0n, 0];
    for (let i = first; i < first + productsPerTerm; i++) {
      const [x, y] = [parse(aFormat, a[i]), parse(bFormat, b[i])];
      const integer = BigInt(x.integer) * BigInt(y.integer) * BigInt(p.integer * q.integer);
      value += shifted(integer, x.exponent + y.exponent + p.exponent + q.exponent);
      ofProducts = x.leading + y.leading;
    }
    const isNothing = productsPerTerm === 1 ? value === 0n : p.integer * q.integer === 0;
    const exponent = p.leading + q.leading + (productsPerTerm === 1 ? ofProducts : 0);
    terms.push({ value, exponent: isNothing ? null : exponent });
  }
  const added = parse('fp32', c);
  terms.push({
    value: shifted(BigInt(added.integer), added.exponent),
    exponent: added.integer === 0 ? null : added.leading,
  });
  const largest = Math.max(-133, ...terms.map(({ exponent }) => exponent ?? -133));
  const unit = 1n << BigInt(largest - fractionBits + point);
  const sumOf = (values: readonly bigint[]): bigint => values.reduce((all, one) => all + one, 0n);
  return {
    sum: { value: sumOf(terms.map(({ value }) => value)) },
    // Division of integers truncates.
    truncated: { value: sumOf(terms.map(({ value }) => (value / unit) * unit)) },
    unit: { value: unit },
  };
}

/** The pattern of the fp32 number next to a finite number toward zero; no negative zero. */
export function roundedTowardZero({ value }: Fixed): number {
  const magnitude = value < 0n ? -value : value;
  const digits = magnitude.toString(2).length;
  const leading = magnitude === 0n ? -126 : Math.max(digits - 1 - point, -126);
  if (leading > 127) throw new Error('out of range');
  const shift = BigInt(leading - 23 + point);
  const significand = Number(magnitude >> shift);
  if (significand === 0) return 0;
  const bits =
    significand < 2 ** 23 ? significand : (leading + 127) * 2 ** 23 + (significand - 2 ** 23);
  return bits + (value < 0n ? 2 ** 31 : 0);
}
