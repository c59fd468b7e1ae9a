import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import { auditAccuracy, judgeOutputs, type KernelOutputs } from '../../src/audit/index.js';
import { tilesOfMaxima } from '../../src/audit/diagnosis/rows-by-maximum.js';
import { RowReader } from '../../src/audit/diagnosis/row-reader.js';
import { describePlace } from '../../src/audit/rows/index.js';
import { problemShape, type Problem } from '../../src/problem/index.js';
import { sampled, testSeed } from '../setup/effort.js';
import { filledProblem, pseudorandom, sequencesOf, type ProblemFrame } from '../setup/problems.js';
import { decode, encode } from './damage.js';
import { runSoundKernel } from './host-mistakes.js';
import { normalNumbers } from './planted-bugs.js';
import { runPlantedKernel, type PlantedKernel } from './planted-kernel.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

function drawn(frame: Partial<ProblemFrame>, changes: Partial<Problem> = {}): Problem {
  const sizes = { heads: 2, queries: 128, keys: 256, dim: 32, ...frame };
  return filledProblem(sizes, normalNumbers(testSeed), changes);
}

const problems: Readonly<Record<string, () => Problem>> = {
  plain: () => drawn({}),
  'grouped fp16 of two batches': () =>
    drawn({ batch: 2, heads: 4, kvHeads: 2, queries: 64, format: 'fp16' }),
  'a window': () => drawn({ queries: 200 }, { window: { left: 160, right: 160 } }),
  softcapped: () => drawn({ heads: 3 }, { softcap: 3 }),
};

/** What is said of an output, and where. */
function said(problem: Problem, outputs: KernelOutputs) {
  const accuracy = auditAccuracy(problem.q.format === 'fp16' ? 'fp16' : 'bf16');
  const reference = attentionOracle(problem, { accuracy });
  const { pass, diagnosis } = judgeOutputs(problem, outputs, { reference }).verdict;
  const place = diagnosis?.place;
  return {
    pass,
    id: diagnosis?.id,
    maxima: place?.maxima ?? null,
    words: place === null || place === undefined ? '' : describePlace(place),
  };
}

/** The key of the largest score of each row, counted within its sequence. */
function keysOfMaxima(problem: Problem): number[] {
  const shape = problemShape(problem);
  const reader = new RowReader(problem, shape);
  return Array.from({ length: shape.batch * shape.heads * shape.queries }, (_, row) => {
    const scores = reader.scores(row);
    return scores.indexOf(Math.max(...scores)) - reader.place(row).firstKey;
  });
}

/** An output in which some rows are too large. */
function scaledIn({ out, lse }: KernelOutputs, dim: number, isMeant: (row: number) => boolean) {
  const values = decode(out).map((x, i) => (isMeant(Math.floor(i / dim)) ? 1.1 * x : x));
  return { out: encode(values, out.format, out.shape), lse };
}

const forgets = (visit: (place: { visit: number; visits: number }) => boolean) =>
  ({
    order: 'first to last',
    rescale: (factor, _, place) => ({ output: visit(place) ? 1 : factor, sum: factor }),
  }) as const satisfies Partial<PlantedKernel>;

