import { describe, expect, it } from 'vitest';
import { randomValues } from '../../properties/problems/values.js';
import {
  structureOf,
  judgeOutputs,
  type JudgedElements,
  type Judgement,
  type KernelOutputs,
  type StructureResult,
} from '../../src/audit/index.js';
import { formats, ulp } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import { decode, encode } from './damage.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

/** Queries of a head: a tile of 128 and what is left. */
const queries = 132;
const dim = 4;

/**
 * Judges the exact outputs of a problem with an error added. Inputs are bf16, so that a kernel may err
 * by some 2^-9, and outputs fp32, where 0.99 and 1.01 of that can be told from the limit.
 */
function prepare(heads: number, keys: number) {
  const random = randomValues(9_400_114);
  const tensor = (rows: number) =>
    encode(
      Float64Array.from({ length: heads * rows * dim }, () => random.normal()),
      'bf16',
      [1, heads, rows, dim],
    );
  const problem: Problem = {
    q: tensor(queries),
    k: tensor(keys),
    v: tensor(keys),
    scale: 0.5,
    causal: false,
    window: null,
    softcap: null,
  };
  const outputsOf = (out: Float64Array, lse: Float64Array): KernelOutputs => ({
    out: encode(out, 'fp32', [1, heads, queries, dim]),
    lse: encode(lse, 'fp32', [1, heads, queries]),
  });
  const rows = heads * queries;
  const zeros = outputsOf(new Float64Array(rows * dim), new Float64Array(rows));
  const exact = judgeOutputs(problem, zeros, { diagnose: false }).reference;
  const seen: JudgedElements[] = [];
  const clean = judgeOutputs(
    problem,
    outputsOf(exact.quantities.out.values, exact.quantities.lse.values),
    {
      diagnose: false,
      reference: exact,
      onElements: (judged) => seen.push(judged),
    },
  );
  const { bounds } = seen[0];
  const damaged = (
    ofElement: (element: number) => number,
    ofRow: (row: number) => number = () => 0,
  ): Judgement =>
    judgeOutputs(
      problem,
      outputsOf(
        exact.quantities.out.values.map((x, i) => x + ofElement(i)),
        exact.quantities.lse.values.map((x, row) => x + ofRow(row)),
      ),
      { diagnose: false, reference: exact, bounds },
    );
  return { problem, exact, clean, bounds, damaged };
}

/** Some queries of a head. */
interface Group {
  readonly head: number;
  readonly firstRow: number;
  readonly rows: number;
}

function isIn({ head, firstRow, rows }: Group, element: number): boolean {
  const row = Math.floor(element / dim) - head * queries;
  return row >= firstRow && row < firstRow + rows;
}

function findingsOf(judgement: Judgement, test: string): string[] {
  return judgement.verdict.findings.filter((one) => one.test === test).map((x) => x.statement);
}

/** Just within a limit the test says nothing of the place, just beyond it does, on either side. */
function expectLimit(
  test: string,
  damage: (share: number) => Judgement,
  where: RegExp,
  signs: readonly number[] = [1, -1],
): void {
  for (const sign of signs) {
    const within = findingsOf(damage(sign * 0.99), test).join();
    expect(within, `0.99 of the limit, sign ${sign}`).not.toMatch(where);
    const beyond = damage(sign * 1.01);
    expect(findingsOf(beyond, test).join(), `1.01 of the limit, sign ${sign}`).toMatch(where);
    expect(beyond.verdict.pass).toBe(false);
  }
}

const { exact, clean, bounds, damaged } = prepare(2, 40);

it('the exact outputs pass, and every test has a limit', () => {
  expect(clean.verdict.findings).toEqual([]);
  const names = structureOf(clean).map(({ test, scope }) => `${test} ${scope}`);
  for (const test of ['scale', 'bias'])
    for (const scope of ['row', 'tile', 'head']) expect(names).toContain(`${test} ${scope}`);
  expect(clean.outputs.out.spread.results.map(({ scope }) => scope)).toEqual(['tile', 'head']);
});

/** The element of some rows whose worst case is the farthest above its standard deviation. */
function roomiest(group: Group): number {
  const ratio = (i: number) => bounds.quantities.out.total[i] / bounds.quantities.out.deviation[i];
  const elements = Array.from(bounds.quantities.out.total.keys()).filter((i) => isIn(group, i));
  return elements.reduce((best, i) => (ratio(i) > ratio(best) ? i : best));
}

const someElements = [
  roomiest({ head: 0, firstRow: 0, rows: 128 }),
  roomiest({ head: 1, firstRow: 0, rows: 128 }),
  roomiest({ head: 1, firstRow: 128, rows: 4 }),
];

describe.each(someElements)('element %i', (element) => {
  const row = Math.floor(element / dim);
  const place = `at head ${Math.floor(row / queries)}, query ${row % queries}, column`;
  const one = (error: number) => damaged((i) => (i === element ? error : 0));

  inTurn('fails beyond its worst case, and not within', () => {
    const limit = bounds.quantities.out.total[element];
    const damage = (share: number) => one(share * limit);
    expectLimit('element-bound', damage, new RegExp(`^1 of .* ${place}`));
    const {
      outputs: {
        out: { elements },
      },
    } = damage(0.99);
    expect(elements.worstRatio).toBeCloseTo(0.99, 3);
    expect(elements.worst!.bound).toBe(limit);
  });

  inTurn('fails beyond what independent roundings add up to, and not within', () => {
    const limit = one(bounds.quantities.out.total[element]).outputs.out.spread.worst!.bound;
    expect(limit).toBeLessThan(bounds.quantities.out.total[element]);
    const damage = (share: number) => one(share * limit);
    expectLimit('element-spread', damage, new RegExp(`^1 of .* ${place}`));
  });
});

