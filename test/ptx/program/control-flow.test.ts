import fc from 'fast-check';
import { expect, test } from 'vitest';
import { immediatePostDominators } from '../../../src/ptx/program/block-builder.js';

/** Blocks that a path from `start` to the end can reach without `without`; the end among them or not. */
function reaches(
  successors: readonly (readonly number[])[],
  start: number,
  without: number,
): boolean {
  const seen = new Set([start]);
  const open = [start];
  while (open.length > 0) {
    const block = open.pop()!;
    if (block === successors.length) return true;
    for (const next of successors[block])
      if (next !== without && !seen.has(next)) {
        seen.add(next);
        open.push(next);
      }
  }
  return false;
}

test('the immediate post-dominator is the first block that every path to the end passes', () => {
  const graphs = fc.integer({ min: 1, max: 9 }).chain((blocks) =>
    fc.array(fc.array(fc.nat({ max: blocks }), { maxLength: 3 }), {
      minLength: blocks,
      maxLength: blocks,
    }),
  );
  fc.assert(
    fc.property(graphs, (successors) => {
      const end = successors.length;
      const joins = immediatePostDominators(successors);
      successors.forEach((_, block) => {
        if (!reaches(successors, block, -1)) return expect(joins[block]).toBe(null);
        const dominators = [...successors.keys(), end].filter(
          (other) => other !== block && (other === end || !reaches(successors, block, other)),
        );
        // The first of them is the one that all the others post-dominate.
        const first = dominators.find((one) =>
          dominators.every(
            (other) => other === one || other === end || !reaches(successors, one, other),
          ),
        );
        expect(joins[block]).toBe(first);
      });
    }),
  );
});
