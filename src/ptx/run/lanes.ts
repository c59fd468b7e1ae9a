import type { Slot, SlotGuard, Source, WarpRegisters } from '../instructions/index.js';

const warpLanes = 32;

/** The lanes of a mask whose guard holds. */
export function guardedLanes(
  registers: WarpRegisters,
  guard: SlotGuard | null,
  lanes: number,
): number {
  if (guard === null) return lanes;
  const words = registers.words(guard.slot);
  let mask = 0;
  for (let lane = 0; lane < warpLanes; lane++) mask |= (words[lane] & 1) << lane;
  return lanes & (guard.isNegated ? ~mask : mask);
}

/** Number of lanes in a mask. */
export function countLanes(lanes: number): number {
  let count = 0;
  for (let rest = lanes; rest !== 0; rest &= rest - 1) count++;
  return count;
}

/** A mask in the notation of findings. */
export function maskName(lanes: number): string {
  return `0x${(lanes >>> 0).toString(16)}`;
}

/** Copies a value of each lane of a mask into a register of the same width. */
export function copyLanes(registers: WarpRegisters, from: Source, to: Slot, lanes: number): void {
  const target = registers.words(to);
  const perLane = target.length / warpLanes;
  const source = 'offset' in from ? registers.words(from) : null;
  const bits = 'bits' in from ? from.bits : 0n;
  for (let i = 0; i < target.length; i++) {
    // In 128 bits the high halves come after all low halves.
    const lane = perLane === 4 ? (i >> 1) % warpLanes : Math.floor(i / perLane);
    if (((lanes >>> lane) & 1) === 0) continue;
    const word = perLane === 4 ? (i & 1) + (i >= 2 * warpLanes ? 2 : 0) : i % perLane;
    target[i] = source === null ? Number(BigInt.asUintN(32, bits >> BigInt(32 * word))) : source[i];
  }
}
