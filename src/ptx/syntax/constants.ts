/** A constant in PTX's calculations (PTX ISA, "Constants"): integers have 64 bits. */
export type Constant =
  | { readonly kind: 'integer'; readonly value: bigint; readonly isUnsigned: boolean }
  | { readonly kind: 'f32' | 'f64'; readonly bits: bigint };

const int64Limit = 1n << 63n;
const scratch = new DataView(new ArrayBuffer(8));

/** The double with these bits. */
export function doubleOfBits(bits: bigint): number {
  scratch.setBigUint64(0, bits);
  return scratch.getFloat64(0);
}

/** A double as a constant of PTX. */
export function doubleConstant(value: number): Constant {
  scratch.setFloat64(0, value);
  return { kind: 'f64', bits: scratch.getBigUint64(0) };
}

/** The bits of the single with these bits, widened to a double; the payload of a NaN is kept. */
function widened(bits: bigint): bigint {
  const exponent = (bits >> 23n) & 0xffn;
  if (exponent === 0xffn && (bits & 0x7fffffn) !== 0n)
    return ((bits >> 31n) << 63n) | (0x7ffn << 52n) | ((bits & 0x7fffffn) << 29n);
  scratch.setUint32(0, Number(bits));
  scratch.setFloat64(0, scratch.getFloat32(0));
  return scratch.getBigUint64(0);
}

/** The bits of a double rounded to the nearest single; a payload of a NaN keeps its upper bits. */
function narrowed(bits: bigint): bigint {
  const value = doubleOfBits(bits);
  if (Number.isNaN(value))
    return ((bits >> 63n) << 31n) | 0x7fc00000n | ((bits >> 29n) & 0x3fffffn);
  scratch.setFloat32(0, value);
  return BigInt(scratch.getUint32(0));
}

/** The bits of a floating-point constant in a format, rounded to nearest where the format has fewer. */
export function floatBits(constant: Constant & { bits: bigint }, format: 'f32' | 'f64'): bigint {
  if (constant.kind === format) return constant.bits;
  return format === 'f64' ? widened(constant.bits) : narrowed(constant.bits);
}

/** An integer cut to 64 bits, and read as signed or unsigned. */
export function integerConstant(value: bigint, isUnsigned: boolean): Constant & { value: bigint } {
  return {
    kind: 'integer',
    value: isUnsigned ? BigInt.asUintN(64, value) : BigInt.asIntN(64, value),
    isUnsigned,
  };
}

/** The notations of numbers: `read` gets the pattern's captures. */
const forms: readonly {
  readonly pattern: RegExp;
  readonly read: (digits: string, suffix: string | undefined) => Constant | null;
}[] = [
  {
    pattern: /^0[fF]([0-9a-fA-F]{8})$/,
    read: (hex) => ({ kind: 'f32', bits: BigInt(`0x${hex}`) }),
  },
  {
    pattern: /^0[dD]([0-9a-fA-F]{16})$/,
    read: (hex) => ({ kind: 'f64', bits: BigInt(`0x${hex}`) }),
  },
  { pattern: /^0[xX]([0-9a-fA-F]+)(U?)$/, read: (hex, suffix) => literal(`0x${hex}`, suffix) },
  { pattern: /^0[bB]([01]+)(U?)$/, read: (bits, suffix) => literal(`0b${bits}`, suffix) },
  { pattern: /^0([0-7]+)(U?)$/, read: (octal, suffix) => literal(`0o${octal}`, suffix) },
  { pattern: /^(0|[1-9]\d*)(U?)$/, read: (decimal, suffix) => literal(decimal, suffix) },
  {
    pattern: /^(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)$/,
    read: (decimal) => (/[.eE]/.test(decimal) ? doubleConstant(Number(decimal)) : null),
  },
];

/** An integer literal; null for one beyond 64 bits. */
function literal(digits: string, suffix: string | undefined): Constant | null {
  // 64 binary digits and the prefix, and any usual number of leading zeros: BigInt takes quadratic time.
  if (digits.length > 100) return null;
  const value = BigInt(digits);
  if (value >= 2n * int64Limit) return null;
  return integerConstant(value, suffix === 'U' || value >= int64Limit);
}

/**
 * A number as PTX writes it: decimal, `0x`, octal with a leading 0, `0b`, each with `U` for unsigned; `0f` and 8 digits, `0d` and
 * 16, decimals with a point or an exponent, which are doubles. Null for other texts, and for numbers that do not fit into 64
 * bits.
 */
export function readNumber(text: string): Constant | null {
  for (const { pattern, read } of forms) {
    const [, digits, suffix] = pattern.exec(text) ?? [];
    if (digits !== undefined) return read(digits, suffix);
  }
  return null;
}
