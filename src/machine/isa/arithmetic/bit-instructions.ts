import {
  evaluatingLoop,
  moveLoop,
  type RunLoop,
  shiftLeft,
  shiftLeftLoop,
} from '../../../isa/index.js';
import type { PairInstruction, WordInstruction } from './instruction.js';

/**
 * Bytes that `prmt.b32` with a mode takes from the 64 bits {b, a}, numbered from a's lowest, for each
 * value of the lowest two bits of its third operand: the bytes of the result, the lowest first.
 * Source: PTX ISA, instruction `prmt`.
 */
const modeBytes = {
  /** Four bytes forwards from the selected one. */
  f4e: [
    [0, 1, 2, 3],
    [1, 2, 3, 4],
    [2, 3, 4, 5],
    [3, 4, 5, 6],
  ],
  /** Four bytes backwards from the selected one. */
  b4e: [
    [0, 7, 6, 5],
    [1, 0, 7, 6],
    [2, 1, 0, 7],
    [3, 2, 1, 0],
  ],
  /** One byte four times. */
  rc8: [
    [0, 0, 0, 0],
    [1, 1, 1, 1],
    [2, 2, 2, 2],
    [3, 3, 3, 3],
  ],
  /** The bytes of a, those below the selected one replaced by it. */
  ecl: [
    [0, 1, 2, 3],
    [1, 1, 2, 3],
    [2, 2, 2, 3],
    [3, 3, 3, 3],
  ],
  /** The bytes of a, those above the selected one replaced by it. */
  ecr: [
    [0, 0, 0, 0],
    [0, 1, 1, 1],
    [0, 1, 2, 2],
    [0, 1, 2, 3],
  ],
  /** Two bytes twice. */
  rc16: [
    [0, 1, 0, 1],
    [2, 3, 2, 3],
    [0, 1, 0, 1],
    [2, 3, 2, 3],
  ],
} as const;

/** A mode of `prmt`. */
type PermuteMode = keyof typeof modeBytes;

/** The modes of `prmt`. */
const permuteModes = Object.keys(modeBytes) as PermuteMode[];

/** A byte of {b, a} by its number from 0 to 7. */
function byteOf(a: number, b: number, number: number): number {
  return ((number < 4 ? a : b) >>> (8 * (number & 3))) & 0xff;
}

/**
 * `prmt.b32`: every byte of the result is the byte of {b, a} that the lowest three bits of a nibble of
 * `selector` name; the nibble's highest bit replaces it by eight copies of its sign. The lowest four
 * nibbles count.
 */
function permuteBytes(a: number, b: number, selector: number): number {
  let result = 0;
  for (let position = 0; position < 4; position++) {
    const nibble = (selector >>> (4 * position)) & 0xf;
    const byte = byteOf(a, b, nibble & 7);
    const taken = nibble < 8 ? byte : -(byte >>> 7) & 0xff;
    result |= taken << (8 * position);
  }
  return result >>> 0;
}

/** `prmt.b32` with a mode, by the lowest two bits of `selector`. */
function permuteBytesInMode(mode: PermuteMode, a: number, b: number, selector: number): number {
  const bytes: readonly number[] = modeBytes[mode][selector & 3];
  return bytes.reduce((word, number, i) => word | (byteOf(a, b, number) << (8 * i)), 0) >>> 0;
}

interface BitRow {
  readonly name: string;
  readonly operands: 1 | 2 | 3 | 4;
  /** Computes the result, which is taken modulo 2^32. */
  readonly compute: (a: number, b: number, c: number, d: number) => number;
  readonly loop?: RunLoop;
}

/** Amounts of 32 and more shift as 32 does. */
function clampAmount(amount: number): number {
  return Math.min(amount, 32);
}

