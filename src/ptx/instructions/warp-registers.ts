import {
  byteStoreOf,
  clearTags,
  createByteStore,
  fillBytes,
  moveBytes,
  moveRows,
  type ByteRows,
  type ByteStore,
  type Fragment,
  type ValueTracer,
} from '../../machine/index.js';
import type { AddressOperand, ResolvedOperand } from './request.js';
import { slotBytes, type Slot } from './slot.js';

const warpLanes = 32;

/** The registers of one warp, which rows of instructions read and write. */
export interface WarpRegisters {
  /**
   * The words of a register of all lanes: 32 words for up to 32 bits; for 64 bits 64, the low word of a lane
   * before its high word; for 128 bits the 64 words of the low halves, then those of the high halves. The view
   * stays valid.
   */
  readonly words: (slot: Slot) => Uint32Array;
  /** The same as stores, in each of which equally many bytes of one lane lie behind those of another: two for 128 bits. */
  readonly parts: (slot: Slot) => readonly ByteStore[];
  /** Null where nobody asks what the values stand for. */
  readonly followed: FollowedRegisters | null;
}

/** What the values of registers stand for. */
export interface FollowedRegisters {
  /** The tags of the registers' bytes, as `TagPlanes` of all of them. */
  readonly planes: readonly [WarpRegisters, WarpRegisters, WarpRegisters, WarpRegisters];
  readonly tracer: ValueTracer;
}

/** Values of all lanes in a store: that of lane 0 begins at byte `offset`, each other `stride` bytes behind the one before. */
export interface LaneValues extends ByteRows {
  readonly bytes: number;
}

/** Gives the registers that begin at a byte of a memory (which must not grow afterwards). */
export function createWarpRegisters(
  { buffer }: { readonly buffer: ArrayBuffer },
  start: number,
  followed: FollowedRegisters | null = null,
): WarpRegisters {
  interface Views {
    readonly words: Uint32Array;
    readonly parts: readonly ByteStore[];
  }
  const known = new Map<Slot, Views>();
  const viewsOf = (slot: Slot): Views => {
    let views = known.get(slot);
    if (views === undefined) {
      const words = new Uint32Array(buffer, start + slot.offset, slotBytes(slot.width) / 4);
      const half = words.length / 2;
      const halves = [words.subarray(0, half), words.subarray(half)];
      const parts = (slot.width === 128 ? halves : [words]).map(byteStoreOf);
      if (followed !== null)
        parts.forEach((part, i) => {
          const [a, b, c, d] = followed.planes.map((plane) => plane.parts(slot)[i]);
          part.tags = [a, b, c, d];
        });
      known.set(slot, (views = { words, parts }));
    }
    return views;
  };
  return { words: (slot) => viewsOf(slot).words, parts: (slot) => viewsOf(slot).parts, followed };
}

/** Takes the tags from registers, for the lanes of a mask: their values are new, and come from nowhere. */
export function clearRegisterTags(
  registers: WarpRegisters,
  slots: Iterable<Slot>,
  lanes: number,
): void {
  for (const slot of slots)
    for (const part of registers.parts(slot)) {
      const bytes = part.bytes.length / warpLanes;
      for (let lane = 0; lane < warpLanes; lane++)
        if (hasLane(lanes, lane)) clearTags(part, lane * bytes, bytes);
    }
}

/** Whether a lane is one of a mask. */
export function hasLane(lanes: number, lane: number): boolean {
  return ((lanes >>> lane) & 1) === 1;
}

/** The lowest lane of a mask that is not empty. */
export function lowestLane(lanes: number): number {
  return 31 - Math.clz32(lanes & -lanes);
}

/**
 * The value of an operand in a lane, as an unsigned number: exact below 2^53. An integer gives its low 64
 * bits, a predicate 0 or 1.
 *
 * @param operand a register, `!p`, or a constant
 */
export function operandNumber(
  registers: WarpRegisters,
  operand: ResolvedOperand,
  lane: number,
): number {
  return Number(operandBits(registers, operand, lane));
}

/** The bits of an operand in a lane: the low 64 bits of a constant, 0 or 1 for a predicate. */
export function operandBits(
  registers: WarpRegisters,
  operand: ResolvedOperand,
  lane: number,
): bigint {
  switch (operand.kind) {
    case 'register': {
      const { slot } = operand;
      const words = registers.words(slot);
      const { width } = slot;
      if (width === 'pred') return words[lane] === 0 ? 0n : 1n;
      if (width !== 64 && width !== 128) return BigInt(words[lane]);
      const low = (BigInt(words[2 * lane + 1]) << 32n) | BigInt(words[2 * lane]);
      if (width === 64) return low;
      const high = 2 * (warpLanes + lane);
      return (((BigInt(words[high + 1]) << 32n) | BigInt(words[high])) << 64n) | low;
    }
    case 'constant':
      return BigInt.asUintN(64, operand.bits);
    case 'negated':
      return 1n - operandBits(registers, operand.operand, lane);
    default:
      throw new Error(`an operand that is no value: ${operand.kind}`);
  }
}

