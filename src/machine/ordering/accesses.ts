import type { Position } from './chains.js';

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
  const rest: Pick<Access, 'proxy' | 'kind' | 'site' | 'who' | 'step'>[] = [];
  return {
    get count() {
      return rest.length;
    },
    record: ({ chain, time, proxy, kind, site, who, step }) => {
      const stamp = rest.push({ proxy, kind, site, who, step });
      if (stamp >= chains.length) {
        chains = extended(chains);
        times = extended(times);
      }
      chains[stamp] = chain;
      times[stamp] = time;
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
  };
}
