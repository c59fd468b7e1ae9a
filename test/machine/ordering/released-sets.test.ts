import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  clockIncludes,
  createClock,
  joinClock,
  tickClock,
  type OrderedCta,
  type OrderedWarp,
  type WarpOrder,
} from '../../../src/machine/ordering/index.js';
import {
  createClocks,
  createSynchronisation,
  fenceOrder,
  joinFences,
  synchronise,
} from '../../../src/machine/ordering/synchronisation.js';
import { scaled } from '../../setup/effort.js';

const scopes = ['cta', 'cluster', 'gpu', 'sys'] as const;
type Scope = (typeof scopes)[number];

/** What an agent does: it goes on, fences, or accesses words. */
type Act =
  | { readonly does: 'event' | 'proxy fence'; readonly agent: number }
  | { readonly does: 'fence'; readonly agent: number; readonly scope: Scope }
  | {
      readonly does: 'weak write';
      readonly agent: number;
      readonly first: number;
      readonly count: number;
    }
  | {
      readonly does: 'read' | 'write';
      readonly agent: number;
      readonly word: number;
      readonly scope: Scope;
      readonly order: 'relaxed' | 'acquire' | 'release' | 'acq_rel';
      readonly isAtomic: boolean;
    };

const agent = fc.nat(2);
const scope = fc.constantFrom(...scopes);
const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ does: fc.constantFrom('event' as const, 'proxy fence' as const), agent }),
  fc.record({ does: fc.constant('fence' as const), agent, scope }),
  fc.record({
    does: fc.constant('weak write' as const),
    agent,
    first: fc.nat(2),
    count: fc.nat(4),
  }),
  {
    weight: 5,
    arbitrary: fc.record({
      does: fc.constantFrom('read' as const, 'write' as const),
      agent,
      word: fc.nat(2),
      scope,
      order: fc.constantFrom(
        'relaxed' as const,
        'acquire' as const,
        'release' as const,
        'acq_rel' as const,
      ),
      isAtomic: fc.boolean(),
    }),
  },
);

/** Events that are known, and those that are known to the async proxy. */
interface Known {
  readonly events: ReadonlySet<string>;
  readonly async: ReadonlySet<string>;
}

const nothing: Known = { events: new Set(), async: new Set() };
const both = (a: Known, b: Known): Known => ({
  events: new Set([...a.events, ...b.events]),
  async: new Set([...a.async, ...b.async]),
});

/** The words of a memory and who has released what at each, as sets: the definition. */
interface Release {
  readonly cta: number;
  readonly scope: Scope;
  readonly known: Known;
}

function createAgents() {
  return [0, 0, 1].map((number, chain) => {
    const order = {
      chain,
      clock: createClock(),
      asyncView: createClock(),
      observed: createClocks(),
      fenced: new Map(),
    } as unknown as WarpOrder;
    const warp = { cta: { number } as OrderedCta, order } as OrderedWarp;
    return { number, order, warp, known: nothing, seen: nothing, fences: new Map<Scope, Known>() };
  });
}

/** The events of which a clock and the definition disagree whether an agent knows them. */
function differences(
  agents: readonly { readonly order: WarpOrder }[],
  { clock, asyncView }: WarpOrder,
  known: Known,
): string[] {
  const found: string[] = [];
  for (const { order } of agents)
    for (let time = 1; time <= order.clock.times[order.chain]; time++) {
      const event = `${order.chain} ${time}`;
      const isKnown = clockIncludes(clock, order.chain, time) === known.events.has(event);
      const isInView = clockIncludes(asyncView, order.chain, time) === known.async.has(event);
      if (!isKnown || !isInView) found.push(event);
    }
  return found;
}

