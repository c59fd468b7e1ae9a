import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WorkingMemories } from '../../oracles/index.js';
import { randomValues } from '../../properties/problems/values.js';
import { NearlyEqual } from '../../src/audit/structure/error-pool.js';
import {
  withRowMemory,
  type OtherFactor,
  type RowRules,
  type RowSums,
} from '../../src/audit/structure/row-memory.js';
import { smoothPlaces } from '../../src/audit/structure/row-tolerance.js';
import { testSeed } from '../setup/effort.js';

/** A key of a row: its weight, what its value is multiplied by, and the value's product with each direction. */
interface Key {
  readonly weight: number;
  readonly applied: number;
  readonly projections: readonly number[];
}

/** What a row is relative to, and its products of O with each direction. */
interface Row {
  readonly toLargest: number;
  readonly exponents: readonly number[];
  readonly own: readonly number[];
}

const instruments = [0, 1, 2, 3];
const lengths = [1, 3, 64, 65, 200, 700];

function rules(groups: NearlyEqual, keys: number, others: Partial<RowRules> = {}): RowRules {
  return {
    keys,
    groups,
    smallest: 2 ** -14,
    mostLost: 2 ** -26,
    roundings: 2,
    places: 128,
    roundingErrors: Float64Array.from({ length: 128 }, (_, i) => Math.sin(i) / 256),
    countsEqual: true,
    factors: [
      { family: 1, shift: 0.25 },
      { family: 2, shift: 0 },
    ],
    ...others,
  };
}

/** Sums of one row of a memory, whose tiles have 64 keys, and Σ w·X·v by instrument, family and place. */
function collected(keys: readonly Key[], row: Row, ofProblem: RowRules, local: number) {
  return withRowMemory(new WorkingMemories(), ofProblem, (memory) => {
    memory.begin(local, row.toLargest, row.exponents);
    memory.own(local).set(row.own);
    const isUsed = Array.from({ length: 64 }, (_, i) => (i === local ? 1 : 0));
    for (let first = 0; first < keys.length; first += 64) {
      const ofTile = keys.slice(first, first + 64);
      ofTile.forEach(({ weight, applied, projections }, j) =>
        [weight, applied, ...projections].forEach((x, b) => (memory.tile[b][64 * local + j] = x)),
      );
      if (memory.keep(ofTile.length)) memory.addKept(isUsed);
    }
    memory.addKept(isUsed);
    const phases = new Float64Array(4 * 3 * ofProblem.places);
    memory.takePhases(phases);
    return { sums: copied(memory.sums(local)), phases };
  });
}

/** The memory is another's after its use. */
function copied(sums: RowSums) {
  const { groups, sums: ofGroups, squares, absolute } = sums.view();
  const arrays = ['moments', 'products', 'lost', 'last', 'first', 'otherwise', 'mass'] as const;
  return {
    ...Object.fromEntries(
      [...arrays, ...(['smooth', 'squares'] as const)].map((name) => [name, [...sums[name]]]),
    ),
    numbers: [sums.applied, sums.appliedSquares, sums.weightSquares, sums.drift, sums.variance],
    pooled: instruments.map((d) => [
      sums.absolute(d),
      sums.coherent(d),
      sums.independent(d),
      sums.squared(d),
      sums.difference(d),
    ]),
    absolute: [...absolute],
    groups: [...groups]
      .map((group, i) => ({
        group,
        sums: [...ofGroups.subarray(5 * i, 5 * i + 5)],
        squares: [...squares.subarray(5 * i, 5 * i + 5)],
      }))
      .sort((a, b) => a.group - b.group),
  };
}

/** What is within 2^-36 of a whole number is one. */
const fraction = (y: number) => (Math.abs(y - Math.round(y)) < 2 ** -36 ? 0 : y - Math.floor(y));
const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);

