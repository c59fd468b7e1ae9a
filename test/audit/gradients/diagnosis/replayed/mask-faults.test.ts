import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maskFaults } from '../../../../../src/audit/gradients/diagnosis/replayed/mask-faults.js';
import { problemShape, type Mask, type Problem } from '../../../../../src/problem/index.js';
import { filledProblem, sequencesOf } from '../../../../setup/problems.js';

const [heads, queries, keys] = [2, 5, 7] as const;

const sides = fc.constantFrom(-1, 0, 1, 3);

const drawns = fc.record({
  causal: fc.boolean(),
  window: fc.option(fc.record({ left: sides, right: sides })),
  mask: fc.boolean(),
  segments: fc.boolean(),
  blockMask: fc.boolean(),
  sequences: fc.boolean(),
  prefix: fc.boolean(),
});

type Drawn = typeof drawns extends fc.Arbitrary<infer T> ? T : never;

/** Sequences whose numbers of queries and keys differ. */
const packed = sequencesOf([
  [3, 2],
  [2, 5],
]);

const segmentOf = { queries: [0, 0, 1, 1, 1], keys: [1, 0, 0, 1, 1, 0, 1] };

/** The blocks of 3 keys that blocks of 2 queries see. */
const blocks = [[1], [2, 0], [0, 1, 2]];

const isShown = (head: number, query: number, key: number) => (head + query * 3 + key) % 4 !== 0;

const prefix = 2;

function problemOf(of: Drawn): Problem {
  const places = Array.from({ length: heads * queries * keys }, (_, i) => i);
  const shown = places.map((i) =>
    isShown(Math.floor(i / (queries * keys)), Math.floor(i / keys) % queries, i % keys),
  );
  return filledProblem({ heads, queries, keys, dim: 1 }, () => 1, {
    causal: of.causal,
    window: of.window,
    ...(of.sequences && { sequences: packed }),
    ...(of.mask && {
      mask: { shape: [heads, queries, keys], data: Uint8Array.from(shown, Number) },
    }),
    ...(of.segments && {
      segments: {
        queries: { shape: [queries], data: Int32Array.from(segmentOf.queries) },
        keys: { shape: [keys], data: Int32Array.from(segmentOf.keys) },
      },
    }),
    ...(of.blockMask && {
      blockMask: {
        counts: { shape: [3], data: Int32Array.of(1, 2, 3) },
        indices: { shape: [3, 3], data: Int32Array.of(1, 0, 0, 2, 0, 0, 0, 1, 2) },
        blockQueries: 2,
        blockKeys: 3,
      },
    }),
    ...(of.prefix && { prefix }),
  });
}

/** What a pass sees: the masks that it has, its distances from the diagonal, and where that begins. */
interface Seen extends Omit<Drawn, 'causal' | 'window'> {
  /** Infinity for no limit. */
  readonly left: number;
  readonly right: number;
  readonly isTopLeft: boolean;
}

function seenOf({ causal, window, ...rest }: Drawn): Seen {
  const limit = (side: number | undefined) => (side === undefined || side < 0 ? Infinity : side);
  const right = limit(window?.right);
  return {
    ...rest,
    left: limit(window?.left),
    right: causal ? Math.min(right, 0) : right,
    isTopLeft: false,
  };
}

/** Whether a query sees a key. */
function sees(of: Seen, head: number, query: number, key: number): boolean {
  if (of.mask && !isShown(head, query, key)) return false;
  if (of.segments && segmentOf.queries[query] !== segmentOf.keys[key]) return false;
  if (of.blockMask && !blocks[Math.floor(query / 2)].includes(Math.floor(key / 3))) return false;
  const own = of.sequences
    ? packed[query < packed[1].firstQuery ? 0 : 1]
    : { firstQuery: 0, queries, firstKey: 0, keys };
  const [i, j] = [query - own.firstQuery, key - own.firstKey];
  if (j < 0 || j >= own.keys) return false;
  if (of.prefix && j < prefix) return true;
  const diagonal = of.isTopLeft ? i : i + own.keys - own.queries;
  return j >= diagonal - of.left && j <= diagonal + of.right;
}

const cause = 'in the backward pass, so that its P is not that of the forward';

/** All faults that a problem's masks can have, and what a pass sees then. */
function wantedFaults(of: Drawn): Map<string, Seen> {
  const own = seenOf(of);
  const { causal, window, ...rest } = of;
  const all: [string, Seen][] = [];
  const leftOut = (words: string, seen: Seen) =>
    all.push([`mask-ignored: ${words} is left out ${cause}`, seen]);
  if (causal) leftOut('the causal mask', seenOf({ ...of, causal: false }));
  if (window !== null) leftOut('the window', seenOf({ ...of, window: null }));
  if (causal && window !== null)
    leftOut('causal mask and window', seenOf({ ...rest, causal: false, window: null }));
  for (const [name, words] of [
    ['mask', 'the mask'],
    ['segments', 'the segments'],
    ['blockMask', 'the block mask'],
    ['prefix', 'the prefix'],
    ['sequences', 'the borders of packed sequences'],
  ] as const)
    if (of[name]) leftOut(words, { ...own, [name]: false });
  const { left, right } = own;
  if ((left === Infinity && right === Infinity) || of.prefix) return new Map(all);
  all.push([
    `mask-top-left: masks are aligned to the first query and key ${cause}, which aligns them to the last`,
    { ...own, isTopLeft: true },
  ]);
  for (const [by, id, words] of [
    [1, 'one', 'one key more'],
    [-1, 'one', 'one key less'],
    [2, 'two', 'two keys more'],
    [-2, 'two', 'two keys fewer'],
  ] as const)
    for (const side of ['right', 'left'] as const)
      if (own[side] < Infinity)
        all.push([
          `mask-off-by-${id}: queries see ${words} on the ${side} ${cause}`,
          { ...own, [side]: own[side] + by },
        ]);
  return new Map(all);
}

/** The pairs that ranges of keys are of, and those that a pass is to see. */
function pairsOf(ranges: Mask['ranges'], seen: Seen) {
  const [found, wanted]: string[][] = [[], []];
  for (let head = 0; head < heads; head++)
    for (let query = 0; query < queries; query++) {
      const own = ranges(head, query);
      for (const { begin, end } of own)
        for (let key = begin; key < end; key++) found.push([head, query, key].join());
      for (let key = 0; key < keys; key++)
        if (sees(seen, head, query, key)) wanted.push([head, query, key].join());
    }
  return { found, wanted };
}

describe('faults of masks', () => {
  it('are all that a problem can have, and see what they say', () => {
    fc.assert(
      fc.property(drawns, (drawn) => {
        const hasTensors = !drawn.sequences;
        const of = {
          ...drawn,
          mask: drawn.mask && hasTensors,
          segments: drawn.segments && hasTensors,
          blockMask: drawn.blockMask && hasTensors,
        };
        const problem = problemOf(of);
        const wanted = wantedFaults(of);
        const faults = [...maskFaults(problem, problemShape(problem))];
        const names = faults.map(({ id, sentence }) => `${id}: ${sentence}`);
        expect(names).toEqual([...wanted.keys()]);
        faults.forEach(({ change }, i) => {
          expect(Object.keys(change)).toEqual(['ranges']);
          const pairs = pairsOf(change.ranges!, wanted.get(names[i])!);
          expect(pairs.found, names[i]).toEqual(pairs.wanted);
        });
      }),
      { numRuns: 60 },
    );
  });
});
