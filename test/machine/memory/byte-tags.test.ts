import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  type ByteStore,
  clearTags,
  copyOfBytes,
  createByteStore,
  fillBytes,
  haveTags,
  moveBytes,
  moveRows,
  tagsOf,
} from '../../../src/machine/memory/index.js';
import { scaled } from '../../setup/effort.js';

const bytes = 64;

/** The tags of a store's bytes. */
function tagsIn({ tags }: ByteStore): readonly number[] {
  return Array.from({ length: bytes }, (_, at) =>
    tags === null ? 0 : tags.reduce((tag, plane, i) => tag + plane.bytes[at] * 2 ** (8 * i), 0),
  );
}

const place = fc.integer({ min: 0, max: bytes / 2 });
const step = fc.record({
  kind: fc.constantFrom('move', 'rows', 'fill', 'clear', 'copy', 'tag'),
  from: fc.nat(2),
  to: fc.nat(2),
  first: place,
  second: place,
  count: fc.integer({ min: 1, max: 16 }),
  tag: fc.integer({ min: 1, max: 2 ** 32 - 1 }),
});

it('the tags of bytes follow them, and go where others take their place', () => {
  const property = fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
    const stores = Array.from({ length: 3 }, () => createByteStore(bytes));
    const due = stores.map(() => Array.from({ length: bytes }, () => 0));
    const moved = (from: number, first: number, to: number, second: number, count: number) => {
      const tags = due[from].slice(first, first + count);
      due[to].splice(second, count, ...tags);
    };
    for (const { kind, from, to, first, second, count, tag } of steps) {
      const [source, target] = [stores[from], stores[to]];
      if (kind === 'tag') {
        tagsOf(source).forEach((plane, i) => (plane.bytes[first] = tag >>> (8 * i)));
        due[from][first] = tag;
      } else if (kind === 'copy') {
        stores[to] = copyOfBytes(source);
        due[to] = due[from].slice();
      } else if (kind === 'fill' || kind === 'clear') {
        if (kind === 'fill') fillBytes(source, first, count, 7);
        else clearTags(source, first, count);
        due[from].fill(0, first, first + count);
      } else if (from !== to && kind === 'move') {
        moveBytes(source, first, target, second, count);
        moved(from, first, to, second, count);
      } else if (from !== to) {
        const rows = (store: ByteStore, stride: number) => ({ store, offset: 4 * stride, stride });
        moveRows(rows(source, 4), rows(target, 8), 4, 3);
        for (let row = 0; row < 3; row++) moved(from, 16 + 4 * row, to, 32 + 8 * row, 4);
      }
    }
    expect(stores.map(tagsIn)).toEqual(due);
    stores.forEach((store, i) =>
      expect(haveTags(store, 0, bytes)).toBe(due[i].some((tag) => tag !== 0)),
    );
  });
  fc.assert(property, { numRuns: scaled(200) });
});
