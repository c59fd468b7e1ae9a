import type { MemoryScope } from '../isa/index.js';
import { type Clock, clockIncludes, type Position } from './clock.js';

/**
 * The ways to memory that an access can take. Source: PTX ISA, "Proxies": accesses through different
 * proxies need a proxy fence besides the order of the instructions.
 */
export type Proxy = 'generic' | 'async';

/** What can have a stamp: accesses to memory, and arrivals and waits at barriers. */
export type AccessKind = 'read' | 'write' | 'arrive' | 'wait';

/** An event that a finding may name. */
export interface Access extends Position {
  readonly proxy: Proxy;
  readonly kind: AccessKind;
  /** The instruction's place in the program. */
  readonly site: string;
  /** The warp, or the asynchronous operation. */
  readonly who: string;
  /** The step of the run. */
  readonly step: number;
  /** Of a strong access, the threads that it is ordered for; weak ones have none. */
  readonly scope?: MemoryScope | undefined;
  /** The number of the warp's CTA; needed with a scope. */
  readonly cta?: number | undefined;
  /** Of a weak write: whether it leaves every byte as it is. */
  readonly repeats?: boolean | undefined;
}

/** The events of a run, by stamp. Stamps count from 1. */
export interface AccessTable {
  /** The greatest stamp so far. */
  readonly count: number;
  /** Adds an event and returns its stamp. */
  readonly record: (access: Access) => number;
  /** The event of a stamp; throws a RangeError for a number that is no stamp. */
  readonly describe: (stamp: number) => Access;
  readonly chainOf: (stamp: number) => number;
  readonly timeOf: (stamp: number) => number;
  readonly proxyOf: (stamp: number) => Proxy;
  readonly kindOf: (stamp: number) => AccessKind;
  /** Whether it is a strong access. */
  readonly isStrong: (stamp: number) => boolean;
  /** Whether it is a weak write that leaves every byte as it is. */
  readonly repeats: (stamp: number) => boolean;
  /**
   * Whether two accesses are morally strong: both are strong, and each one's scope includes the other's thread.
   * They are no race, in whatever order they come. Source: PTX ISA, "Morally strong operations".
   */
  readonly areMorallyStrong: (one: number, other: number) => boolean;
}

const firstCapacity = 256;

function extended(array: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(2 * array.length);
  larger.set(array);
  return larger;
}

/** An empty table. Positions lie in arrays of their own, since every check of an order reads them. */
export function createAccessTable(): AccessTable {
  let chains = new Int32Array(firstCapacity);
  let times = new Int32Array(firstCapacity);
  // Of strong accesses: 1 for the threads of the CTA, 2 for more.
  let strengths = new Int8Array(firstCapacity);
  const rest: Omit<Access, 'chain' | 'time'>[] = [];
  return {
    get count() {
      return rest.length;
    },
    record: ({ chain, time, ...access }) => {
      const stamp = rest.push(access);
      if (stamp >= chains.length) {
        chains = extended(chains);
        times = extended(times);
        const wider = new Int8Array(chains.length);
        wider.set(strengths);
        strengths = wider;
      }
      chains[stamp] = chain;
      times[stamp] = time;
      strengths[stamp] = access.scope === undefined ? 0 : access.scope === 'cta' ? 1 : 2;
      return stamp;
    },
    describe: (stamp) => {
      const access = rest[stamp - 1];
      if (access === undefined)
        throw new RangeError(`${stamp} is no stamp: there are 1 to ${rest.length}`);
      return { chain: chains[stamp], time: times[stamp], ...access };
    },
    chainOf: (stamp) => chains[stamp],
    timeOf: (stamp) => times[stamp],
    proxyOf: (stamp) => rest[stamp - 1].proxy,
    kindOf: (stamp) => rest[stamp - 1].kind,
    isStrong: (stamp) => strengths[stamp] !== 0,
    repeats: (stamp) => rest[stamp - 1].repeats === true,
    areMorallyStrong: (one, other) => {
      const least = Math.min(strengths[one], strengths[other]);
      return least === 2 || (least === 1 && rest[one - 1].cta === rest[other - 1].cta);
    },
  };
}

/** What has happened before an access. */
export interface AccessClocks {
  /** Everything that has, the access itself included. */
  readonly clock: Clock;
  /**
   * The part of it that is known to the async proxy: what some fence.proxy.async on the way came after.
   * Like `clock` it is closed: with an event it has all that happened before that event. A fence joins
   * the clock into it and then ticks, or what the agent does after the fence would count as known.
   */
  readonly asyncView: Clock;
}

/** What has happened before an event. */
export interface EventClocks extends AccessClocks {
  /**
   * What has happened before it in time besides: in every schedule, but nothing of memory is known from it. So it is with what
   * a warp has done when it issues a tcgen05.commit, whose arrival comes later and makes known tensor operations alone, or
   * before a relaxed arrival.
   */
  readonly happened?: Clock;
}

/** What an access lacks to come after an earlier one: any order, or only a proxy fence on the way. */
export type MissingOrder = 'order' | 'proxy-fence';

/**
 * Which clock an earlier access has to be in, by the proxies of the earlier and of the later one. Source:
 * PTX ISA, "Asynchronous operations" and fence.proxy.async: generic accesses become known to the async
 * proxy by a fence only, while the completion of an asynchronous operation acts as such a fence itself.
 */
const clockFor: Readonly<Record<Proxy, Readonly<Record<Proxy, keyof AccessClocks>>>> = {
  generic: { generic: 'clock', async: 'asyncView' },
  async: { generic: 'clock', async: 'clock' },
};

/**
 * What is missing between an earlier access and one with these clocks; null if the earlier one happens
 * before it and is known to its proxy.
 */
export function missingOrder(
  accesses: AccessTable,
  earlier: number,
  proxy: Proxy,
  clocks: AccessClocks,
): MissingOrder | null {
  const chain = accesses.chainOf(earlier);
  const time = accesses.timeOf(earlier);
  if (clockIncludes(clocks[clockFor[accesses.proxyOf(earlier)][proxy]], chain, time)) return null;
  return clockIncludes(clocks.clock, chain, time) ? 'proxy-fence' : 'order';
}

/**
 * Whether a read can be forgotten for the sake of a later one: whether every write that is ordered after
 * the later one is ordered after it too. A generic read is not covered by an async one, since a write
 * through the async proxy needs a proxy fence after the former and none after the latter.
 */
export function isCovered(
  accesses: AccessTable,
  earlier: number,
  later: number,
  { clock }: AccessClocks,
): boolean {
  const needsNoMore =
    accesses.proxyOf(earlier) === 'async' || accesses.proxyOf(later) === 'generic';
  return needsNoMore && clockIncludes(clock, accesses.chainOf(earlier), accesses.timeOf(earlier));
}