it('what is released is known to who acquires it, and to nobody else', () => {
  fc.assert(
    fc.property(fc.array(act, { maxLength: 40, size: 'max' }), (acts) => {
      const agents = createAgents();
      const memory = createSynchronisation();
      const words = new Map<number, Release[]>();
      for (const one of acts) {
        const self = agents[one.agent];
        const { order, warp, number } = self;
        // Each act is after an event of its own, which others may come to know.
        const time = tickClock(order.clock, order.chain);
        self.known = both(self.known, {
          events: new Set([`${order.chain} ${time}`]),
          async: new Set(),
        });
        if (one.does === 'proxy fence') {
          joinClock(order.asyncView, order.clock);
          self.known = { ...self.known, async: self.known.events };
        } else if (one.does === 'fence') {
          fenceOrder(order, one.scope);
          self.known = both(self.known, self.seen);
          for (const narrower of scopes.slice(0, scopes.indexOf(one.scope) + 1))
            self.fences.set(narrower, self.known);
        } else if (one.does === 'weak write') {
          const { first: start, count } = one;
          const area = { space: 'shared', cta: warp.cta, start, count } as const;
          expect(synchronise(memory, warp, 'write', area)).toBe(false);
          for (let word = start; word < start + count; word++) words.delete(word);
        } else if (one.does === 'read' || one.does === 'write') {
          const { word, scope: ofAccess, order: kind, isAtomic } = one;
          const strong = { scope: ofAccess, order: kind, isAtomic };
          const bytes = { unit: 'byte', start: 4 * word + 1, count: 2 } as const;
          const area = { space: 'shared', cta: warp.cta, ...bytes, strong } as const;
          const isChanged = synchronise(memory, warp, one.does, area);
          const released = words.get(word) ?? [];
          if (one.does === 'read') {
            const acquires = kind === 'acquire' || kind === 'acq_rel';
            expect(isChanged).toBe(acquires && words.has(word));
            for (const { cta, scope: of, known } of released) {
              if (cta !== number && (of === 'cta' || ofAccess === 'cta')) continue;
              if (acquires) self.known = both(self.known, known);
              else self.seen = both(self.seen, known);
            }
          } else {
            const releases = kind === 'release' || kind === 'acq_rel';
            const reached = scopes.slice(0, scopes.indexOf(ofAccess) + 1);
            const added: Release[] = releases
              ? [{ cta: number, scope: ofAccess, known: self.known }]
              : reached.flatMap((of) => {
                  const known = self.fences.get(of);
                  return known === undefined ? [] : [{ cta: number, scope: of, known }];
                });
            expect(isChanged).toBe(added.length > 0);
            const all = [...(isAtomic ? released : []), ...added];
            if (all.length > 0) words.set(word, all);
            else words.delete(word);
          }
        }
        expect(agents.flatMap(({ order: of, known }) => differences(agents, of, known))).toEqual(
          [],
        );
      }
    }),
    { numRuns: scaled(120) },
  );
});

it('rows of words are released one by one, and lanes that meet have the fences of both', () => {
  const [writer, reader, other] = createAgents();
  const memory = createSynchronisation();
  tickClock(writer.order.clock, writer.order.chain);
  const strong = { scope: 'gpu', order: 'release', isAtomic: false } as const;
  const rows = {
    space: 'shared',
    cta: writer.warp.cta,
    start: 10,
    count: 2,
    stride: 5,
    rows: 3,
  } as const;
  synchronise(memory, writer.warp, 'write', { ...rows, strong });
  for (let word = 0; word < 30; word++) {
    const area = { space: 'shared', cta: reader.warp.cta, start: word, count: 1 } as const;
    const acquire = { scope: 'gpu', order: 'acquire', isAtomic: false } as const;
    const isThere = [10, 11, 15, 16, 20, 21].includes(word);
    expect(synchronise(memory, reader.warp, 'read', { ...area, strong: acquire })).toBe(isThere);
  }
  fenceOrder(writer.order, 'cluster');
  fenceOrder(other.order, 'cta');
  tickClock(other.order.clock, other.order.chain);
  fenceOrder(other.order, 'gpu');
  joinFences(writer.order, other.order);
  const times = (of: Scope) => [...(writer.order.fenced.get(of)?.clock.times.slice(0, 3) ?? [])];
  expect(scopes.map(times)).toEqual([[1, 0, 1], [1, 0, 1], [0, 0, 1], []]);
});