/** The same by definition. */
function defined(all: readonly Key[], row: Row, ofProblem: RowRules) {
  const { groups, places, roundingErrors, factors, smallest, mostLost, roundings } = ofProblem;
  const keys = all
    .filter(({ weight }) => weight !== 0)
    .map((key) => {
      const parts = row.exponents.map((e) => fraction(Math.log2(key.weight) + e));
      const group = (groups as NearlyEqual).group(key.weight * row.toLargest);
      return { ...key, parts, group, c: key.projections.map((x) => x * key.applied) };
    });
  type Met = (typeof keys)[number];
  const total = (of: (key: Met) => number, which: (key: Met) => boolean = () => true) =>
    sum(keys.filter(which).map(of));
  const each = (of: (key: Met, d: number) => number) =>
    instruments.map((d) => total((key) => of(key, d)));
  const errorAt = (part: number) => roundingErrors?.[Math.floor(part * places)] ?? 0;
  const coarse = (part: number) => Math.floor(part * smoothPlaces);
  const otherwise = ({ family, shift }: OtherFactor) =>
    each(({ weight, c }, d) => {
      const exponent = Math.log2(weight) + row.exponents[family] + shift;
      return c[d] * errorAt(fraction(exponent));
    });
  const numbers = [...new Set(keys.map(({ group }) => group))].sort((a, b) => a - b);
  const pool = numbers.map((group) => {
    const ofGroup = keys.filter((key) => key.group === group);
    const channels = ofGroup.map(({ c, weight }) => [...c, weight]);
    const over = (of: (x: number) => number) =>
      [0, 1, 2, 3, 4].map((channel) => sum(channels.map((x) => of(x[channel]))));
    return { group, sums: over((x) => x), squares: over((x) => x * x) };
  });
  const counts = new Map<number, number>();
  for (const { weight } of keys) {
    const cell = Math.round(weight * 2 ** 25);
    counts.set(cell, (counts.get(cell) ?? 0) + 1);
  }
  const alike = ofProblem.countsEqual ? [...counts.values()] : [];
  const inPlaces = (count: number, of: (place: number) => number) =>
    Array.from({ length: count }, (_, place) => of(place));
  return {
    sums: {
      moments: each(({ c }, d) => c[d] ** 2),
      products: each(({ c, weight }, d) => c[d] * weight),
      lost: each(({ weight, applied, projections }, d) =>
        weight < smallest ? roundings * Math.min(applied, mostLost) * Math.abs(projections[d]) : 0,
      ),
      last: each(({ c, parts }, d) => (parts[0] === 0 ? 0 : c[d] * errorAt(parts[0]))),
      first: each(({ c, parts }, d) => c[d] * errorAt(parts[1])),
      otherwise: [...factors.flatMap(otherwise), ...Array<number>(24).fill(0)].slice(0, 24),
      mass: [0, 1, 2].flatMap((family) =>
        inPlaces(smoothPlaces, (place) =>
          total(
            ({ weight }) => weight,
            ({ parts }) => coarse(parts[family]) === place,
          ),
        ),
      ),
      smooth: instruments.flatMap((d) =>
        inPlaces(smoothPlaces, (place) =>
          total(
            ({ c, weight }) => c[d] - row.own[d] * weight,
            ({ parts }) => coarse(parts[0]) === place,
          ),
        ),
      ),
      squares: instruments.flatMap((d) =>
        inPlaces(smoothPlaces, (place) =>
          total(
            ({ c }) => c[d] ** 2,
            ({ parts }) => coarse(parts[0]) === place,
          ),
        ),
      ),
      numbers: [
        total(({ applied }) => applied),
        total(({ applied }) => applied ** 2),
        total(({ weight }) => weight ** 2),
        sum(alike.filter((count) => count >= 16)),
        sum(alike.filter((count) => count < 16).map((count) => count ** 2)),
      ],
      pooled: instruments.map((d) => [
        total(({ c }) => Math.abs(c[d])),
        sum(pool.map(({ sums }) => Math.abs(sums[d]))),
        sum(pool.map(({ squares }) => squares[d])),
        sum(pool.map(({ sums, squares }) => Math.max(sums[d] ** 2, squares[d]))),
        sum(pool.map(({ sums }) => (sums[d] - row.own[d] * sums[4]) ** 2)),
      ]),
      absolute: [...each(({ c }, d) => Math.abs(c[d])), total(({ weight }) => weight)],
      groups: pool,
    },
    phases: instruments.flatMap((d) =>
      [0, 1, 2].flatMap((family) =>
        inPlaces(places, (place) =>
          total(
            ({ c }) => c[d],
            ({ parts }) => Math.floor(parts[family] * places) === place,
          ),
        ),
      ),
    ),
  };
}

