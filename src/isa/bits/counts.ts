import { ofBigInts } from '../integers/operators.js';
import { type Row, row } from '../row.js';
import { type IntegerType, integerTypes } from '../values/integer-type.js';
import { onWords } from '../vectors/index.js';
import {
  type Expression,
  highWords,
  i8x16,
  i16x8,
  i32,
  i32x4,
  i64,
  i64x2,
  lowWords,
  v128,
} from '../webassembly/index.js';

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

/** The highest bit that differs from the sign; −1 where there is none. */
function highestBit({ bits }: IntegerType, a: bigint): number {
  return length(a < 0n ? BigInt.asUintN(bits, ~a) : a) - 1;
}

function typeOf(name: string): IntegerType {
  return integerTypes[name as keyof typeof integerTypes];
}

/** A function of an integer whose result has 32 bits for any type. */
function counted(name: string, compute: (type: IntegerType, a: bigint) => number) {
  const type = typeOf(name);
  return ofBigInts(integerTypes.u32, [type], (a) => BigInt(compute(type, a)));
}

const lanes = [0, 1, 2, 3] as const;

/** Bits set in each word. */
function populationCode(a: Expression): Expression {
  return i32x4.extaddPairwiseI16x8U(i16x8.extaddPairwiseI8x16U(i8x16.popcnt(a)));
}

/** Words that are computed one by one. */
function eachLane(word: (lane: number) => Expression): Expression {
  return lanes.reduce<Expression>(
    (vector, lane) => i32x4.replaceLane(vector, lane, word(lane)),
    i32x4.splat(0),
  );
}

function leadingZeros(a: Expression): Expression {
  return eachLane((lane) => i32.clz(i32x4.extractLane(a, lane)));
}

/** The numbers from 0 to 15 with their four bits reversed, a byte each. */
const turnedNibbles = i32x4.of([0x0c040800, 0x0e060a02, 0x0d050901, 0x0f070b03]);
const nibbleMask = i32x4.splat(0x0f0f0f0f);

/** Bytes with their bits reversed. */
function turnedBytes(a: Expression): Expression {
  const low = i8x16.swizzle(turnedNibbles, v128.and(a, nibbleMask));
  const high = i8x16.swizzle(turnedNibbles, v128.and(i32x4.shrU(a, 4), nibbleMask));
  return v128.or(i32x4.shl(low, 4), high);
}

function bytesTurned(a: Expression, size: 4 | 8): Expression {
  const order = Array.from({ length: 16 }, (_, i) => (i & ~(size - 1)) + size - 1 - (i % size));
  return i8x16.shuffle(a, a, order);
}

/** Bits that differ from the sign. */
function differing(type: string, a: Expression): Expression {
  return type === 'u32' ? a : v128.xor(a, i32x4.shrS(a, 31));
}

const common = {
  section: 'Integer Arithmetic Instructions',
  meaning: 'loses',
  unit: 'alu',
  evidence: 'silicon',
} as const;

/** Counting, finding and reversing bits, of 32 and 64 bits. */
export const bitCountRows: readonly Row[] = [
  row({
    ...common,
    syntax: 'popc.type d, a',
    alternatives: { type: ['.b32', '.b64'] },
    operands: { d: 'u32' },
    evaluate: ({ type }) => counted(type, (_, a) => population(a)),
    emit: ({ type }) =>
      type === 'b32'
        ? onWords((_, a) => populationCode(a))
        : (body, { vectors: [a, b] }) => {
            const [low, high] = [body.keep(populationCode(a)), body.keep(populationCode(b))];
            return [[i32x4.add(lowWords(low, high), highWords(low, high))]];
          },
  }),
  row({
    ...common,
    syntax: 'clz.type d, a',
    alternatives: { type: ['.b32', '.b64'] },
    operands: { d: 'u32' },
    evaluate: ({ type }) => counted(type, ({ bits }, a) => bits - length(a)),
    emit: ({ type }) =>
      type === 'b32'
        ? onWords((_, a) => leadingZeros(a))
        : (_, { vectors }) => {
            const zeros = (lane: number): Expression =>
              i32.wrapI64(i64.clz(i64x2.extractLane(vectors[lane >> 1], lane & 1)));
            return [[eachLane(zeros)]];
          },
  }),
  row({
    ...common,
    syntax: 'brev.type d, a',
    alternatives: { type: ['.b32', '.b64'] },
    evaluate: ({ type }) =>
      ofBigInts(typeOf(type), [typeOf(type)], (a) => reversed(typeOf(type).bits, a)),
    emit:
      ({ type }) =>
      (body, { vectors }) => [
        vectors.map((vector) =>
          bytesTurned(body.keep(turnedBytes(vector)), type === 'b32' ? 4 : 8),
        ),
      ],
  }),
  row({
    ...common,
    syntax: 'bfind{.shiftamt}.type d, a',
    alternatives: { type: ['.u32', '.s32', '.u64', '.s64'] },
    operands: { d: 'u32' },
    evaluate: ({ shiftamt, type }) =>
      counted(type, (integer, a) => {
        const position = highestBit(integer, a);
        return position < 0 || shiftamt === '' ? position : integer.bits - 1 - position;
      }),
    emit: ({ shiftamt, type }) => {
      if (type.endsWith('64')) return null;
      return shiftamt === ''
        ? onWords((body, a) =>
            i32x4.sub(i32x4.splat(31), leadingZeros(body.keep(differing(type, a)))),
          )
        : onWords((body, a) => {
            const bits = body.keep(differing(type, a));
            return v128.or(leadingZeros(bits), i32x4.eq(bits, i32x4.splat(0)));
          });
    },
  }),
];
