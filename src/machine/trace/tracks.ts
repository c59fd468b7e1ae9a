import { recordOf } from '../instructions/index.js';
import { partitions, type TimedUnit, type TraceEvent } from '../measure/index.js';

/** A row of a trace: a warp, or a unit of the SM. */
export interface Track {
  /** Different from that of every other track of the CTA, and in the order of display. */
  readonly id: number;
  readonly name: string;
}

interface UnitTracks {
  readonly firstId: number;
  readonly name: string;
  /** Whether each part of the SM has one. */
  readonly isPartitioned: boolean;
}

const unitTracks: Readonly<Record<Exclude<TimedUnit, 'issue'> | 'TMA stores', UnitTracks>> = {
  TMA: { firstId: 1, name: 'TMA loads', isPartitioned: false },
  'TMA stores': { firstId: 2, name: 'TMA stores', isPartitioned: false },
  'load/store': { firstId: 4, name: 'copies by lanes', isPartitioned: false },
  'tensor core': { firstId: 3, name: 'tensor core', isPartitioned: false },
  MUFU: { firstId: 200, name: 'MUFU', isPartitioned: true },
  FMA: { firstId: 210, name: 'FMA', isPartitioned: true },
  'tensor memory': { firstId: 220, name: 'tensor memory', isPartitioned: true },
};
const firstWarpId = 100;

function warpTrack(warp: number, name: string): Track {
  return { id: firstWarpId + warp, name };
}

/**
 * The track that an event is shown on: the warp's, the unit's, or that of a unit of the warp's part of
 * the SM. Bulk stores have one of their own: a load is shown when its bytes arrive, a store when it
 * reads. A commit, which no unit executes, is shown with the tensor core that it follows.
 */
export function trackOf(
  { track, warp, instruction }: TraceEvent,
  warpName: (warp: number) => string,
): Track {
  if (typeof track === 'number') return warpTrack(track, warpName(track));
  const isStore = instruction !== null && recordOf(instruction).unit.operation === 'bulk-store';
  const unit = track === 'issue' ? 'tensor core' : isStore ? 'TMA stores' : track;
  const { firstId, name, isPartitioned } = unitTracks[unit];
  if (!isPartitioned) return { id: firstId, name };
  const part = warp % partitions;
  return { id: firstId + part, name: `${name}, part ${part}` };
}
