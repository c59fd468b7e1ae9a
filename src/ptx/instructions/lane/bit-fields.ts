import { type IntegerType, integerTypes, type LaneInstruction } from '../../../isa/index.js';
import { integerRow } from './integer-row.js';
import { type FamilyFacts, wordRow } from './row.js';

const { b32, b64, u32, u64, s32, s64 } = integerTypes;

function facts(instruction: string): FamilyFacts {
  return {
    meaning: 'loses',
    unit: 'alu',
    evidence: 'isa',
    source: `PTX ISA, Integer Arithmetic Instructions: ${instruction}`,
  };
}

/** Number of bits set. */
function population(value: bigint): number {
  let count = 0;
  for (let rest = value; rest !== 0n; rest &= rest - 1n) count++;
  return count;
}

/** Number of bits up to the highest bit that is set; 0 for 0. */
function length(value: bigint): number {
  return value === 0n ? 0 : value.toString(2).length;
}

function reversed(bits: number, value: bigint): bigint {
  const digits = value.toString(2).padStart(bits, '0');
  return BigInt(`0b${[...digits].reverse().join('')}`);
}

/** Counts of bits; the result has 32 bits for any type. */
function counts(type: IntegerType): LaneInstruction[] {
  const count = (name: string, compute: (a: bigint) => number): LaneInstruction =>
    integerRow(
      `${name}.${type.name}`,
      { result: u32, sources: [type], compute: (a) => BigInt(compute(a)) },
      facts(name),
    );
  return [count('popc', population), count('clz', (a) => type.bits - length(a))];
}

/** The highest bit that differs from the sign; −1 where there is none. */
function highestBit({ bits }: IntegerType, a: bigint): number {
  return length(a < 0n ? BigInt.asUintN(bits, ~a) : a) - 1;
}

function findRows(type: IntegerType): LaneInstruction[] {
  const find = (modifier: string, compute: (position: number) => number): LaneInstruction =>
    integerRow(
      `bfind${modifier}.${type.name}`,
      {
        result: u32,
        sources: [type],
        compute: (a) => {
          const position = highestBit(type, a);
          return BigInt(position < 0 ? -1 : compute(position));
        },
      },
      facts('bfind'),
    );
  return [
    find('', (position) => position),
    find('.shiftamt', (position) => type.bits - 1 - position),
  ];
}

function mask(bits: bigint): bigint {
  return (1n << bits) - 1n;
}

/**
 * The position or length of a bit field: for 32 bits the low 8 bits count, as PTX says; for 64 bits, which the hardware
 * lacks, all bits count, and values beyond the register count as its end.
 */
function extent({ bits }: IntegerType, amount: bigint): bigint {
  if (bits === 32) return amount & 0xffn;
  return amount < BigInt(bits) ? amount : BigInt(bits);
}

/** The row of `bfe`; bits beyond the type's are the sign, or 0. */
function extractRow(type: IntegerType): LaneInstruction {
  return integerRow(
    `bfe.${type.name}`,
    {
      result: type,
      sources: [type, u32, u32],
      compute: (a, position, count) => {
        const bits = extent(type, count);
        // The value as an integer has its sign repeated for ever above its highest bit.
        const field = (a >> extent(type, position)) & mask(bits);
        return type.isSigned && bits > 0n ? BigInt.asIntN(Number(bits), field) : field;
      },
    },
    facts('bfe'),
  );
}

function insertRow(type: IntegerType): LaneInstruction {
  return integerRow(
    `bfi.${type.name}`,
    {
      result: type,
      sources: [type, type, u32, u32],
      compute: (a, b, position, count) => {
        const from = extent(type, position);
        const field = mask(extent(type, count)) << from;
        return ((a << from) & field) | (b & ~field);
      },
    },
    facts('bfi'),
  );
}

/** The n-th set bit, from a position upwards or, for negative n, downwards. */
function findNth(bits: number, base: number, offset: number): number {
  // A number whose magnitude exceeds 32 bits gives 0 on an H200.
  if ((offset | 0) === -(2 ** 31)) return 0;
  const step = offset < 0 ? -1 : 1;
  let left = Math.max(Math.abs(offset | 0), 1);
  for (let position = base; position >= 0 && position < 32; position += step) {
    if (((bits >>> position) & 1) === 1 && --left === 0) return position;
    if ((offset | 0) === 0) break;
  }
  return 0xffffffff;
}

/** A mask of ones from a position on; amounts of 32 or more are clamped or wrapped around. */
function bitMask(position: number, count: number, isClamped: boolean): number {
  const from = BigInt(isClamped ? Math.min(position, 32) : position & 31);
  const bits = BigInt(isClamped ? Math.min(count, 32) : count & 31);
  return Number(BigInt.asUintN(32, mask(bits) << from));
}

/** The low bits of a, extended by the highest of these bits or by zeros. */
function extend(
  a: number,
  count: number,
  modes: { isClamped: boolean; isSigned: boolean },
): number {
  const bits = modes.isClamped ? Math.min(count, 32) : count & 31;
  const value = modes.isSigned ? BigInt.asIntN(bits, BigInt(a)) : BigInt.asUintN(bits, BigInt(a));
  return Number(BigInt.asUintN(32, value));
}

const modes: Readonly<Record<string, boolean>> = { clamp: true, wrap: false };

const words = [
  wordRow(
    'fns.b32',
    32,
    [32, 32, 32],
    (bits, base, offset) => findNth(bits, base, offset | 0),
    facts('fns'),
  ),
  ...Object.entries(modes).flatMap(([mode, isClamped]) => [
    wordRow(
      `bmsk.${mode}.b32`,
      32,
      [32, 32],
      (position, count) => bitMask(position, count, isClamped),
      facts('bmsk'),
    ),
    ...[u32, s32].map(({ name, isSigned }) =>
      wordRow(
        `szext.${mode}.${name}`,
        32,
        [32, 32],
        (a, count) => extend(a, count, { isClamped, isSigned }),
        facts('szext'),
      ),
    ),
  ]),
];

/** Counting and finding bits, bit fields and masks, of 32 and 64 bits. */
export const bitFields: readonly LaneInstruction[] = [
  ...[b32, b64].flatMap((type) => [
    ...counts(type),
    integerRow(
      `brev.${type.name}`,
      { result: type, sources: [type], compute: (a) => reversed(type.bits, a) },
      facts('brev'),
    ),
    insertRow(type),
  ]),
  ...[u32, s32, u64, s64].flatMap((type) => [...findRows(type), extractRow(type)]),
  ...words,
];
