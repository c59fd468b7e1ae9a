import type { AccessTable, Proxy } from './accesses.js';
import { clockIncludes, type Clock } from './clock.js';

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
