import { siteOf, type LaneMask } from '../../isa/index.js';
import { createLaneOrder, type LaneOrder } from '../../ordering/index.js';
import type { MachineState, WarpState } from '../../state.js';
import type { LanePlace } from './locate-place.js';

const wordBytes = 4;

/** The order of a warp's lanes; null where the memory model takes converged lanes as ordered. */
function laneOrderOf({ laneOrders }: MachineState, { cta, index }: WarpState): LaneOrder | null {
  if (laneOrders === null) return null;
  const number = cta.rank * cta.warps.length + index;
  return (laneOrders[number] ??= createLaneOrder());
}

/**
 * Follows a weak access of a lane to shared memory; reports one that has no order with an access of another lane of its
 * warp.
 */
export function followLane(
  machine: MachineState,
  warp: WarpState,
  { space, cta, offset }: LanePlace,
  access: { readonly lane: number; readonly isWrite: boolean; readonly bytes: number },
): void {
  const order = space === 'shared' ? laneOrderOf(machine, warp) : null;
  if (order === null) return;
  const { lane, isWrite, bytes } = access;
  const { step } = machine;
  const site = siteOf(warp.current);
  const memoryWords = cta.shared.limitBytes / wordBytes;
  for (let byte = offset; byte < offset + bytes; byte += wordBytes - (byte % wordBytes)) {
    const first = byte % wordBytes;
    const count = Math.min(wordBytes - first, offset + bytes - byte);
    const word = cta.rank * memoryWords + Math.floor(byte / wordBytes);
    const earlier = order.access(word, ((1 << count) - 1) << first, { lane, isWrite, site, step });
    if (earlier === null) continue;
    const verb = (one: { isWrite: boolean }) => (one.isWrite ? 'writes' : 'reads');
    const what =
      `lane ${lane} ${verb({ isWrite })} what lane ${earlier.lane} of its warp ${verb(earlier)} ` +
      'with no bar.warp.sync between them';
    machine.findings.add({
      kind: 'race',
      message: `shared memory, byte ${byte}: ${what}: ${warp.name} (${earlier.site}) and ${warp.name} (${site})`,
      alike: 'lanes of a warp',
      cta: warp.cta.rank,
      step,
      accesses: [
        { who: warp.name, site: earlier.site, step: earlier.step },
        { who: warp.name, site, step },
      ],
    });
    return;
  }
}

/** Lanes of a warp meet: each learns everything that any of them has done. */
export function meetLanes(machine: MachineState, warp: WarpState, mask: LaneMask): void {
  laneOrderOf(machine, warp)?.meet(mask);
}

/** Lanes of a warp publish their events, to any agent. */
export function tellLanes(machine: MachineState, warp: WarpState, mask: LaneMask): void {
  laneOrderOf(machine, warp)?.tell(mask);
}

/** Lanes of a warp have waited for others, or acquired their releases. */
export function informLanes(machine: MachineState, warp: WarpState, mask: LaneMask): void {
  laneOrderOf(machine, warp)?.learn(mask);
}
