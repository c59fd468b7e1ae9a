import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { RequestError } from '../../src/request-error.js';
import { watchAllocations } from './allocation-watch.js';
import { fuzz, type FuzzOutcome } from './fuzz-campaign.js';
import { fuzzTargets, type FuzzTarget } from './fuzz-targets.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const folder = mkdtempSync(join(tmpdir(), 'flashproof-fuzz-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function outcomes(
  seed: number,
  from: number,
  to: number,
  targets: readonly FuzzTarget[] = fuzzTargets,
): Promise<FuzzOutcome[]> {
  const all: FuzzOutcome[] = [];
  await fuzz({ seed, from, to, folder, targets }, (outcome) => all.push(outcome));
  return all;
}

describe('a hostile file is read or refused by one line, soon, and in little memory', () => {
  inTurn.each(fuzzTargets.map((target) => [target.name, target] as const))(
    '%s',
    async (_, target) => {
      const all = await outcomes(2026, 0, 40, [target]);
      expect(all.flatMap(({ finding }) => finding ?? [])).toEqual([]);
      // Both happen, or the inputs show nothing.
      expect(all.some(({ isRefused }) => isRefused)).toBe(true);
      expect(all.some(({ isRefused }) => !isRefused)).toBe(true);
    },
  );

  it('whatever the seed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), fc.nat(), async (seed, index) => {
        const [outcome] = await outcomes(seed, index, index + 1);
        expect(outcome!.finding).toBeNull();
      }),
      { numRuns: 40 },
    );
  });

  it('and the same seed makes the same file again', async () => {
    const shown = (all: FuzzOutcome[]) =>
      all.map(({ target, isRefused, allocated }) => [target, isRefused, allocated]);
    expect(shown(await outcomes(5, 10, 40))).toEqual(shown(await outcomes(5, 10, 40)));
  });
});

/** A reader that does a thing that none may do. */
function faulty(exercise: () => void): FuzzTarget {
  return {
    name: 'faulty',
    weight: 1,
    make: () => ({ bytes: 8, mostAllocated: 1000, exercise: async () => exercise() }),
  };
}

describe('the campaign finds a reader that', () => {
  const faults: readonly (readonly [what: string, exercise: () => void, finding: RegExp])[] = [
    ['throws any other error', () => [].at(-1)!['x'], /not refused by a RequestError/],
    [
      'breaks its line',
      () => {
        throw new RequestError('two\nlines');
      },
      /unfit message/,
    ],
    [
      'repeats all of the file',
      () => {
        throw new RequestError('x'.repeat(1e5));
      },
      /message of 100000 characters/,
    ],
    ['asks for more than there is', () => void new Uint8Array(1001), /asked for 1001 bytes/],
  ];
  it.each(faults)('%s', async (_, exercise, finding) => {
    const [outcome] = await outcomes(1, 0, 1, [faulty(exercise)]);
    expect(outcome!.finding!.what).toMatch(finding);
  });

  it('sees the largest of the arrays, and puts their classes back', () => {
    const own = globalThis.Float64Array;
    const watch = watchAllocations();
    expect(new Float64Array(100)).toBeInstanceOf(own);
    expect(new ArrayBuffer(8).byteLength).toBe(8);
    expect(watch.largest()).toBe(800);
    expect(watch.largest()).toBe(0);
    watch.end();
    expect(globalThis.Float64Array).toBe(own);
  });
});