/** Numbers that are within roundings of each other, whatever holds them. */
function expectClose(actual: unknown, wanted: unknown, path = ''): void {
  if (typeof wanted === 'number') {
    const size = Math.max(Math.abs(wanted), 2 ** -20);
    expect(Math.abs((actual as number) - wanted) / size, path).toBeLessThan(2 ** -30);
    return;
  }
  const theirs = Object.entries(wanted as object);
  expect(Object.keys(actual as object).length, path).toBe(theirs.length);
  for (const [name, value] of theirs)
    expectClose((actual as Readonly<Record<string, unknown>>)[name], value, `${path}.${name}`);
}

/** Weights of a softmax, some of them 0, some alike, some tiny. */
function randomRow(seed: number, length: number): { keys: Key[]; row: Row } {
  const random = randomValues(seed);
  const spread = 12 * random.uniform();
  const scores = Array.from({ length }, () => spread * random.normal());
  const alike = random.uniform() < 0.5;
  const weights = scores.map((s, j) => Math.exp(alike && j % 3 === 0 ? scores[0] : s));
  const all = sum(weights);
  const keys = weights.map((weight) => ({
    weight: random.uniform() < 0.1 ? 0 : weight / all,
    applied: random.uniform() < 0.2 ? 0 : (1.25 * weight) / all,
    projections: instruments.map(() => random.normal()),
  }));
  const toLargest = all / Math.max(...weights);
  const exponents = [Math.log2(toLargest), 0, Math.log2(all)];
  return { keys, row: { toLargest, exponents, own: instruments.map(() => random.normal()) } };
}

describe('the sums over a row of weights', () => {
  const coarse = new NearlyEqual(3, -40, 0);
  const fine = new NearlyEqual(13, -40, 0);

  it('are what their definitions say, however many groups there are', () => {
    const ofRow = fc.record({
      seed: fc.nat(),
      length: fc.constantFrom(...lengths),
      local: fc.constantFrom(0, 17, 63),
      isFine: fc.boolean(),
      isPlain: fc.boolean(),
    });
    fc.assert(
      fc.property(ofRow, ({ seed, length, local, isFine, isPlain }) => {
        const { keys, row } = randomRow(seed, length);
        const others = { roundingErrors: null, places: 32, countsEqual: false, factors: [] };
        const ofProblem = rules(isFine ? fine : coarse, length, isPlain ? others : {});
        const wanted = defined(keys, row, ofProblem);
        // Cells of equal weights may meet by chance.
        const actual = collected(keys, row, ofProblem, local);
        const [, , , drift, variance] = wanted.sums.numbers;
        const [ofDrift, ofVariance] = actual.sums.numbers.splice(3, 2);
        wanted.sums.numbers.splice(3, 2);
        expect(ofDrift + ofVariance).toBeGreaterThanOrEqual(drift + variance);
        expect(ofDrift + ofVariance).toBeLessThanOrEqual(1.5 * (drift + variance) + 8);
        expectClose(actual, wanted);
      }),
      { seed: testSeed, numRuns: 20 },
    );
  });

  // Logarithms of one number, computed in two ways, differ by roundings of either sign.
  it.each([0, 2 ** -40, -(2 ** -40)])(
    'round no power of two times the largest: off by %d',
    (off) => {
      const weights = [0.5, 0.25, 2 ** -30, 2 ** -1000, 2 ** -1070];
      const keys = weights.map((weight) => ({
        weight,
        applied: weight,
        projections: [1, 1, 1, 1],
      }));
      const row = { toLargest: 2, exponents: [1 + off, 0, 0], own: [0, 0, 0, 0] };
      const { sums } = collected(keys, row, rules(fine, keys.length), 5);
      expect(sums).toMatchObject({ last: [0, 0, 0, 0] });
    },
  );

  it('forget what was collected before', () => {
    const memories = new WorkingMemories();
    const long = randomRow(testSeed, 700);
    const short = randomRow(testSeed + 1, 30);
    const run = ({ keys, row }: typeof long) =>
      withRowMemory(memories, rules(fine, keys.length), (memory) => {
        memory.begin(3, row.toLargest, row.exponents);
        for (const [j, { weight, applied }] of keys.slice(0, 64).entries()) {
          memory.tile[0][3 * 64 + j] = weight;
          memory.tile[1][3 * 64 + j] = applied;
        }
        memory.keep(Math.min(64, keys.length));
        memory.addKept([0, 0, 0, 1]);
        return copied(memory.sums(3));
      });
    const first = run(short);
    run(long);
    expect(run(short)).toEqual(first);
  });
});
