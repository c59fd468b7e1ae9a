import type { LaneValue } from '../instruction.js';
import {
  integerOf,
  type IntegerType,
  integerTypes,
  registerOf,
  registerValue,
} from '../values/integer-type.js';
import { type Emit, low16, onEachVector, onWords, type VectorFunction } from '../vectors/index.js';

/** The types of `.type` for integer arithmetic. */
export const integerAlternatives = ['.s16', '.s32', '.s64', '.u16', '.u32', '.u64'] as const;

/** The type that a modifier names. */
export function integerTypeOf(modifier: string): IntegerType {
  return integerTypes[modifier as keyof typeof integerTypes];
}

/** Whether the type has 32 bits: of integers the machine has words alone. */
export function isOfWords({ type }: { readonly type: string }): boolean {
  return integerTypeOf(type).bits === 32;
}

/**
 * A function of integers that is written with operators alone, which JavaScript has for numbers and for bigints: here
 * it is called with either.
 */
export type Operators = (a: number, b: number, c: number) => number;
type OnBigInts = (a: bigint, b: bigint, c: bigint) => bigint;

/**
 * A function of up to three integers of one type, whose result wraps around.
 *
 * @param compute exact with numbers up to 32 bits, and with bigints for 64
 * @param ofWords for 32 bits, where `compute` is not exact with numbers
 */
export function ofIntegers(type: IntegerType, compute: Operators, ofWords = compute) {
  if (type.bits === 64) {
    const exactly = compute as unknown as OnBigInts;
    return (...values: LaneValue[]): LaneValue => {
      const [a, b = 0n, c = 0n] = values.map((value) => integerOf(type, value));
      return BigInt.asUintN(64, exactly(a, b, c));
    };
  }
  if (type.bits === 32)
    return type.isSigned
      ? (a: number, b: number, c: number): number => ofWords(a | 0, b | 0, c | 0) >>> 0
      : (a: number, b: number, c: number): number => ofWords(a, b, c) >>> 0;
  const shift = 32 - type.bits;
  const integer = type.isSigned
    ? (a: number): number => (a << shift) >> shift
    : (a: number): number => (a << shift) >>> shift;
  return (a: number, b: number, c: number): number =>
    (compute(integer(a), integer(b), integer(c)) << shift) >>> shift;
}

/** A function of integers of several types: the low bits of the exact result. */
export function ofBigInts(
  result: IntegerType,
  sources: readonly IntegerType[],
  compute: (...integers: bigint[]) => bigint,
) {
  const width = registerOf(result.bits);
  return (...values: LaneValue[]): LaneValue =>
    registerValue(width, compute(...values.map((value, i) => integerOf(sources[i], value))));
}

/** A function of integers of 16 and 32 bits as code; of 16 bits the result is cut, and operands have unknown high bits. */
export function onIntegers(
  { bits }: IntegerType,
  ofWords: VectorFunction,
  ofWideLanes: VectorFunction,
): Emit {
  if (bits === 64) return onEachVector(ofWideLanes);
  return onWords(bits === 32 ? ofWords : (body, a, b, c, d) => low16(ofWords(body, a, b, c, d)));
}
