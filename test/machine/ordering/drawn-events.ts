import fc from 'fast-check';
import {
  createClock,
  includeInClock,
  Stamp,
  type Clock,
  type FindingKind,
} from '../../../src/machine/ordering/index.js';
import type { OrderFindings } from '../../../src/machine/ordering/order-findings.js';

/** Chains whose events are drawn. */
export const chainCount = 4;

/** What some agent knows: of each chain the latest event, as a share of those that there are; 1 for all. */
export type Knowledge = readonly number[];

/** Most agents know all or nothing of a chain. */
export const knowledge: fc.Arbitrary<Knowledge> = fc.array(fc.constantFrom(0, 0.5, 0.8, 1, 1, 1), {
  minLength: chainCount,
  maxLength: chainCount,
});

/** Makes the stamps of events chain by chain, and the clocks of who knows some of them. */
export class Events {
  readonly #times = new Int32Array(chainCount);
  #made = 0;

  /** The next event of a chain. */
  next(chain: number): Stamp {
    const time = ++this.#times[chain];
    const step = this.#made++;
    const site = `site ${step}`;
    return new Stamp({ chain, time, kind: 'arrive', proxy: 'generic', site, who: 'who', step });
  }

  clock(known: Knowledge): Clock {
    const clock = createClock();
    known.forEach((share, chain) =>
      includeInClock(clock, chain, Math.floor(share * this.#times[chain])),
    );
    return clock;
  }
}

/** Whether an event is known, by the definition of a clock. */
export const knows = ({ times }: Clock, { chain, time }: Stamp): boolean => times[chain] >= time;

/** The last event of each chain, in the order in which chains first had one. */
export function lastOfChains<T extends { readonly stamp: Stamp }>(events: readonly T[]): T[] {
  const chains = [...new Set(events.map(({ stamp }) => stamp.chain))];
  return chains.map((chain) => events.findLast(({ stamp }) => stamp.chain === chain)!);
}

/** A report about two events. */
export interface Report {
  readonly kind: FindingKind;
  readonly cta: number;
  readonly message: string;
  readonly stamps: readonly (Stamp | null)[];
}

/** Findings that are written down. */
export function recordedFindings(): {
  readonly findings: OrderFindings;
  readonly reports: Report[];
} {
  const reports: Report[] = [];
  const fail = () => {
    throw new Error('no memory and no phase is looked at here');
  };
  return {
    reports,
    findings: {
      conflict: fail,
      violations: fail,
      unordered: (_, kind, cta, message, stamps) => reports.push({ kind, cta, message, stamps }),
    },
  };
}
