import type { LaneValue } from '../instruction.js';
import { ofBigInts } from '../integers/operators.js';
import { type Row, row } from '../row.js';
import { integerTypes } from '../values/integer-type.js';
import {
  type Emit,
  low16,
  shiftLeft as shiftLeftCode,
  shiftRight as shiftRightCode,
  shiftRightSigned,
  shiftWide,
  shiftWideSigned,
  signed16,
  type SourceValue,
  valueOf,
} from '../vectors/index.js';
import { type FunctionBody, i32x4, v128 } from '../webassembly/index.js';

const common = {
  section: 'Logic and Shift Instructions',
  meaning: 'confirmed',
  unit: 'alu',
  evidence: 'silicon',
} as const;

/** Amounts of 32 and more shift as 32 does. */
function clampAmount(amount: number): number {
  return Math.min(amount, 32);
}

/** a · 2^amount modulo 2^32: `shl.b32`. */
export function shiftLeft(a: number, amount: number): number {
  return amount < 32 ? (a << amount) >>> 0 : 0;
}

/** a / 2^amount, rounded down: `shr.u32`. */
export function shiftRight(a: number, amount: number): number {
  return amount < 32 ? a >>> amount : 0;
}

/** The highest word of {b, a} after a shift left by 0 to 32. */
function funnelLeft(a: number, b: number, amount: number): number {
  return shiftLeft(b, amount) | shiftRight(a, 32 - amount);
}

/** The lowest word of {b, a} after a shift right by 0 to 32. */
function funnelRight(a: number, b: number, amount: number): number {
  return shiftLeft(b, 32 - amount) | shiftRight(a, amount);
}

/** A shift of integers of a type, with the amount clamped to the type's bits. */
function shifted(name: string, compute: (a: bigint, amount: bigint) => bigint) {
  const type = integerTypes[name as keyof typeof integerTypes];
  const most = BigInt(type.bits);
  return ofBigInts(type, [type, integerTypes.u32], (a, amount) =>
    compute(a, amount < most ? amount : most),
  );
}

function rightCode(type: string): Emit {
  const bits = Number(type.slice(1));
  if (bits === 64)
    return (body, a, n) => [
      type === 's64' ? shiftWideSigned(body, a, n) : shiftWide(body, 'shrU', a, n),
    ];
  return (body, { vectors: [a] }, n) => {
    if (!type.startsWith('s')) return [[shiftRightCode(body, a, n)]];
    return bits === 32
      ? [[shiftRightSigned(body, a, n)]]
      : [[low16(shiftRightSigned(body, body.keep(signed16(a)), n))]];
  };
}

function rightEvaluate(type: string): (a: LaneValue, amount: LaneValue) => LaneValue {
  const onWords =
    type === 's32' ? (a: number, amount: number) => (a >> Math.min(amount, 31)) >>> 0 : shiftRight;
  return type.endsWith('32')
    ? (onWords as (a: LaneValue, amount: LaneValue) => number)
    : shifted(type, (a, amount) => a >> amount);
}

const shifts: readonly Row[] = [
  row({
    ...common,
    syntax: 'shl.type d, a, b',
    alternatives: { type: ['.b16', '.b32', '.b64'] },
    operands: { b: 'u32' },
    evaluate: ({ type }) =>
      type === 'b32' ? shiftLeft : shifted(type, (a, amount) => a << amount),
    emit: ({ type }) =>
      type === 'b64'
        ? (body, a, n) => [shiftWide(body, 'shl', a, n)]
        : (_, { vectors: [a] }, n) => [
            [type === 'b16' ? low16(shiftLeftCode(a, n)) : shiftLeftCode(a, n)],
          ],
    isOfMachine: ({ type }) => type === 'b32',
  }),
  row({
    ...common,
    syntax: 'shr.type d, a, b',
    alternatives: {
      type: ['.b16', '.b32', '.b64', '.u16', '.u32', '.u64', '.s16', '.s32', '.s64'],
    },
    operands: { b: 'u32' },
    evaluate: ({ type }) => rightEvaluate(type),
    emit: ({ type }) => rightCode(type),
    isOfMachine: ({ type }) => type.endsWith('32'),
  }),
];

/** The amount of a funnel shift, and 32 minus the amount. */
function funnelAmounts(
  body: FunctionBody,
  mode: 'wrap' | 'clamp',
  n: SourceValue,
): readonly [SourceValue, SourceValue] {
  const amount =
    mode === 'wrap'
      ? valueOf(
          n,
          (bits) => bits & 31,
          (a) => body.keep(v128.and(a, i32x4.splat(31))),
        )
      : valueOf(
          n,
          (bits) => Math.min(bits, 32),
          (a) => body.keep(i32x4.minU(a, i32x4.splat(32))),
        );
  const rest = valueOf(
    amount,
    (bits) => 32 - bits,
    (a) => body.keep(i32x4.sub(i32x4.splat(32), a)),
  );
  return [amount, rest];
}

/** `shf`: 32 bits of {b, a}, shifted. */
const funnelRow = row({
  ...common,
  syntax: 'shf.dir.mode.b32 d, a, b, c',
  alternatives: { dir: ['.l', '.r'], mode: ['.wrap', '.clamp'] },
  evaluate: ({ dir, mode }) => {
    const funnel = dir === 'l' ? funnelLeft : funnelRight;
    return mode === 'wrap'
      ? (a: number, b: number, c: number) => funnel(a, b, c & 31) >>> 0
      : (a: number, b: number, c: number) => funnel(a, b, clampAmount(c)) >>> 0;
  },
  emit:
    ({ dir, mode }) =>
    (body, { vectors: [a] }, { vectors: [b] }, n) => {
      const [amount, rest] = funnelAmounts(body, mode as 'wrap' | 'clamp', n);
      return dir === 'l'
        ? [[v128.or(shiftLeftCode(b, amount), shiftRightCode(body, a, rest))]]
        : [[v128.or(shiftLeftCode(b, rest), shiftRightCode(body, a, amount))]];
    },
  isOfMachine: true,
});

/** Shifts, whose amounts are clamped to the type's bits, and funnel shifts of the 64 bits {b, a}. */
export const shiftRows: readonly Row[] = [...shifts, funnelRow];
