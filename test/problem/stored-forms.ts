import fc from 'fast-check';
import type { StoredForm } from '../../src/problem/index.js';

/**
 * Forms of a problem of so many sequences.
 * @param joins whether one tensor can hold keys and values: they are of one size and format
 */
export function storedForms(sequences: number, joins: boolean): fc.Arbitrary<StoredForm> {
  return fc
    .record({
      gap: fc.nat(3),
      spare: fc.nat(3),
      headsFirst: fc.boolean(),
      queries: fc.constantFrom('packed', 'padded'),
      keys: fc.constantFrom('packed', 'padded', 'padded left', 'paged'),
      left: fc.array(fc.nat(2), { minLength: sequences, maxLength: sequences }),
      pageSize: fc.integer({ min: 1, max: 5 }),
      shared: fc.boolean(),
      turned: fc.boolean(),
      ofPages: fc.record({
        headsFirst: fc.boolean(),
        joined: joins ? fc.boolean() : fc.constant(false),
        listed: fc.boolean(),
      }),
    })
    .map(({ gap, spare, headsFirst, left, pageSize, shared, turned, ofPages, ...kinds }) => {
      const packed = { kind: 'packed', gap, spare } as const;
      const padded = { kind: 'padded', spare, headsFirst } as const;
      const arrange = (pages: number) =>
        Array.from({ length: pages }, (_, page) => (turned ? pages - 1 - page : page));
      const paged = { kind: 'paged', pageSize, spare, shared, arrange, ...ofPages } as const;
      return {
        queries: kinds.queries === 'packed' ? packed : padded,
        keys: { packed, padded, 'padded left': { ...padded, left }, paged }[kinds.keys],
      };
    });
}
