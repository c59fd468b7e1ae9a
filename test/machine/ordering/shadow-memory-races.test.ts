import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Conflict, Region } from '../../../src/machine/ordering/index.js';
import { expectedConflicts, missingPath, runSteps, type Run, type Step } from './event-graph.js';
import { scaled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const words = 24;
const small = fc.nat(5);
const region: fc.Arbitrary<Region> = fc.oneof(
  fc
    .tuple(fc.nat(words - 1), fc.integer({ min: 0, max: words }))
    .map(([start, count]) => ({ start, count: Math.min(count, words - start) })),
  // Columns of a memory with rows of 6 words.
  fc
    .tuple(fc.nat(3), fc.nat(1), fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 3 }))
    .map(([column, row, count, rows]) => ({ start: 6 * row + column, count, stride: 6, rows })),
);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('access' as const),
      agent: small,
      writes: fc.boolean(),
      region,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom('release', 'acquire'),
      agent: small,
      channel: fc.nat(1),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('fence' as const), agent: small }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('issue' as const),
      agent: small,
      writes: fc.boolean(),
      region,
      after: fc.nat(12),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom('perform', 'finish'),
      agent: small,
      operation: small,
    }),
  },
);
const steps = fc.array(step, { maxLength: 60, size: 'max' });
const sizes = { agents: 3, channels: 2, words };

/** Pairs of accesses to a word of which one writes and that no path connects, by word. */
function wordsWithUnorderedPairs(run: Run): Set<number> {
  const found = new Set<number>();
  run.accesses.forEach((later, index) => {
    for (const earlier of run.accesses.slice(0, index))
      if ((earlier.isWrite || later.isWrite) && missingPath(run, earlier, later) !== null)
        for (const word of later.words) if (earlier.words.includes(word)) found.add(word);
  });
  return found;
}

describe('the shadow of a memory, against paths in the graph of a random run', () => {
  inTurn('reports the conflicts with the last write and the reads since, with their words', () => {
    const seen = new Map<string, number>();
    fc.assert(
      fc.property(steps, fc.boolean(), (someSteps, proxies) => {
        const run = runSteps(someSteps, { ...sizes, proxies });
        const expected = expectedConflicts(run);
        run.accesses.forEach(({ conflicts, stamp }, index) => {
          const byEarlier = (a: Pick<Conflict, 'kind' | 'earlier'>, b: typeof a) =>
            (a.earlier?.step ?? -1) - (b.earlier?.step ?? -1) || a.kind.localeCompare(b.kind);
          expect([...conflicts].sort(byEarlier)).toEqual(
            expected[index].sort(byEarlier).map(({ words: all, ...conflict }) => ({
              ...conflict,
              later: stamp,
              firstWord: all[0],
              words: all.length,
            })),
          );
          for (const { kind, missing } of conflicts) {
            const key = `${kind} ${missing}`;
            seen.set(key, (seen.get(key) ?? 0) + 1);
          }
        });
      }),
      { numRuns: 600 },
    );
    // The runs are worth something only if they show everything.
    expect([...seen.keys()].sort()).toEqual([
      'overwritten-unread null',
      'read-write order',
      'read-write proxy-fence',
      'uninitialised null',
      'write-read order',
      'write-read proxy-fence',
      'write-write order',
      'write-write proxy-fence',
    ]);
  });

  it('reports a race at a word, through one proxy, exactly if any two of its accesses race', () => {
    let racy = 0;
    fc.assert(
      fc.property(steps, (someSteps) => {
        const run = runSteps(someSteps, { ...sizes, proxies: false });
        const reported = new Set<number>();
        const expected = expectedConflicts(run);
        run.accesses.forEach(({ conflicts }, index) => {
          for (const { kind, earlier, missing } of conflicts)
            if (missing !== null)
              for (const word of expected[index].find(
                (other) => other.kind === kind && other.earlier === earlier,
              )!.words)
                reported.add(word);
        });
        racy += reported.size > 0 ? 1 : 0;
        expect(reported).toEqual(wordsWithUnorderedPairs(run));
      }),
      { numRuns: 300 },
    );
    expect(racy).toBeGreaterThan(30);
  });
});

describe('chains', () => {
  it('hold operations that happen one after the other', () => {
    fc.assert(
      fc.property(steps, (someSteps) => {
        const { operations, reaches } = runSteps(someSteps, { ...sizes, proxies: true });
        operations.forEach(({ chain, node }, index) => {
          for (const other of operations.slice(index + 1))
            if (other.chain === chain) expect(reaches(node, other.node)).toBe(true);
        });
      }),
      { numRuns: scaled(80) },
    );
  });

  it('are as few as first fit allows: an operation opens one only if no chain has ended before it', () => {
    fc.assert(
      fc.property(steps, (someSteps) => {
        const { operations, reaches } = runSteps(someSteps, { ...sizes, proxies: true });
        const last = new Map<number, number>();
        for (const { chain, node } of operations) {
          if (!last.has(chain))
            for (const end of last.values()) expect(reaches(end, node)).toBe(false);
          last.set(chain, node);
        }
      }),
      { numRuns: 300 },
    );
  });
});