function shiftRight(a: number, amount: number): number {
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

/** For every bit the entry of `table` at the number that the bits of a, b and c form. */
function lookUp(a: number, b: number, c: number, table: number): number {
  let result = 0;
  for (let entry = 0; entry < 8; entry++) {
    if (((table >>> entry) & 1) === 0) continue;
    result |= (entry & 4 ? a : ~a) & (entry & 2 ? b : ~b) & (entry & 1 ? c : ~c);
  }
  return result;
}

/** The lowest `length` bits set, 32 at most. */
function lowBits(length: number): number {
  return shiftLeft(1, length) - 1;
}

/** `length` bits of a from `position` on; bits beyond bit 31 are zeros. */
function extractField(a: number, position: number, length: number): number {
  return shiftRight(a, position & 0xff) & lowBits(length & 0xff);
}

/** As `extractField`, with bits beyond the field, or beyond bit 31, equal to its highest bit. */
function extractSignedField(a: number, position: number, length: number): number {
  const [from, bits] = [position & 0xff, length & 0xff];
  if (bits === 0) return 0;
  const sign = -((a >>> Math.min(from + bits - 1, 31)) & 1);
  const known = lowBits(Math.min(bits, Math.max(32 - from, 0)));
  return (shiftRight(a, from) & known) | (sign & ~known);
}

/** b with its bits from `position` on replaced by the lowest `length` bits of a. */
function insertField(a: number, b: number, position: number, length: number): number {
  const field = shiftLeft(lowBits(length & 0xff), position & 0xff);
  return (shiftLeft(a, position & 0xff) & field) | (b & ~field);
}

function moves(types: readonly string[]): BitRow[] {
  return types.map((type) => ({
    name: `mov.${type}`,
    operands: 1,
    compute: (a) => a,
    loop: moveLoop,
  }));
}

function selections(types: readonly string[]): BitRow[] {
  return types.map((type) => ({
    name: `selp.${type}`,
    operands: 3,
    compute: (a, b, predicate) => (predicate ? a : b),
  }));
}

const rows: readonly BitRow[] = [
  ...moves(['b32', 'u32', 's32', 'f32', 'pred']),
  ...selections(['b32', 'u32', 's32', 'f32']),
  { name: 'shl.b32', operands: 2, compute: shiftLeft, loop: shiftLeftLoop },
  { name: 'shr.b32', operands: 2, compute: shiftRight },
  { name: 'shr.u32', operands: 2, compute: shiftRight },
  { name: 'shr.s32', operands: 2, compute: (a, amount) => a >> Math.min(amount, 31) },
  { name: 'shf.l.wrap.b32', operands: 3, compute: (a, b, c) => funnelLeft(a, b, c & 31) },
  { name: 'shf.r.wrap.b32', operands: 3, compute: (a, b, c) => funnelRight(a, b, c & 31) },
  { name: 'shf.l.clamp.b32', operands: 3, compute: (a, b, c) => funnelLeft(a, b, clampAmount(c)) },
  { name: 'shf.r.clamp.b32', operands: 3, compute: (a, b, c) => funnelRight(a, b, clampAmount(c)) },
  { name: 'and.b32', operands: 2, compute: (a, b) => a & b },
  { name: 'or.b32', operands: 2, compute: (a, b) => a | b },
  { name: 'xor.b32', operands: 2, compute: (a, b) => a ^ b },
  { name: 'not.b32', operands: 1, compute: (a) => ~a },
  { name: 'and.pred', operands: 2, compute: (a, b) => a & b },
  { name: 'or.pred', operands: 2, compute: (a, b) => a | b },
  { name: 'xor.pred', operands: 2, compute: (a, b) => a ^ b },
  { name: 'not.pred', operands: 1, compute: (a) => a ^ 1 },
  { name: 'lop3.b32', operands: 4, compute: lookUp },
  { name: 'bfe.u32', operands: 3, compute: extractField },
  { name: 'bfe.s32', operands: 3, compute: extractSignedField },
  { name: 'bfi.b32', operands: 4, compute: insertField },
  { name: 'prmt.b32', operands: 3, compute: permuteBytes },
  ...permuteModes.map((mode): BitRow => ({
    name: `prmt.b32.${mode}`,
    operands: 3,
    compute: (a, b, selector) => permuteBytesInMode(mode, a, b, selector),
  })),
];

/**
 * Moves, selections, shifts, logic and bit fields of 32-bit registers. `shl` and `shr` shift by 32 at
 * most; the funnel shifts `shf` work on the 64 bits {b, a}. The fourth operand of `lop3` is its table
 * of eight bits, whose entry number has a's bit highest. Only the lowest eight bits of the position
 * and the length of a bit field count. Predicates, the third operand of `selp` and the operands of
 * `.pred`, are 0 or 1. Source: PTX ISA, "Logic and Shift Instructions", `bfe`, `bfi`, `prmt`, `selp`.
 */
export const bitInstructions: readonly WordInstruction[] = rows.map(
  ({ compute, loop, ...facts }): WordInstruction => {
    const evaluate = (a: number, b: number, c: number, d: number): number =>
      compute(a, b, c, d) >>> 0;
    return {
      ...facts,
      unit: 'alu',
      laneOperations: 1,
      width: 1,
      evaluate,
      loop: loop ?? evaluatingLoop(evaluate),
    };
  },
);

/** Moves of 64-bit registers. */
export const wideMoveInstructions: readonly PairInstruction[] = ['b64', 'u64', 's64'].map(
  (type) => ({
    name: `mov.${type}`,
    unit: 'alu',
    operands: 1,
    laneOperations: 2,
    width: 2,
    element: bitInstructions[0],
  }),
);