describe('rows that err where their largest score lies in some keys', () => {
  it.each(sampled(Object.entries(problems), 1))(
    'of %s: O is not rescaled where the maximum moves in the last tile',
    (_, make) => {
      const problem = make();
      const kernel = forgets(({ visit, visits }) => visit === visits - 1);
      const { pass, words, maxima } = said(problem, runPlantedKernel(problem, kernel));
      expect(pass).toBe(false);
      expect(maxima).toEqual({ ranges: [{ first: 192, last: 255 }], of: 256, each: null });
      expect(words).toMatch(/\d+ of \d+ rows, all with their maximum in keys 192 to 255$/);
    },
  );

  inTurn.each(Object.entries(problems))(
    'of %s: rows with their maximum in one tile are too large',
    (_, make) => {
      const problem = make();
      const keys = keysOfMaxima(problem);
      const isThere = (row: number) => keys[row] >= 64 && keys[row] < 128;
      const { words } = said(problem, scaledIn(runPlantedKernel(problem), 32, isThere));
      const count = keys.filter((_key, row) => isThere(row)).length;
      expect(words).toBe(
        `${count} of ${keys.length} rows, all with their maximum in keys 64 to 127`,
      );
    },
  );

  inTurn('of packed sequences are counted within theirs', () => {
    const sequences = sequencesOf([
      [70, 120],
      [90, 200],
    ]);
    const problem = drawn({ queries: 160, keys: 320 }, { sequences });
    const keys = keysOfMaxima(problem);
    const isThere = (row: number) => keys[row] >= 32 && keys[row] < 64;
    const { words } = said(problem, scaledIn(runSoundKernel(problem), 32, isThere));
    expect(words).toContain('all with their maximum in keys 32 to 63');
  });

  inTurn(
    'have another rule where rows or heads are one, or none where they are drawn by chance',
    () => {
      const problem = drawn({});
      const outputs = runPlantedKernel(problem);
      const random = pseudorandom(testSeed + 5);
      const keys = keysOfMaxima(problem);
      const drawnBy = keys.map(() => random() < 0.2);
      for (const isMeant of [
        (row: number) => row % 128 < 16,
        (row: number) => row < 128,
        (row: number) => drawnBy[row],
        // Of every tile some rows, most of one.
        (row: number) => (keys[row] >= 64 && keys[row] < 128) || row % 11 === 3,
      ]) {
        const { pass, maxima } = said(problem, scaledIn(outputs, 32, isMeant));
        expect(pass).toBe(false);
        expect(maxima).toBeNull();
      }
      expect(said(problem, outputs).pass).toBe(true);
    },
  );
});

describe('tiles of maxima', () => {
  const random = pseudorandom(testSeed + 9);
  const all = Array.from({ length: 600 }, () => Math.floor(random() * 1000));
  const tiles = (isMeant: (key: number, i: number) => boolean) =>
    tilesOfMaxima(
      all.map((key, i) => ({ key, isMeant: isMeant(key, i) })),
      1000,
    );
  const ranges = (isMeant: Parameters<typeof tiles>[0]) => tiles(isMeant)?.ranges ?? null;

  it('are the largest that fit', () => {
    expect(ranges((key) => key >= 256 && key < 320)).toEqual([{ first: 256, last: 319 }]);
    expect(ranges((key) => key >= 256 && key < 512)).toEqual([{ first: 256, last: 511 }]);
    expect(ranges((key) => key >= 896)).toEqual([{ first: 896, last: 999 }]);
  });

  it('are none where a meant row lies elsewhere, or too many of the tile are not meant', () => {
    const first = all.findIndex((key) => key < 64);
    expect(ranges((key, i) => (key >= 896 && key < 960) || i === first)).toBeNull();
    const ofTile = all.flatMap((key, i) => (key >= 256 && key < 512 ? [i] : []));
    const [left, few] = [
      new Set(ofTile.filter((_, i) => i % 4 === 0)),
      new Set(ofTile.filter((_, i) => i % 16 === 3)),
    ];
    expect(ranges((key, i) => key >= 256 && key < 512 && !left.has(i))).toBeNull();
    expect(ranges((key, i) => key >= 256 && key < 512 && !few.has(i))).toEqual([
      { first: 256, last: 511 },
    ]);
  });

  it('are none of most rows, of few, or of all keys', () => {
    expect(ranges((key) => key < 640)).toBeNull();
    expect(ranges(() => true)).toBeNull();
    const some = new Set(all.flatMap((key, i) => (key < 256 ? [i] : [])).slice(0, 7));
    expect(ranges((_, i) => some.has(i))).toBeNull();
    expect(tilesOfMaxima([], 1000)).toBeNull();
    const without = all.map((key, i) => ({
      key: i === 5 ? -1 : key,
      isMeant: key < 256 || i === 5,
    }));
    expect(tilesOfMaxima(without, 1000)).toBeNull();
  });
});