/**
 * The address of each lane of a mask, −1 for the others. Addresses wrap at the width of the register, as in
 * the hardware; an address of 2^53 or above is rounded, and lies outside of all memory.
 */
export function laneAddresses(
  registers: WarpRegisters,
  { base, offset }: AddressOperand,
  lanes: number,
): Float64Array {
  const addresses = new Float64Array(warpLanes).fill(-1);
  const words = base === null ? null : registers.words(base);
  for (let lane = 0; lane < warpLanes; lane++) {
    if (!hasLane(lanes, lane)) continue;
    if (words === null || base === null) addresses[lane] = offset;
    else if (base.width !== 64) addresses[lane] = (words[lane] + offset) % 2 ** 32;
    else addresses[lane] = words[2 * lane] + words[2 * lane + 1] * 2 ** 32 + offset;
    const modulus = base?.width === 64 || base === null ? 2 ** 64 : 2 ** 32;
    if (addresses[lane] < 0) addresses[lane] += modulus;
    else if (addresses[lane] >= modulus) addresses[lane] -= modulus;
  }
  return addresses;
}

/** Moves the low bytes of a register to values of all lanes, which stay as they are where the register is narrower. */
export function moveFromRegister(registers: WarpRegisters, slot: Slot, to: LaneValues): void {
  let first = 0;
  for (const part of registers.parts(slot)) {
    const partBytes = part.bytes.length / warpLanes;
    const count = Math.min(partBytes, to.bytes - first);
    const target = { store: to.store, offset: to.offset + first, stride: to.stride };
    moveRows({ store: part, offset: 0, stride: partBytes }, target, count, warpLanes);
    first += partBytes;
  }
}

/**
 * Moves values to a register, for the lanes of a mask. A register wider than the value gets it extended, by its sign where it
 * has one; a narrower one gets its low bytes.
 */
export function moveToRegister(
  registers: WarpRegisters,
  slot: Slot,
  { store, offset, stride, bytes, isSigned }: LaneValues & { readonly isSigned: boolean },
  lanes: number,
): void {
  let first = 0;
  for (const part of registers.parts(slot)) {
    const partBytes = part.bytes.length / warpLanes;
    const heldBytes = slot.width === 16 ? 2 : partBytes;
    const count = Math.max(Math.min(heldBytes, bytes - first), 0);
    if ((lanes | 0) === -1 && count === partBytes) {
      const source = { store, offset: offset + first, stride };
      moveRows(source, { store: part, offset: 0, stride: partBytes }, count, warpLanes);
      first += partBytes;
      continue;
    }
    for (let lane = 0; lane < warpLanes; lane++) {
      if (!hasLane(lanes, lane)) continue;
      const [from, to] = [offset + lane * stride, lane * partBytes];
      moveBytes(store, from + first, part, to, count);
      if (count === partBytes) continue;
      const isNegative = isSigned && store.bytes[from + bytes - 1] >= 0x80;
      fillBytes(part, to + count, heldBytes - count, isNegative ? 0xff : 0);
      fillBytes(part, to + heldBytes, partBytes - heldBytes, 0);
    }
    first += partBytes;
  }
}

/** Calls `visit` with each register and its place in a fragment of the machine, which stores each lane's registers together. */
function forEachSlot(
  slots: readonly Slot[],
  store: Fragment,
  visit: (slot: Slot, values: LaneValues) => void,
): void {
  const stride = store.bytes.length / warpLanes;
  let offset = 0;
  for (const slot of slots) {
    const bytes = slotBytes(slot.width) / warpLanes;
    visit(slot, { store, offset, stride, bytes });
    offset += bytes;
  }
}

/**
 * Copies registers of all lanes into a fragment of the machine.
 * A register of 64 bits is two registers of the fragment, the low word first.
 */
export function gatherFragment(registers: WarpRegisters, slots: readonly Slot[]): Fragment {
  const fragment = createByteStore(slots.reduce((sum, { width }) => sum + slotBytes(width), 0));
  forEachSlot(slots, fragment, (slot, to) => moveFromRegister(registers, slot, to));
  return fragment;
}

/** Copies a fragment of the machine into registers, for the lanes of a mask. */
export function scatterFragment(
  registers: WarpRegisters,
  slots: readonly Slot[],
  fragment: Fragment,
  lanes: number,
): void {
  forEachSlot(slots, fragment, (slot, from) =>
    moveToRegister(registers, slot, { ...from, isSigned: false }, lanes),
  );
}