describe.each([0, 127, 132, 263])('the LSE of row %i', (row) => {
  inTurn('fails beyond its worst case and the rounding of the format, and not within', () => {
    const before = bounds.quantities.lse.total[row];
    const limit =
      before + ulp(formats.fp32, Math.abs(exact.quantities.lse.values[row]) + before) / 2;
    expectLimit(
      'lse-bound',
      (share) =>
        damaged(
          () => 0,
          (at) => (at === row ? share * limit : 0),
        ),
      new RegExp(`LSE of 1 of .* at head ${Math.floor(row / queries)}, query ${row % queries}$`),
    );
  });
});

const groups = [
  { scope: 'tile', head: 0, firstRow: 128, rows: 4, where: /head 0, queries 128 to 131/ },
  { scope: 'tile', head: 1, firstRow: 128, rows: 4, where: /head 1, queries 128 to 131/ },
  { scope: 'head', head: 0, firstRow: 0, rows: queries, where: /on head 0(?!,)/ },
  { scope: 'head', head: 1, firstRow: 0, rows: queries, where: /on head 1(?!,)/ },
] as const;

describe.each(groups)('the root mean square error of a $scope: $where', (group) => {
  inTurn('fails beyond its limit, and not within', () => {
    const everywhere = damaged((i) => (isIn(group, i) ? 1 : 0));
    const result = everywhere.outputs.out.spread.results.find(
      ({ scope }) => scope === group.scope,
    )!;
    expect(result).toMatchObject({ head: group.head, firstRow: group.firstRow, rows: group.rows });
    const damage = (share: number) =>
      damaged((i) => (isIn(group, i) ? share * result.limit * (i % 2 === 0 ? 1 : -1) : 0));
    const near = damage(0.99).outputs.out.spread.results.find(
      ({ scope }) => scope === group.scope,
    )!;
    expect(near.measured / near.limit).toBeCloseTo(0.99, 3);
    expectLimit('rms', damage, group.where, [1]);
  });
});

/** A limit of a structure test, reached by an error along the test's own direction. */
function expectThreshold(
  damage: (error: (element: number) => number) => Judgement,
  { test, scope, ...group }: Group & Pick<StructureResult, 'test' | 'scope'>,
  direction: Float64Array,
  where: RegExp,
): void {
  const known = new Map<number, Judgement>();
  const shifted = (share: number) => {
    const judged = known.get(share) ?? damage((i) => (isIn(group, i) ? share * direction[i] : 0));
    known.set(share, judged);
    return judged;
  };
  const resultOf = (judged: Judgement) =>
    structureOf(judged).find((result) => result.test === test && result.scope === scope)!;
  const wide = resultOf(shifted(10));
  expect(wide).toMatchObject(group);
  expect(wide.statistic).toBeCloseTo(10, 4);
  const near = resultOf(shifted(0.99 * wide.threshold));
  expect(near).toMatchObject(group);
  expect(Math.abs(near.statistic) / near.threshold).toBeCloseTo(0.99, 3);
  expectLimit(test, (share) => shifted(share * wide.threshold), where);
}

const ofRows = [
  { scope: 'row', head: 0, firstRow: 0, rows: 1, where: /head 0, query 0\b/ },
  { scope: 'row', head: 1, firstRow: 131, rows: 1, where: /head 1, query 131\b/ },
] as const;

describe.each([...ofRows, ...groups.slice(1)])('structure of a $scope: $where', (given) => {
  const { where, ...group } = given;

  inTurn('the slope fails beyond its threshold, and not within', () => {
    expectThreshold(damaged, { test: 'scale', ...group }, exact.quantities.out.values, where);
  });
  inTurn('the mean error fails beyond its threshold, and not within', () => {
    const ones = new Float64Array(exact.quantities.out.values.length).fill(1);
    expectThreshold(damaged, { test: 'bias', ...group }, ones, where);
  });
});

describe('a tile of keys', () => {
  const keys = 268;
  const ofTiles = prepare(1, keys);

  /** Σ_{j in tile} w_j (O − v_j) of every row, in plain fp64. */
  function keyTileDirection(firstKey: number): Float64Array {
    const { problem, exact } = ofTiles;
    const [q, k, v] = [decode(problem.q), decode(problem.k), decode(problem.v)];
    const direction = new Float64Array(exact.quantities.out.values.length);
    for (let row = 0; row < queries; row++)
      for (let key = firstKey; key < Math.min(firstKey + 128, keys); key++) {
        let dot = 0;
        for (let t = 0; t < dim; t++) dot += q[row * dim + t] * k[key * dim + t];
        const w = Math.exp(dot * problem.scale - exact.quantities.lse.values[row]);
        for (let c = 0; c < dim; c++)
          direction[row * dim + c] +=
            w * (exact.quantities.out.values[row * dim + c] - v[key * dim + c]);
      }
    return direction;
  }

  inTurn.each([
    [128, 'tile', { head: 0, firstRow: 128, rows: 4 }, /queries 128 to 131 .*keys 128 to 255 /],
    [256, 'head', { head: 0, firstRow: 0, rows: queries }, /on head 0 .*keys 256 to 267 /],
  ] as const)(
    'from key %i on, over a %s, fails beyond its threshold',
    (first, scope, group, where) => {
      const direction = keyTileDirection(first);
      expectThreshold(ofTiles.damaged, { test: 'key-tile', scope, ...group }, direction, where);
    },
  );
});
