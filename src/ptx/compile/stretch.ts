import type { RegisterWidth } from '../instructions/index.js';
import type { Constant, LaneOperation, Slot, Source } from '../program/index.js';
import type { Emitter, SourceValue, Vectors } from './emitters/emitter.js';
import {
  type Expression,
  type FunctionBody,
  local,
  popInto,
  writeIf,
} from './webassembly/function-body.js';
import { i32, i32x4, i64x2, lowWords, v128 } from './webassembly/vectors.js';

/** An operation with the emitter of its instruction. */
export interface EmittedOperation {
  readonly operation: LaneOperation;
  readonly emitter: Emitter;
}

/** Lanes that a pass of the loop works on. */
const lanesOfChunk = 4;
const warpLanes = 32;
const vectorBytes = 16;
/** Of registers of up to 32 bits, and of wider ones, from one pass to the next. */
const narrowStep = 4 * lanesOfChunk;
const wideStep = 8 * lanesOfChunk;
/** From the low halves of a register of 128 bits to the high ones. */
const halfBytes = 8 * warpLanes;

/** Vectors that hold a value of four lanes. */
const vectorCount: Readonly<Record<RegisterWidth, number>> = {
  pred: 1,
  16: 1,
  32: 1,
  64: 2,
  128: 4,
};

/** Whether source i is a register or a constant is told by its members. */
function isConstant(source: Source): source is Constant {
  return 'bits' in source;
}

/** Registers of four lanes in local variables, from their first use to the end of a pass. */
interface HeldRegister {
  readonly slot: Slot;
  readonly locals: readonly number[];
  isWritten: boolean;
}

/** The parameters and variables of a function that carries out a stretch. */
interface Frame {
  readonly body: FunctionBody;
  /** Where registers of up to 32 bits, and wider ones, of this pass begin. */
  readonly narrow: Expression;
  readonly wide: Expression;
  readonly held: Map<number, HeldRegister>;
  /** The mask of active lanes, or null where all are. */
  readonly mask: Expression | null;
}

function addressOf({ narrow, wide }: Frame, slot: Slot, vector: number): [Expression, number] {
  if (vectorCount[slot.width] === 1) return [narrow, slot.offset];
  const half = vector < 2 ? 0 : halfBytes;
  return [wide, slot.offset + half + (vector % 2) * vectorBytes];
}

/** The variables of a register, with what memory has in them unless all is written anyway. */
function hold(frame: Frame, slot: Slot, isRead: boolean): HeldRegister {
  const known = frame.held.get(slot.offset);
  if (known !== undefined) return known;
  const { body } = frame;
  const locals = Array.from({ length: vectorCount[slot.width] }, () => body.declare('v128'));
  const held: HeldRegister = { slot, locals, isWritten: false };
  frame.held.set(slot.offset, held);
  if (isRead)
    locals.forEach((index, vector) => {
      v128.load(...addressOf(frame, slot, vector))(body);
      popInto(body, index);
    });
  return held;
}

/** Both halves of a mask of four lanes, as masks of two. */
function widened(mask: Expression): Vectors {
  return [i64x2.extendLowI32x4S(mask), i64x2.extendHighI32x4S(mask)];
}

/** The mask for each of so many vectors. */
function masksOf(mask: Expression, vectors: number): Vectors {
  if (vectors === 1) return [mask];
  const [low, high] = widened(mask);
  return Array.from({ length: vectors }, (_, i) => (i % 2 === 0 ? low : high));
}

const zero = i32x4.splat(0);

/** The bits of a constant in a register of `width` bits. */
function constantValue({ bits }: Constant, width: RegisterWidth): SourceValue {
  if (width === 'pred')
    return {
      vectors: [i32x4.splat(bits === 0n ? 0 : -1)],
      constant: bits === 0n ? 0n : 1n,
    };
  const constant = BigInt.asUintN(width, bits);
  if (width <= 32) return { vectors: [i32x4.splat(Number(constant))], constant };
  const halves = Array.from({ length: width / 64 }, (_, half) =>
    i64x2.splat(BigInt.asUintN(64, constant >> BigInt(64 * half))),
  );
  return { vectors: halves.flatMap((half) => [half, half]), constant };
}

/** Vectors of one width as those of another: the low bits, or zero-extended. */
function resized(
  { keep }: FunctionBody,
  vectors: Vectors,
  from: RegisterWidth,
  to: RegisterWidth,
): Vectors {
  if (from === to) return vectors;
  const [have, want] = [vectorCount[from], vectorCount[to]];
  if (have === want)
    return to === 16 && from === 32 ? [v128.and(vectors[0], i32x4.splat(0xffff))] : vectors;
  if (have === 1) {
    const word = keep(vectors[0]);
    const low = [i64x2.extendLowI32x4U(word), i64x2.extendHighI32x4U(word)];
    return want === 2 ? low : [...low, zero, zero];
  }
  if (want === 4) return [...vectors, zero, zero];
  if (want === 2) return vectors.slice(0, 2);
  const words = lowWords(vectors[0], vectors[1]);
  return [to === 16 ? v128.and(words, i32x4.splat(0xffff)) : words];
}

