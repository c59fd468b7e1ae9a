import type { LaneOperation, Slot } from '../program/index.js';
import { isConstant, type Template, temporaries, vectorCount } from './template.js';
import {
  createFunctionBody,
  type Expression,
  type FunctionBody,
  i32,
  i32x4,
  i64x2,
  type Library,
  local,
  type ModuleFunction,
  popInto,
  v128,
  writeIf,
} from '../../isa/webassembly/index.js';

/** An operation with the code of its instruction. */
export interface EmittedOperation {
  readonly operation: LaneOperation;
  readonly template: Template;
}

/** Whether a function takes any subset of a warp's lanes, or always all of them. */
export type Variant = 'all' | 'masked';

/** Number of lanes that a pass of the loop works on. */
const lanesOfChunk = 4;
const warpLanes = 32;
const vectorBytes = 16;
/** Bytes from one pass to the next in registers of up to 32 bits, and in wider ones. */
const narrowStep = 4 * lanesOfChunk;
const wideStep = 8 * lanesOfChunk;
/** Distance from the low halves of a register of 128 bits to the high ones. */
const halfBytes = 8 * warpLanes;

/** The variables of a function: parameters, addresses, masks; then those of templates, then registers. */
const variables = {
  /** Address of the registers of up to 32 bits of this pass; at first the address of all registers. */
  narrow: 0,
  lanes: 1,
  /** Address of the wider registers of this pass. */
  wide: 2,
  last: 3,
  /** The active lanes: the mask for vectors of words, and the masks for vectors of 64-bit lanes. */
  mask: 4,
  wideMasks: [5, 6],
  /** The lanes of the operation's guard, in the same form. */
  guard: 7,
  wideGuards: [8, 9],
  firstRegister: temporaries.first + temporaries.count,
} as const;

/** A register of four lanes, in variables from its first use to the end of a pass. */
interface HeldRegister {
  readonly slot: Slot;
  /** The first of its variables. */
  readonly first: number;
  isWritten: boolean;
}

interface Frame {
  readonly body: FunctionBody;
  readonly held: Map<number, HeldRegister>;
  next: number;
}

function addressOf(slot: Slot, vector: number): readonly [variable: number, offset: number] {
  if (vectorCount[slot.width] === 1) return [variables.narrow, slot.offset];
  const half = vector < 2 ? 0 : halfBytes;
  return [variables.wide, slot.offset + half + (vector % 2) * vectorBytes];
}

/** The variables of a register, loaded from memory unless the whole register is overwritten. */
function hold(frame: Frame, slot: Slot, isRead: boolean): HeldRegister {
  const known = frame.held.get(slot.offset);
  if (known !== undefined) return known;
  const count = vectorCount[slot.width];
  const held: HeldRegister = { slot, first: frame.next, isWritten: false };
  frame.next += count;
  frame.held.set(slot.offset, held);
  for (let vector = 0; isRead && vector < count; vector++) {
    const [variable, offset] = addressOf(slot, vector);
    v128.load(local(variable), offset)(frame.body);
    popInto(frame.body, held.first + vector);
  }
  return held;
}

/** Copies a template, with the variables of the sources in its holes. */
function writeTemplate(frame: Frame, { operation, template }: EmittedOperation): void {
  const numbers: number[] = [];
  for (const source of operation.sources) {
    if (isConstant(source)) continue;
    const { first } = hold(frame, source, true);
    for (let vector = 0; vector < vectorCount[source.width]; vector++) numbers.push(first + vector);
  }
  const { code } = frame.body;
  const start = code.length();
  code.bytes(template.code);
  const written = code.written();
  for (const { at, vector } of template.holes) {
    const number = numbers[vector];
    written[start + at] = (number & 0x7f) | 0x80;
    written[start + at + 1] = number >> 7;
  }
}

/**
 * Puts the lanes of a guard into the variables where the results of several vectors find them, whatever they are
 * written to.
 */
function writeGuard(frame: Frame, { guard }: LaneOperation, isWide: boolean): void {
  if (guard === null) return;
  const { body } = frame;
  const predicate = local(hold(frame, guard.slot, true).first);
  (guard.isNegated ? v128.not(predicate) : predicate)(body);
  popInto(body, variables.guard);
  if (!isWide) return;
  i64x2.extendLowI32x4S(local(variables.guard))(body);
  popInto(body, variables.wideGuards[0]);
  i64x2.extendHighI32x4S(local(variables.guard))(body);
  popInto(body, variables.wideGuards[1]);
}

