import { siteOf } from '../isa/index.js';
import type { Stamp } from './accesses.js';
import type { Mbarrier } from './barriers.js';
import type { OrderFindings } from './order-findings.js';
import type { OrderedRun, OrderedWarp } from './order-tracker.js';

/** The last phase for which a wait of some warp at some place returned, and the stamp of that wait. */
interface SeenPhase {
  readonly phase: number;
  readonly stamp: Stamp;
}

/** A wait that has returned for a phase for which it had returned before. */
interface Repetition {
  readonly barrier: Mbarrier;
  readonly phase: number;
  readonly stamps: readonly [Stamp, Stamp];
}

/**
 * Waits of one warp at one place that return twice for one phase of a barrier. A loop whose parity is not flipped, or
 * flipped too late, does this; the report is then about a race, or a phase of another barrier, that results from it.
 */
export interface RepeatedWaits {
  readonly observe: (warp: OrderedWarp, barrier: Mbarrier, phase: number, stamp: Stamp) => void;
  /** The barrier has been invalidated. */
  readonly end: (barrier: Mbarrier) => void;
  /** Reports them: the first at each place. */
  readonly tell: (machine: OrderedRun) => void;
}

/** The repeated waits of a run, none at first. */
export function createRepeatedWaits(findings: OrderFindings): RepeatedWaits {
  const seen = new Map<Mbarrier, Map<string, SeenPhase>>();
  const repetitions = new Map<string, Repetition>();
  return {
    observe: (warp, barrier, phase, stamp) => {
      const place = `${warp.order!.chain} ${siteOf(warp.current)}`;
      let places = seen.get(barrier);
      if (places === undefined) seen.set(barrier, (places = new Map()));
      const before = places.get(place);
      places.set(place, { phase, stamp });
      if (before?.phase === phase && !repetitions.has(place))
        repetitions.set(place, { barrier, phase, stamps: [before.stamp, stamp] });
    },
    end: (barrier) => {
      seen.delete(barrier);
    },
    tell: (machine) => {
      for (const { barrier, phase, stamps } of repetitions.values()) {
        const which = phase < 0 ? 'the one before the first' : `${phase}`;
        const message = `${barrier.name}: waits for a phase it has already seen (${which})`;
        findings.unordered(machine, 'repeated-wait', barrier.cta, message, stamps);
      }
    },
  };
}
