import { expect, it } from 'vitest';
import { createAccessTable, type Access } from '../../../src/machine/ordering/index.js';

it('gives events back by their stamps, and refuses what is none', () => {
  const table = createAccessTable();
  const events = Array.from({ length: 1000 }, (_, index): Access => {
    const proxy = index % 3 === 0 ? 'async' : 'generic';
    const kind = (['read', 'write', 'arrive', 'wait'] as const)[index % 4];
    return {
      chain: index % 7,
      time: index,
      proxy,
      kind,
      site: `s${index}`,
      who: 'w',
      step: 2 * index,
    };
  });
  const stamps = events.map(table.record);
  expect(new Set(stamps).size).toBe(1000);
  expect(Math.min(...stamps)).toBe(1);
  expect(table.count).toBe(1000);
  stamps.forEach((stamp, index) => {
    const { chain, time, proxy } = events[index];
    expect(table.describe(stamp)).toEqual(events[index]);
    expect([table.chainOf(stamp), table.timeOf(stamp), table.proxyOf(stamp)]).toEqual([
      ...[chain, time, proxy],
    ]);
  });
  for (const none of [0, -1, 1001]) expect(() => table.describe(none)).toThrow(RangeError);
});
