import { describe, expect, it } from 'vitest';
import {
  createFindingCollector,
  findingGroup,
  findingWeight,
  mergeDependences,
  messageAlone,
  Stamp,
} from '../../../src/machine/ordering/index.js';
import { createScheduleDependences } from '../../../src/machine/ordering/schedule-dependences.js';
import { firstMissing, toldAccesses } from '../../../src/machine/ordering/finding.js';
import { createClock, includeInClock } from '../../../src/machine/ordering/index.js';

const access = (who: string, site: string, step = 0) => ({ who, site, step });

describe('findings', () => {
  const race = { kind: 'race', message: 'a race', cta: 0, step: 1 } as const;

  it('are the same where kind, CTA, message and accesses are, and then are counted', () => {
    const collector = createFindingCollector();
    collector.add(race);
    collector.add({ ...race, step: 9 });
    collector.add({ ...race, cta: 1 });
    collector.add({ ...race, kind: 'phase' });
    collector.add({ ...race, message: 'another' });
    collector.add({ ...race, accesses: [access('a', 'x')] });
    collector.add({ ...race, accesses: [access('b', 'x')] });
    collector.add({ ...race, accesses: [access('a', 'y')] });
    collector.add({ ...race, accesses: [access('a', 'y', 7)] });
    expect(collector.list().map(({ count }) => count)).toEqual([2, 1, 1, 1, 1, 1, 2]);
    expect(collector.list()[0]).toEqual({ ...race, accesses: [], count: 2 });
  });

  it('are alike where they say so, whatever their messages', () => {
    const collector = createFindingCollector();
    for (const message of ['byte 1', 'byte 2']) collector.add({ ...race, message, alike: 'bytes' });
    expect(collector.list()).toEqual([{ ...race, message: 'byte 1', accesses: [], count: 2 }]);
  });

  it('of one group are 200 at most, those of others are kept, and known ones are counted on', () => {
    const collector = createFindingCollector();
    const at = (cta: number) => ({ ...race, cta, accesses: [access('a', 'x')] });
    for (let cta = 0; cta < 203; cta++) collector.add(at(cta));
    expect(collector.list().length).toBe(200);
    collector.add(at(199));
    collector.add(at(200));
    collector.add({ ...at(0), accesses: [access('a', 'y')] });
    expect(collector.list().map(({ count }) => count)).toEqual([
      ...Array.from({ length: 199 }, () => 1),
      ...[2, 1],
    ]);
  });

  it('are of one group by kind and places, in whatever order; without places by what they say', () => {
    const [a, b] = [access('first', 'x'), access('second', 'y')];
    const group = findingGroup({ ...race, accesses: [a, b] });
    expect(findingGroup({ ...race, message: 'else', accesses: [b, a] })).toBe(group);
    expect(findingGroup({ ...race, accesses: [b, a, a] })).toBe(group);
    expect(findingGroup({ ...race, kind: 'phase', accesses: [a, b] })).not.toBe(group);
    expect(findingGroup({ ...race, accesses: [a] })).not.toBe(group);
    const without = findingGroup({ ...race, accesses: [] });
    expect(findingGroup({ ...race, message: 'else', accesses: [] })).not.toBe(without);
  });

  it('say what they say without the accesses that their messages end with', () => {
    const accesses = [access('first', 'x'), access('second', 'y')];
    const message = `here${toldAccesses(accesses)}`;
    expect(messageAlone({ message, accesses })).toBe('here');
    expect(messageAlone({ message: 'here', accesses })).toBe('here');
    expect(messageAlone({ message: `${message} and more`, accesses })).toBe(`${message} and more`);
  });

  it('weigh as much as their kind', () => {
    expect(findingWeight('race')).toBe('illegal');
    expect(findingWeight('uninitialised')).toBe('hint');
    expect(findingWeight('schedule-dependent')).toBe('one-schedule');
  });
});

const stamp = (chain: number, time: number, site = '') =>
  new Stamp({ chain, time, kind: 'write', proxy: 'generic', site, who: `chain ${chain}`, step: 4 });

it('the first event that is missing is in neither of the two clocks', () => {
  const [clock, happened] = [createClock(), createClock()];
  includeInClock(clock, 0, 2);
  includeInClock(happened, 1, 3);
  const [inClock, inHappened, inNone] = [stamp(0, 2), stamp(1, 3), stamp(0, 3)];
  expect(firstMissing([inClock, inHappened], { clock, happened })).toBeNull();
  expect(firstMissing([inClock, inHappened], { clock })).toBe(inHappened);
  expect(firstMissing([inClock, inNone, stamp(1, 4)], { clock, happened })).toBe(inNone);
  expect(firstMissing([], { clock })).toBeNull();
});

describe('what the schedule decides', () => {
  it('is counted by the places of both accesses, and by pairs of accesses', () => {
    const dependences = createScheduleDependences();
    const [a, b, c] = [stamp(0, 1, 'x'), stamp(1, 1, 'y'), stamp(1, 2, 'y')];
    // Word after word of one access is one pair; then there is another, and the first again.
    for (const [earlier, later] of [
      [a, b],
      [a, b],
      [a, c],
      [a, b],
      [b, a],
    ] as const)
      dependences.add(earlier, later);
    const of = ({ who, site, step }: Stamp) => ({ who, site, step });
    expect(dependences.list()).toEqual([
      { accesses: [of(a), of(b)], count: 3 },
      { accesses: [of(b), of(a)], count: 1 },
    ]);
  });

  it('is kept of a hundred pairs of places, and those are counted on', () => {
    const dependences = createScheduleDependences();
    const first = stamp(0, 1, 'x');
    for (let i = 0; i < 103; i++) dependences.add(first, stamp(1, 1, `site ${i}`));
    dependences.add(first, stamp(1, 2, 'site 99'));
    dependences.add(first, stamp(1, 2, 'site 100'));
    expect(dependences.list().map(({ count }) => count)).toEqual([
      ...Array.from({ length: 99 }, () => 1),
      2,
    ]);
  });

  it('adds up over clusters', () => {
    const pair = (x: string, y: string, count: number) => ({
      accesses: [access('a', x), access('b', y)] as const,
      count,
    });
    const merged = mergeDependences([
      [pair('x', 'y', 2), pair('y', 'x', 1)],
      [],
      [pair('x', 'y', 5)],
    ]);
    expect(merged).toEqual([pair('x', 'y', 7), pair('y', 'x', 1)]);
  });
});