const drop = 0x1a;
const onStack: Expression = () => undefined;

/** Writes one operation: values into the variables of its destinations. */
function writeOperation(frame: Frame, emitted: EmittedOperation): void {
  const { body } = frame;
  const { guard, destinations, instruction } = emitted.operation;
  // Registers that are to be loaded are loaded before anything is on the stack.
  const held = destinations.map((slot) =>
    slot === null ? null : hold(frame, slot, guard !== null || isSource(emitted, slot)),
  );
  const isWide = destinations.some((slot) => slot !== null && vectorCount[slot.width] > 1);
  writeGuard(frame, emitted.operation, isWide);
  writeTemplate(frame, emitted);
  // All results are on the stack before any register changes from which one of them is made.
  for (let i = destinations.length - 1; i >= 0; i--) {
    const register = held[i];
    const count = vectorCount[destinations[i]?.width ?? instruction.destinations[i]];
    for (let vector = count - 1; vector >= 0; vector--) {
      if (register === null) {
        body.code.byte(drop);
        continue;
      }
      const variable = register.first + vector;
      const lanes = count === 1 ? variables.guard : variables.wideGuards[vector % 2];
      if (guard !== null) v128.bitselect(onStack, local(variable), local(lanes))(body);
      popInto(body, variable);
      register.isWritten = true;
    }
  }
}

function isSource({ operation }: EmittedOperation, slot: Slot): boolean {
  return operation.sources.some((source) => !isConstant(source) && source.offset === slot.offset);
}

function storeWritten({ body, held }: Frame, variant: Variant): void {
  for (const { slot, first, isWritten } of held.values()) {
    if (!isWritten) continue;
    const count = vectorCount[slot.width];
    for (let vector = 0; vector < count; vector++) {
      const [variable, offset] = addressOf(slot, vector);
      const address = local(variable);
      const value = local(first + vector);
      const mask = local(count === 1 ? variables.mask : variables.wideMasks[vector % 2]);
      const stored =
        variant === 'all' ? value : v128.bitselect(value, v128.load(address, offset), mask);
      v128.store(body, address, offset, stored);
    }
  }
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

/** Writes the masks of the lanes of this pass, the lowest four bits of `lanes`. */
function writeMasks(body: FunctionBody): void {
  const bitOfLane = i32x4.of([1, 2, 4, 8]);
  i32x4.eq(v128.and(i32x4.splatOf(local(variables.lanes)), bitOfLane), bitOfLane)(body);
  popInto(body, variables.mask);
  i64x2.extendLowI32x4S(local(variables.mask))(body);
  popInto(body, variables.wideMasks[0]);
  i64x2.extendHighI32x4S(local(variables.mask))(body);
  popInto(body, variables.wideMasks[1]);
}

/**
 * A function that carries out operations in order on the registers of a warp, four lanes at a time. Its parameters are
 * the address of the registers and the lanes, which are all lanes where it is not `masked`. Registers are loaded at
 * their first use, stay in variables, and are stored at the end if they were written.
 */
export function stretchFunction(
  library: Library,
  operations: readonly EmittedOperation[],
  variant: Variant,
): ModuleFunction {
  const body = createFunctionBody(variables.firstRegister, library);
  const frame: Frame = { body, held: new Map(), next: variables.firstRegister };
  local(variables.narrow)(body);
  popInto(body, variables.wide);
  i32.add(local(variables.narrow), i32.constant((warpLanes / lanesOfChunk) * narrowStep))(body);
  popInto(body, variables.last);

  const writeOperations = (): void => {
    for (const operation of operations) writeOperation(frame, operation);
    storeWritten(frame, variant);
  };
  body.code.byte(loop);
  body.code.byte(emptyBlock);
  if (variant === 'all') writeOperations();
  else {
    writeIf(body, i32.and(local(variables.lanes), i32.constant(0xf)), () => {
      writeMasks(body);
      writeOperations();
    });
    i32.shrU(local(variables.lanes), i32.constant(lanesOfChunk))(body);
    popInto(body, variables.lanes);
  }
  advance(body, variables.wide, wideStep);
  advance(body, variables.narrow, narrowStep);
  i32.ne(local(variables.narrow), local(variables.last))(body);
  body.code.bytes([branchIf, 0, endBlock]);
  return {
    parameters: ['i32', 'i32'],
    results: [],
    locals: [
      { count: variables.mask - variables.wide, type: 'i32' },
      { count: frame.next - variables.mask, type: 'v128' },
    ],
    code: body.code.written(),
  };
}
