import type { LaneValue, RegisterWidth } from '../instruction.js';

/** The type of a register's bits: an integer of a PTX type, or a predicate. */
export interface IntegerType {
  /** Name in PTX. */
  readonly name: string;
  readonly bits: 1 | 8 | 16 | 32 | 64;
  readonly isSigned: boolean;
}

function integerType(name: string, bits: IntegerType['bits']): IntegerType {
  return { name, bits, isSigned: name.startsWith('s') };
}

/** The types of PTX's integers, its bits (`.b32`, unsigned here) and its predicates. */
export const integerTypes = {
  pred: integerType('pred', 1),
  b8: integerType('b8', 8),
  u8: integerType('u8', 8),
  s8: integerType('s8', 8),
  b16: integerType('b16', 16),
  u16: integerType('u16', 16),
  s16: integerType('s16', 16),
  b32: integerType('b32', 32),
  u32: integerType('u32', 32),
  s32: integerType('s32', 32),
  b64: integerType('b64', 64),
  u64: integerType('u64', 64),
  s64: integerType('s64', 64),
} as const satisfies Readonly<Record<string, IntegerType>>;

/** The register of a value of this many bits: 8 bits lie in a register of 16. */
export function registerOf(bits: IntegerType['bits']): RegisterWidth {
  if (bits === 1) return 'pred';
  return bits === 8 ? 16 : bits;
}

/** The integer that the low bits of a register stand for. */
export function integerOf({ bits, isSigned }: IntegerType, value: LaneValue): bigint {
  return isSigned ? BigInt.asIntN(bits, BigInt(value)) : BigInt.asUintN(bits, BigInt(value));
}

/** The low bits of an integer as the value of a register of that width. */
export function registerValue(width: RegisterWidth, integer: bigint): LaneValue {
  const bits = width === 'pred' ? 1 : width;
  const pattern = BigInt.asUintN(bits, integer);
  return bits > 32 ? pattern : Number(pattern);
}

/** The smallest and the largest integer of a type. */
export function rangeOf({ bits, isSigned }: IntegerType): readonly [bigint, bigint] {
  return isSigned
    ? [-(1n << BigInt(bits - 1)), (1n << BigInt(bits - 1)) - 1n]
    : [0n, (1n << BigInt(bits)) - 1n];
}

/** The nearest integer in a type's range. */
export function saturate(type: IntegerType, integer: bigint): bigint {
  const [smallest, largest] = rangeOf(type);
  if (integer < smallest) return smallest;
  return integer > largest ? largest : integer;
}
