import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  attentionOracle,
  levels,
  WorkingMemories,
  type AttentionReference,
} from '../../../oracles/index.js';
import { KernelBound } from '../../../src/audit/bounds/index.js';
import { ErrorPool, NearlyEqual } from '../../../src/audit/structure/error-pool.js';
import { testKeyTiles } from '../../../src/audit/structure/key-tile-test.js';
import {
  KeyTileStatistics,
  type RowErrors,
} from '../../../src/audit/structure/key-tile-statistics.js';
import { formats, smallestNormal, ulp } from '../../../src/formats/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import { filledProblem, pseudorandom } from '../../setup/problems.js';
import { handMadeReference } from '../hand-made.js';

const [rows, vDim, tiles] = [6, 4, 3] as const;
const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);
const groups = new NearlyEqual(10, -40, 20);
const weightGroups = new NearlyEqual(3, -40, 0);

function near(actual: number, wanted: number, what = ''): void {
  if (actual === wanted) return;
  if (!(Math.abs(actual - wanted) <= 1e-11 * Math.max(1e-3, Math.abs(wanted))))
    expect(actual, what).toBe(wanted);
}

/** Rows of made-up numbers, their bounds, and the directions of tiles; some rows are such that nothing is said of them. */
function made(seed: number, leftOut: readonly (readonly [row: number, why: number])[]) {
  const random = pseudorandom(seed);
  const numbers = (one = random) => Float64Array.from({ length: rows * vDim }, one);
  const exact = numbers(() => random() * 2 ** Math.floor(-9 * Math.abs(random())));
  // Some are subnormal in fp16.
  const subnormal = exact.map((x, i) => (i % 3 === 0 ? x * 2 ** -24 : x));
  const of = (row: number) => leftOut.filter(([one]) => one === row).map(([, why]) => why);
  const plain = handMadeReference({ queries: rows, vDim, out: (i) => subnormal[i] });
  const out = plain.quantities.out;
  const reference: AttentionReference = {
    ...plain,
    level: plain.level.map((level, row) =>
      of(row).includes(0) ? levels.indexOf('special') : level,
    ),
    quantities: {
      ...plain.quantities,
      out: { ...out, magnitude: out.values.map((x) => Math.abs(x) + Math.abs(random())) },
    },
  };
  const bounds = Array.from({ length: rows }, (_, row) => ({
    isCoarse: of(row).includes(1),
    keys: of(row).includes(2) ? 0 : 1 + Math.floor(50 * Math.abs(random())),
    typicalWeight: Math.abs(random()),
    addition: Math.abs(random()) / 8,
    normalisation: Math.abs(random()),
    floor: Math.abs(random()),
    declared: {
      ofWeights: Math.abs(random()),
      ofMagnitude: Math.abs(random()),
      halves: Math.abs(random()),
    },
  }));
  const given = reference.quantities.out.values.map((x, i) =>
    of(Math.floor(i / vDim)).includes(3) && i % vDim === 1 ? NaN : x + random() / 16,
  );
  /** A row whose direction is nothing, or too much, of one tile. */
  const changed = (i: number) => {
    const why = of(Math.floor(i / vDim));
    return why.includes(4) ? 0 : why.includes(5) && i % vDim === 2 ? 2 ** 600 : null;
  };
  const directions = Array.from({ length: tiles }, (_, t) =>
    numbers().map((x, i) => (t === 1 ? (changed(i) ?? x) : x)),
  );
  const errors: RowErrors = {
    reference,
    out: given,
    outputFormat: 'fp16',
    bound: { row: (row: number) => bounds[row] } as unknown as KernelBound,
    weightGroups,
    groups,
  };
  const ofWeights = [0, 1].map(() =>
    Array.from({ length: 5 }, () => ({
      group: Math.floor(4 * Math.abs(random())),
      x: Array.from({ length: tiles }, random),
    })),
  );
  return { errors, bounds, directions, ofWeights };
}
type Made = ReturnType<typeof made>;

