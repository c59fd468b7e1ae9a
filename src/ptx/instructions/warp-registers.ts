import type { Fragment } from '../../machine/index.js';
import type { AddressOperand, ResolvedOperand } from './request.js';
import type { Slot } from './slot.js';

const warpLanes = 32;

/** The registers of one warp, which rows of instructions read and write. */
export interface WarpRegisters {
  /**
   * The words of a register of all lanes: 32 words for up to 32 bits; for 64 bits 64, the low word of a lane
   * before its high word; for 128 bits the 64 words of the low halves, then those of the high halves. The view
   * stays valid.
   */
  readonly words: (slot: Slot) => Uint32Array;
}

/** Gives the registers that begin at a byte of a memory (which must not grow afterwards). */
export function createWarpRegisters(
  { buffer }: { readonly buffer: ArrayBuffer },
  start: number,
): WarpRegisters {
  const views = new Map<Slot, Uint32Array>();
  return {
    words: (slot) => {
      let view = views.get(slot);
      if (view === undefined) {
        const perLane = slot.width === 128 ? 4 : slot.width === 64 ? 2 : 1;
        view = new Uint32Array(buffer, start + slot.offset, perLane * warpLanes);
        views.set(slot, view);
      }
      return view;
    },
  };
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

/**
 * Copies registers of all lanes into a fragment of the machine, which stores each lane's registers together.
 * A register of 64 bits is two registers of the fragment, the low word first.
 */
export function gatherFragment(registers: WarpRegisters, slots: readonly Slot[]): Fragment {
  const perLane = slots.reduce((sum, { width }) => sum + wordsOf(width), 0);
  const fragment = new Uint32Array(perLane * warpLanes);
  let first = 0;
  for (const slot of slots) {
    const words = registers.words(slot);
    const count = wordsOf(slot.width);
    for (let lane = 0; lane < warpLanes; lane++)
      for (let i = 0; i < count; i++)
        fragment[lane * perLane + first + i] = words[placeOf(lane, i, count)];
    first += count;
  }
  return fragment;
}

/** Copies a fragment of the machine into registers, for the lanes of a mask. */
export function scatterFragment(
  registers: WarpRegisters,
  slots: readonly Slot[],
  fragment: Fragment,
  lanes: number,
): void {
  const perLane = fragment.length / warpLanes;
  let first = 0;
  for (const slot of slots) {
    const words = registers.words(slot);
    const count = wordsOf(slot.width);
    const mask = slot.width === 16 ? 0xffff : 0xffffffff;
    for (let lane = 0; lane < warpLanes; lane++)
      if (hasLane(lanes, lane))
        for (let i = 0; i < count; i++)
          words[placeOf(lane, i, count)] = fragment[lane * perLane + first + i] & mask;
    first += count;
  }
}

function wordsOf(width: Slot['width']): number {
  return width === 128 ? 4 : width === 64 ? 2 : 1;
}

/** Index of word i of a lane among the words of a register. */
function placeOf(lane: number, i: number, count: number): number {
  if (count === 4) return (i >> 1) * 2 * warpLanes + 2 * lane + (i & 1);
  return lane * count + i;
}