function sourceValue(frame: Frame, source: Source, width: RegisterWidth): SourceValue {
  if (isConstant(source)) return constantValue(source, width);
  const { locals } = hold(frame, source, true);
  const whole = locals.map(local);
  if (source.width === width) return { vectors: whole, constant: null };
  const vectors = resized(frame.body, whole, source.width, width);
  return { vectors: vectors.map((vector) => frame.body.keep(vector)), constant: null };
}

/** Writes one operation: values into the variables of its destinations. */
function writeOperation(frame: Frame, { operation, emitter }: EmittedOperation): void {
  const { body } = frame;
  const { instruction, guard, destinations } = operation;
  const sources = operation.sources.map((source, i) =>
    sourceValue(frame, source, instruction.sources[i]),
  );
  const guardMask = guard === null ? null : local(hold(frame, guard.slot, true).locals[0]);
  const results = emitter.emit(body, ...sources);
  const targets: number[] = [];
  destinations.forEach((slot, i) => {
    if (slot === null) return;
    // A guarded result leaves other lanes as they are, so that the register is read.
    const held = hold(frame, slot, guard !== null);
    held.isWritten = true;
    const values = resized(body, results[i], instruction.destinations[i], slot.width);
    const masks = guardMask === null ? null : masksOf(guardMask, values.length);
    values.forEach((value, vector) => {
      const old = local(held.locals[vector]);
      if (masks === null) value(body);
      else if (guard?.isNegated === true) v128.bitselect(old, value, masks[vector])(body);
      else v128.bitselect(value, old, masks[vector])(body);
      targets.push(held.locals[vector]);
    });
  });
  // All results are on the stack before a register changes that one of them may be made from.
  for (const index of targets.reverse()) popInto(body, index);
  body.release();
}

function storeWritten(frame: Frame): void {
  const { body, mask } = frame;
  const narrowMasks = mask === null ? null : [mask];
  let wideMasks: Vectors | null = null;
  for (const { slot, locals, isWritten } of frame.held.values()) {
    if (!isWritten) continue;
    if (locals.length > 1 && mask !== null)
      wideMasks ??= widened(mask).map((half) => body.keep(half));
    locals.forEach((index, vector) => {
      const [address, offset] = addressOf(frame, slot, vector);
      const masks = locals.length === 1 ? narrowMasks : wideMasks;
      const value =
        masks === null
          ? local(index)
          : v128.bitselect(local(index), v128.load(address, offset), masks[vector % 2]);
      v128.store(body, address, offset, value);
    });
  }
  body.release();
}

const loop = 0x03;
const emptyBlock = 0x40;
const endBlock = 0x0b;
const branchIf = 0x0d;

/** Writes `variable += amount`. */
function advance(body: FunctionBody, variable: number, amount: number): void {
  i32.add(local(variable), i32.constant(amount))(body);
  popInto(body, variable);
}

/** The lanes of the lowest four bits of an i32, as a mask. */
function maskOfBits(bits: Expression): Expression {
  const bitOfLane = i32x4.of([1, 2, 4, 8]);
  return i32x4.eq(v128.and(i32x4.splatOf(bits), bitOfLane), bitOfLane);
}

/** The parameters of the functions that `writeStretch` writes. */
export const stretchParameters = {
  all: ['i32'],
  masked: ['i32', 'i32'],
} as const;

/**
 * Writes a function that carries out operations in order on the registers of a warp, four lanes at a time: its
 * parameters are the address of the registers and, where it is `masked`, the lanes. Registers are loaded where they
 * are used first, stay in variables, and are stored at the end if they were written.
 */
export function writeStretch(
  body: FunctionBody,
  operations: readonly EmittedOperation[],
  variant: keyof typeof stretchParameters,
): void {
  const narrow = 0;
  const lanes = 1;
  const [wide, last] = [body.declare('i32'), body.declare('i32')];
  const mask = variant === 'masked' ? body.declare('v128') : null;
  local(narrow)(body);
  popInto(body, wide);
  i32.add(local(narrow), i32.constant((warpLanes / lanesOfChunk) * narrowStep))(body);
  popInto(body, last);

  const frame: Frame = {
    body,
    narrow: local(narrow),
    wide: local(wide),
    held: new Map(),
    mask: mask === null ? null : local(mask),
  };
  const writeOperations = (): void => {
    for (const operation of operations) writeOperation(frame, operation);
    storeWritten(frame);
  };
  body.code.bytes([loop, emptyBlock]);
  if (mask === null) writeOperations();
  else {
    writeIf(body, i32.and(local(lanes), i32.constant(0xf)), () => {
      maskOfBits(local(lanes))(body);
      popInto(body, mask);
      writeOperations();
    });
    i32.shrU(local(lanes), i32.constant(lanesOfChunk))(body);
    popInto(body, lanes);
  }
  advance(body, wide, wideStep);
  advance(body, narrow, narrowStep);
  i32.ne(local(narrow), local(last))(body);
  body.code.bytes([branchIf, 0, endBlock]);
}
