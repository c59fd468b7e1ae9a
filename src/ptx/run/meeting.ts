import type { Instruction } from '../../machine/index.js';
import { maskName } from './lanes.js';

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
