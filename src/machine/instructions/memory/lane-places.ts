import { warpLanes, type LanePlaces } from '../../isa/index.js';
import { describeByte, type MemoryViolation } from '../../memory/index.js';
import { report, type CtaState, type MachineState, type WarpState } from '../../state.js';
import { createPlace, locate, type LanePlace, type PlaceUse, violation } from './locate-place.js';

/** Lanes that did something illegal: the first of each kind is reported, with the number of all. */
interface LaneViolations {
  readonly add: (lane: number, found: MemoryViolation) => void;
  readonly report: () => void;
}

function createLaneViolations(
  machine: MachineState,
  warp: WarpState,
  use: PlaceUse,
  bytes: number,
): LaneViolations {
  const found = new Map<MemoryViolation['kind'], { text: string; more: number }>();
  return {
    add: (lane, { kind, message }) => {
      const earlier = found.get(kind);
      if (earlier !== undefined) earlier.more++;
      else found.set(kind, { text: `lane ${lane} ${use} ${bytes} bytes at ${message}`, more: 0 });
    },
    report: () => {
      for (const [kind, { text, more }] of found) {
        const others = more === 0 ? '' : ` (and ${more} more lane${more === 1 ? '' : 's'})`;
        report(machine, warp, kind, text + others);
      }
    },
  };
}

/** The report of contents that nobody has written. */
function unwritten({ allocation, space, offset }: LanePlace): MemoryViolation {
  const where = allocation === null ? `${space} memory` : describeByte(allocation, offset);
  return violation('uninitialised', `${where}, which nobody has written`);
}

/**
 * Goes through the places of a warp's lanes, lane 0 first, and reports the lanes whose place is illegal, which are
 * left out: outside of everything, misaligned, of the wrong state space, not to be written, or (for reads, which
 * happen all the same) without contents. Written places have contents afterwards.
 */
export function forEachPlace(
  machine: MachineState,
  warp: WarpState,
  places: LanePlaces,
  use: PlaceUse,
  visit: (place: LanePlace, lane: number) => void,
): void {
  const { addresses, bytes } = places;
  const place = createPlace(warp.cta);
  let violations: LaneViolations | null = null;
  const request = { places, use, lane: 0 };
  for (let lane = 0; lane < warpLanes; lane++) {
    if (addresses[lane] < 0) continue;
    request.lane = lane;
    let wrong = locate(place, machine, warp, request);
    if (wrong === null) {
      const { written } = place;
      if (written !== null) {
        if (use !== 'writes' && !written.hasAll(place.offset, bytes)) wrong = unwritten(place);
        if (use !== 'reads') written.addAll(place.offset, bytes);
      }
      visit(place, lane);
    }
    if (wrong !== null)
      (violations ??= createLaneViolations(machine, warp, use, bytes)).add(lane, wrong);
  }
  violations?.report();
}

/** The same for the lanes whose places are legal, without a report: for the steps that follow the accesses. */
export function forEachLegalPlace(
  machine: MachineState,
  cta: CtaState,
  places: LanePlaces,
  use: PlaceUse,
  visit: (place: LanePlace, lane: number) => void,
): void {
  const place = createPlace(cta);
  const accessor = { cta, local: null };
  const request = { places, use, lane: 0 };
  for (let lane = 0; lane < warpLanes; lane++) {
    if (places.addresses[lane] < 0) continue;
    request.lane = lane;
    if (locate(place, machine, accessor, request) === null) visit(place, lane);
  }
}
