import type { Instruction } from '../../machine/index.js';
import {
  clearRegisterTags,
  type Slot,
  type SlotGuard,
  type Source,
  type WarpRegisters,
} from '../instructions/index.js';

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

/** Copies a value of each lane of a mask into a register of the same width, with its tags where it is followed. */
export function copyLanes(registers: WarpRegisters, from: Source, to: Slot, lanes: number): void {
  if (registers.followed !== null && to.width !== 'pred') {
    if ('bits' in from) clearRegisterTags(registers, [to], lanes);
    else for (const plane of registers.followed.planes) copyLanes(plane, from, to, lanes);
  }
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

/** Strands of a warp at one instruction that their lanes execute together. */
interface Meeting {
  lanes: number;
  isOver: boolean;
}

/** The positions of a warp's lanes, as far as strands have to wait for one another. */
export interface Whereabouts {
  /** The lanes that have not ended. */
  live: number;
  /** Lanes that wait, where parted lanes meet again, for others that have not arrived. */
  parked: number;
  /** Meetings by the number of the instruction. */
  readonly meetings: Map<number, Meeting>;
}

/**
 * Brings lanes to an instruction that others must execute with them: they wait until the others have arrived or ended.
 * If the others wait for these lanes elsewhere, none will come: that is reported, and these lanes go on alone.
 *
 * @param needed gives the lanes that must be there at the moment
 * @returns the lanes that execute it now; 0 where others have already executed it for these
 */
export function* meet(
  warp: Whereabouts,
  at: { readonly number: number; readonly site: string },
  lanes: number,
  needed: () => number,
): Generator<Instruction, number, void> {
  if ((needed() & ~lanes) === 0) return lanes;
  const meeting = warp.meetings.get(at.number) ?? { lanes: 0, isOver: false };
  warp.meetings.set(at.number, meeting);
  meeting.lanes |= lanes;
  const missing = () => needed() & ~meeting.lanes;
  const isHopeless = () => (missing() & warp.parked) !== 0;
  const isReady = () => meeting.isOver || missing() === 0 || isHopeless();
  if (!isReady()) {
    const waitsFor = () => `lanes ${maskName(missing())} of its warp`;
    yield { op: 'converge', isReady, waitsFor, site: at.site };
  }
  if (meeting.isOver) return 0;
  meeting.isOver = true;
  warp.meetings.delete(at.number);
  if (missing() !== 0) {
    const message =
      `lanes ${maskName(meeting.lanes)} execute it without lanes ${maskName(missing())}, ` +
      `which have to execute it with them (lanes that have not ended: ${maskName(warp.live)})`;
    yield { op: 'report', kind: 'convergence', message, site: at.site };
  }
  return meeting.lanes;
}