/** Errors of one tile, in groups that are alike: at most by chance, at their worst together, or each at its worst. */
function tolerated(errors: readonly (readonly [group: number, x: number])[], z: number): number {
  const byGroup = new Map<number, number[]>();
  for (const [group, x] of errors) byGroup.set(group, [...(byGroup.get(group) ?? []), x]);
  const all = [...byGroup.values()];
  const squares = (xs: readonly number[]) => sum(xs.map((x) => x * x));
  return Math.min(
    z * Math.sqrt(sum(all.map((xs) => Math.max(sum(xs) ** 2, squares(xs)))) / 3),
    sum(all.map((xs) => Math.abs(sum(xs)))) + z * Math.sqrt(sum(all.map(squares)) / 3),
    sum(errors.map(([, x]) => Math.abs(x))),
  );
}

function defined({ errors, bounds, directions, ofWeights }: Made, t: number, z: number) {
  const { reference, out } = errors;
  const { values, magnitude } = reference.quantities.out;
  const smallest = smallestNormal(formats.fp16);
  const used = Array.from({ length: rows }, (_, row) => row).filter((row) => {
    const x = directions[t].subarray(row * vDim, (row + 1) * vDim);
    const { isCoarse, keys } = bounds[row];
    const isSpecial = levels[reference.level[row]] === 'special';
    const hasError = out.subarray(row * vDim, (row + 1) * vDim).every(Number.isFinite);
    return (
      !isSpecial &&
      !isCoarse &&
      keys > 0 &&
      hasError &&
      x.some((one) => one !== 0) &&
      x.every((one) => one < 2 ** 500)
    );
  });
  const elements = used.flatMap((row) =>
    Array.from({ length: vDim }, (_, c) => {
      const at = row * vDim + c;
      const [x, exact] = [directions[t][at], values[at]];
      const half = ulp(formats.fp16, Math.abs(exact)) / 2;
      // Below the normal numbers the distance is one, as above them.
      const size = Math.abs(exact) < smallest ? Math.abs(exact) + smallest : Math.abs(exact);
      return { row, at, x, exact, half, group: groups.group(size) };
    }),
  );
  const systematic = used.map((row) => {
    const { typicalWeight, normalisation, floor, declared } = bounds[row];
    const own = elements.filter((one) => one.row === row);
    return (
      (typicalWeight + normalisation) * sum(own.map(({ x, exact }) => Math.abs(x * exact))) +
      floor * Math.sqrt(vDim * sum(own.map(({ x }) => x * x))) +
      (2 * declared.ofWeights + declared.ofMagnitude) *
        sum(own.map(({ x, at }) => magnitude[at] * Math.abs(x))) +
      declared.halves * sum(own.map(({ x, half }) => half * Math.abs(x)))
    );
  });
  const ofSums = used.map((row) => {
    const own = elements.filter((one) => one.row === row);
    const size = sum(own.map(({ x, at }) => magnitude[at] * Math.abs(x)));
    return bounds[row].keys * (bounds[row].addition * size) ** 2;
  });
  return {
    signed: sum(elements.map(({ x, at, exact }) => (out[at] - exact) * x)),
    norm: sum(elements.map(({ x }) => x * x)),
    tolerance:
      tolerated(
        ofWeights.flatMap((some) => some.map(({ group, x }) => [group, x[t]] as const)),
        z,
      ) +
      tolerated(
        elements.map(({ group, half, exact, x }) => [group, Math.sign(exact) * half * x]),
        z,
      ) +
      z * Math.sqrt(sum(ofSums)) +
      sum(systematic),
  };
}

describe('the sums of a tile of keys', () => {
  it('are those of all rows that anything is known of, in whatever order they come', () => {
    const leftOut = fc.array(fc.tuple(fc.nat(rows - 1), fc.nat(5)), { maxLength: 3 });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2 ** 20 }),
        leftOut,
        fc.nat(rows),
        fc.constantFrom(0, 1, 7),
        (seed, out, cut, z) => {
          const case_ = made(seed, out);
          const [all, other] = [0, 1].map(() => new KeyTileStatistics(tiles, weightGroups));
          const collect = (to: KeyTileStatistics, from: number, end: number, some: number) => {
            for (let row = from; row < end; row++) to.addRow(case_.errors, row, case_.directions);
            const pool = new ErrorPool(tiles);
            for (const { group, x } of case_.ofWeights[some])
              pool.addAll(group, Float64Array.from(x));
            to.addWeights(pool.state());
          };
          collect(all, 1, 4, 0);
          all.clear();
          collect(all, 0, cut, 0);
          collect(other, cut, rows, 1);
          all.merge(other);
          for (let t = 0; t < tiles; t++) {
            const wanted = defined(case_, t, z);
            near(all.signed[t], wanted.signed, 'signed');
            near(all.norm[t], wanted.norm, 'norm');
            near(all.tolerance(t, z), wanted.tolerance, 'tolerance');
          }
        },
      ),
    );
  });
});

