import { clockIncludes, createClock, joinClock } from './ordering/index.js';
import type { CtaState, MachineState, OperationKind } from './state.js';

/** An operation, or an arrival from another CTA, that a CTA must not end before. */
export interface Reach {
  readonly cta: CtaState;
  /** The event, as clocks have it. */
  readonly chain: number;
  readonly time: number;
  readonly kind: OperationKind | 'arrival';
  readonly who: string;
  readonly site: string;
}

/** What reaches CTAs while they run. */
export interface CtaReach {
  readonly add: (reach: Reach) => void;
  /**
   * Once all warps have ended: reports what none of a CTA's warps knows to be complete, since the CTA
   * may end before it in another schedule.
   */
  readonly checkEnds: (machine: MachineState) => void;
}

/** Nothing has reached any CTA yet. */
export function createCtaReach(): CtaReach {
  // The last in each chain is enough: the earlier ones of the chain come before it.
  const reached = new Map<string, Reach>();
  return {
    add: (reach) => reached.set(`${reach.cta.rank} ${reach.chain}`, reach),
    checkEnds: ({ ctas, findings, step }) => {
      for (const cta of ctas) {
        const end = createClock();
        for (const { order } of cta.warps) {
          joinClock(end, order!.clock);
          joinClock(end, order!.unfenced);
        }
        for (const reach of reached.values()) {
          const { chain, time, kind, who, site } = reach;
          if (reach.cta !== cta || clockIncludes(end, chain, time)) continue;
          findings.add({
            kind: kind === 'arrival' ? 'exited-cta' : 'unfinished-operation',
            message: `CTA ${cta.rank} may end before ${who} (${site}) is done with it`,
            cta: cta.rank,
            step,
            accesses: [{ who, site, step }],
          });
        }
      }
    },
  };
}
