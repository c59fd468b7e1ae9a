import {
  type IntegerType,
  integerTypes,
  type LaneInstruction,
  type LaneUnit,
  saturate,
} from '../../../isa/index.js';
import { type IntegerFunction, integerRow } from './integer-row.js';
import type { FamilyFacts } from './row.js';

const { s16, s32, s64, u16, u32, u64 } = integerTypes;
const types: readonly IntegerType[] = [u16, u32, u64, s16, s32, s64];
const wider = { u16: u32, s16: s32, u32: u64, s32: s64 } as const;

function facts(instruction: string, unit: LaneUnit = 'alu'): FamilyFacts {
  return {
    meaning: 'is',
    unit,
    evidence: 'isa',
    source: `PTX ISA, Integer Arithmetic Instructions: ${instruction}`,
  };
}

type Compute = IntegerFunction['compute'];

function sameType(type: IntegerType, count: number, compute: Compute): IntegerFunction {
  return { result: type, sources: Array.from({ length: count }, () => type), compute };
}

function magnitude(integer: bigint): bigint {
  return integer < 0n ? -integer : integer;
}

/** An instruction with one function for all its integer types; results wrap around. */
interface SimpleInstruction {
  readonly opcode: string;
  readonly operands: 1 | 2 | 3;
  readonly types: readonly IntegerType[];
  readonly compute: Compute;
}

const simple: readonly SimpleInstruction[] = [
  { opcode: 'add', operands: 2, types, compute: (a, b) => a + b },
  { opcode: 'sub', operands: 2, types, compute: (a, b) => a - b },
  { opcode: 'min', operands: 2, types, compute: (a, b) => (a < b ? a : b) },
  { opcode: 'max', operands: 2, types, compute: (a, b) => (a > b ? a : b) },
  { opcode: 'sad', operands: 3, types, compute: (a, b, c) => c + magnitude(a - b) },
  { opcode: 'abs', operands: 1, types: [s16, s32, s64], compute: magnitude },
  { opcode: 'neg', operands: 1, types: [s16, s32, s64], compute: (a) => -a },
];

const simpleRows = simple.flatMap(({ opcode, operands, types: known, compute }) =>
  known.map((type) =>
    integerRow(`${opcode}.${type.name}`, sameType(type, operands, compute), facts(opcode)),
  ),
);

/** Rows with limits: `.sat` clamps to the range of s32, and `.relu` clamps a negative result to zero. */
const limitedRows = [
  ...simple
    .filter(({ opcode }) => opcode === 'add' || opcode === 'sub')
    .map(({ opcode, compute }) =>
      integerRow(
        `${opcode}.sat.s32`,
        sameType(s32, 2, (a, b) => saturate(s32, compute(a, b))),
        facts(opcode),
      ),
    ),
  ...simple
    .filter(({ opcode }) => opcode === 'min' || opcode === 'max')
    .map(({ opcode, compute }) =>
      integerRow(
        `${opcode}.relu.s32`,
        sameType(s32, 2, (a, b) => {
          const result = compute(a, b);
          return result < 0n ? 0n : result;
        }),
        facts(opcode),
      ),
    ),
];

function productRows(type: IntegerType): LaneInstruction[] {
  const high: Compute = (a, b) => (a * b) >> BigInt(type.bits);
  return [
    integerRow(
      `mul.lo.${type.name}`,
      sameType(type, 2, (a, b) => a * b),
      facts('mul', 'fma'),
    ),
    integerRow(`mul.hi.${type.name}`, sameType(type, 2, high), facts('mul', 'fma')),
    integerRow(
      `mad.lo.${type.name}`,
      sameType(type, 3, (a, b, c) => a * b + c),
      facts('mad', 'fma'),
    ),
    integerRow(
      `mad.hi.${type.name}`,
      sameType(type, 3, (a, b, c) => high(a, b) + c),
      facts('mad', 'fma'),
    ),
  ];
}

function wideProductRows(type: IntegerType, result: IntegerType): LaneInstruction[] {
  return [
    integerRow(
      `mul.wide.${type.name}`,
      { result, sources: [type, type], compute: (a, b) => a * b },
      facts('mul', 'fma'),
    ),
    integerRow(
      `mad.wide.${type.name}`,
      { result, sources: [type, type, result], compute: (a, b, c) => a * b + c },
      facts('mad', 'fma'),
    ),
  ];
}

/** The low 24 bits of an operand, read as the type's integer. */
function short(type: IntegerType, integer: bigint): bigint {
  return type.isSigned ? BigInt.asIntN(24, integer) : BigInt.asUintN(24, integer);
}

/** `.lo` is the low and `.hi` the high 32 bits of the 48 bits of the product. */
function shortProductRows(type: IntegerType): LaneInstruction[] {
  return (['lo', 'hi'] as const).flatMap((part) => {
    const product: Compute = (a, b) =>
      (short(type, a) * short(type, b)) >> (part === 'hi' ? 16n : 0n);
    const low = (a: bigint, b: bigint): bigint =>
      type.isSigned ? BigInt.asIntN(32, product(a, b)) : BigInt.asUintN(32, product(a, b));
    return [
      integerRow(`mul24.${part}.${type.name}`, sameType(type, 2, product), facts('mul24', 'fma')),
      integerRow(
        `mad24.${part}.${type.name}`,
        sameType(type, 3, (a, b, c) => low(a, b) + c),
        facts('mad24', 'fma'),
      ),
    ];
  });
}

const saturatedSums = [
  integerRow(
    'mad.hi.sat.s32',
    sameType(s32, 3, (a, b, c) => saturate(s32, ((a * b) >> 32n) + c)),
    facts('mad', 'fma'),
  ),
  integerRow(
    'mad24.hi.sat.s32',
    sameType(s32, 3, (a, b, c) => saturate(s32, ((short(s32, a) * short(s32, b)) >> 16n) + c)),
    facts('mad24', 'fma'),
  ),
];

/**
 * Integers of 16, 32 and 64 bits: sums, products (`.lo` and `.hi` halves, `.wide`), extrema, absolute
 * differences. Results wrap around except with `.sat`.
 */
export const integerArithmetic: readonly LaneInstruction[] = [
  ...simpleRows,
  ...limitedRows,
  ...types.flatMap(productRows),
  ...[u16, u32, s16, s32].flatMap((type) =>
    wideProductRows(type, wider[type.name as keyof typeof wider]),
  ),
  ...[u32, s32].flatMap(shortProductRows),
  ...saturatedSums,
];