describe('a group of tiles of keys', () => {
  /** Two sequences of one head would be two blocks; here the queries of one head are. */
  const sizes = { queries: 6, keys: 150, dim: 3 } as const;
  const [tileKeys, firstTile] = [70, 1] as const;

  it('has the worst block and the whole head by how much of a tile is missing', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2 ** 20 }),
        fc.boolean(),
        fc.nat(1),
        (seed, causal, gone) => {
          const random = pseudorandom(seed);
          const blocks = [0, 1].map((block) => {
            const problem = filledProblem(sizes, random, { causal, scale: 1 });
            const reference = attentionOracle(problem);
            const values = decodeTensor(problem.v);
            const bound = new KernelBound(problem, reference, 'fp32');
            // Block 0 leaves out a half of a tile that is tested: keys 70 to 139, which the walk meets in two, or the last.
            const directions = [0, 1].map((t) =>
              Float64Array.from({ length: sizes.queries * 3 }, (_, at) => {
                const row = Math.floor(at / 3);
                const [q, k] = [decodeTensor(problem.q), decodeTensor(problem.k)];
                const w = Array.from({ length: 150 }, (_, j) =>
                  causal && j > row + 144
                    ? 0
                    : Math.exp(sum([0, 1, 2].map((c) => q[row * 3 + c] * k[j * 3 + c]))),
                );
                const tile = w.slice((t + 1) * 70, (t + 2) * 70);
                const own = reference.quantities.out.values[at];
                return (
                  sum(tile.map((x, j) => x * (own - values[((t + 1) * 70 + j) * 3 + (at % 3)]))) /
                  sum(w)
                );
              }),
            );
            const out = reference.quantities.out.values.map(
              (x, at) => x + (block === 0 ? 0.5 * directions[gone][at] : 0),
            );
            const errors: RowErrors = {
              reference,
              out,
              outputFormat: 'fp32',
              bound,
              weightGroups,
              groups,
            };
            return { problem, errors, directions, format: 'fp64' as const };
          });
          const places = [0, 1].map((i) => ({
            firstRow: 128 * i,
            rows: sizes.queries,
            firstKey: 0,
            keys: 150,
          }));
          const { worst: found } = testKeyTiles(
            { head: 5, firstTile, tiles: 2, tileKeys, blocks: places },
            blocks,
            { ofBlock: 9, ofHead: 7, queries: 134 },
            new WorkingMemories(),
          );
          const ofTile = found.find(({ scope }) => scope === 'tile')!;
          const ofHead = found.find(({ scope }) => scope === 'head')!;
          for (const [one, some] of [
            [ofTile, blocks.slice(0, 1)],
            [ofHead, blocks],
          ] as const) {
            // What is missing may show in the other tile as well.
            const t = one.firstKey === 70 ? 0 : 1;
            expect(one).toMatchObject({ test: 'key-tile', head: 5, firstRow: 0 });
            expect([one.firstKey, one.keys]).toEqual(t === 0 ? [70, 70] : [140, 10]);
            expect(one.rows).toBe(one === ofTile ? 6 : 134);
            const norm = sum(
              some.map(({ directions }) => sum([...directions[t]].map((x) => x * x))),
            );
            const [first] = blocks;
            const signed = sum(
              [...first.directions[t]].map((x, at) => x * first.directions[gone][at]),
            );
            expect(one.statistic / (0.5 * (signed / norm))).toBeCloseTo(1, 8);
          }
          expect(ofTile.threshold).toBeGreaterThan(0);
          expect(ofTile.threshold).toBeLessThan(0.5);
        },
      ),
      { numRuns: 10 },
    );
  });
});
