import type { MemoryScope } from '../isa/index.js';
import { type Clock, clockIncludes, type Position } from './clock.js';

/**
 * The ways to memory that an access can take. Source: PTX ISA, "Proxies": accesses through different
 * proxies need a proxy fence besides the order of the instructions.
 */
export type Proxy = 'generic' | 'async';

/** Kinds of events that have a stamp: accesses to memory, and arrivals and waits at barriers. */
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
  /** For a strong access, the threads that it is ordered for; weak ones have none. */
  readonly scope?: MemoryScope | undefined;
  /** The number of the warp's CTA; needed with a scope. */
  readonly cta?: number | undefined;
  /** For a weak write: whether it leaves every byte as it is. */
  readonly repeats?: boolean | undefined;
}

/** The threads that a strong access is ordered for: those of its CTA, or more; none of a weak one. */
type Strength = 0 | 1 | 2;

/**
 * A record of an event, by which later findings name it. There is no list of all of them: the words of memory, the barriers and
 * so on for which an event still matters hold its stamp, so that there are as many as these need, however long the run.
 */
export class Stamp implements Access {
  readonly chain: number;
  readonly time: number;
  readonly proxy: Proxy;
  readonly kind: AccessKind;
  readonly site: string;
  readonly who: string;
  readonly step: number;
  readonly cta: number | undefined;
  readonly strength: Strength;
  readonly repeats: boolean;

  constructor({ chain, time, proxy, kind, site, who, step, scope, cta, repeats }: Access) {
    this.chain = chain;
    this.time = time;
    this.proxy = proxy;
    this.kind = kind;
    this.site = site;
    this.who = who;
    this.step = step;
    this.cta = cta;
    this.strength = scope === undefined ? 0 : scope === 'cta' ? 1 : 2;
    this.repeats = repeats === true;
  }

  /** Whether it is a strong access. */
  get isStrong(): boolean {
    return this.strength !== 0;
  }
}

/** Whether an event is in a clock: whether it has happened before. */
export function clockHas(clock: Clock, { chain, time }: Position): boolean {
  return clockIncludes(clock, chain, time);
}

/**
 * Whether two accesses are morally strong: both are strong, and each one's scope includes the other's thread.
 * They are no race, in whatever order they come. Source: PTX ISA, "Morally strong operations".
 */
export function areMorallyStrong(one: Stamp, other: Stamp): boolean {
  const least = Math.min(one.strength, other.strength);
  return least === 2 || (least === 1 && one.cta === other.cta);
}

/** Events that have happened before an access. */
export interface AccessClocks {
  /** All of them, the access itself included. */
  readonly clock: Clock;
  /**
   * The part of it that is known to the async proxy: the events before some fence.proxy.async on the
   * way. Like `clock` it is closed: with an event it has all that happened before that event. A fence
   * joins the clock into it and then ticks; otherwise the agent's events after the fence would count as
   * known.
   */
  readonly asyncView: Clock;
}

/** Events that have happened before another event. */
export interface EventClocks extends AccessClocks {
  /**
   * Further events that have happened before it in time, in every schedule, but make nothing known about memory. Examples: a
   * warp's events before it issues a tcgen05.commit, whose arrival comes later and makes known tensor operations alone, or
   * before a relaxed arrival.
   */
  readonly happened?: Clock;
}

/** The order that an access lacks to come after an earlier one: any order, or only a proxy fence on the way. */
export type MissingOrder = 'order' | 'proxy-fence';

/**
 * The clock that must contain an earlier access, by the proxies of the earlier and of the later one.
 * Source: PTX ISA, "Asynchronous operations" and fence.proxy.async: generic accesses become known to the
 * async proxy by a fence only, while the completion of an asynchronous operation acts as such a fence
 * itself.
 */
const clockFor: Readonly<Record<Proxy, Readonly<Record<Proxy, keyof AccessClocks>>>> = {
  generic: { generic: 'clock', async: 'asyncView' },
  async: { generic: 'clock', async: 'clock' },
};

/**
 * The order missing between an earlier access and one with these clocks; null if the earlier one
 * happens before it and is known to its proxy.
 */
export function missingOrder(
  earlier: Stamp,
  proxy: Proxy,
  clocks: AccessClocks,
): MissingOrder | null {
  if (clockHas(clocks[clockFor[earlier.proxy][proxy]], earlier)) return null;
  return clockHas(clocks.clock, earlier) ? 'proxy-fence' : 'order';
}

/** Whether every access that is morally strong with the later one is with the earlier one, too: then each race of the earlier one is one of the later. */
function isAsStrong(earlier: Stamp, later: Stamp): boolean {
  if (!later.isStrong) return true;
  return earlier.strength >= later.strength && earlier.cta === later.cta;
}

/**
 * Whether a read can be forgotten for the sake of a later one: whether every write that is ordered after
 * the later one is ordered after it too. A generic read is not covered by an async one, since a write
 * through the async proxy needs a proxy fence after the former and none after the latter; nor is a weak read by a strong
 * one, which strong writes need no order with.
 */
export function isCovered(earlier: Stamp, later: Stamp, { clock }: AccessClocks): boolean {
  const needsNoMore = earlier.proxy === 'async' || later.proxy === 'generic';
  return needsNoMore && isAsStrong(earlier, later) && clockHas(clock, earlier);
}
