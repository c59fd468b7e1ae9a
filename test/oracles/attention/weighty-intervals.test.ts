import { expect, it } from 'vitest';
import { operandRow } from '../../../oracles/attention/operand.js';
import type { Row, RowResult } from '../../../oracles/attention/row.js';
import {
  exponentIntervals,
  weightyRow,
  withDroppedKeys,
} from '../../../oracles/attention/weighty-keys.js';
import { log2e } from '../../../oracles/fixed-point.js';
import { randomValues, type RandomValues } from '../../../properties/problems/values.js';
import type { Problem, ScoreLaw } from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { filledProblem, singleHead, tensor } from '../../setup/problems.js';
import { onlyRow } from './paired-rows.js';

const u = 2 ** -53;

/** x · 2^200, exactly, for the numbers drawn here. */
const fixed = (x: number) => BigInt(x * 2 ** 200);

/** score · log2 e + addend · log2 e of a key, exactly but for the constant, in units of 2^-800; no softcap. */
function exactExponent(row: Row, law: ScoreLaw, j: number): bigint {
  const key = operandRow(row.keys, row.visible[j]);
  const dot = row.query.reduce((sum, x, t) => sum + fixed(x) * fixed(key[t]), 0n);
  const addend = fixed(row.addends?.[j] ?? 0) + fixed(row.addendRests?.[j] ?? 0);
  return (dot * fixed(law.scale) + (addend << 400n)) * log2e(200);
}

/** How far an interval of a key reaches, by Higham's bound on a dot product and 16 roundings more. */
function reach(row: Row, law: ScoreLaw, factor: number, j: number): number {
  const { dim, norm } = row.keys;
  const ofDot =
    (dim + 16) * u * Math.abs(factor) * row.queryNorm * norm[row.visible[j]] +
    (dim + 1) * 2 ** -1073 * (Math.abs(factor) + 1);
  const ofScore = law.softcap === null ? ofDot : law.softcap * Math.LOG2E;
  const ofAddend = row.addends === null ? 0 : 16 * u * Math.LOG2E * Math.abs(row.addends[j]);
  return ofScore + ofAddend;
}

/** One query and keys of any dimension; where `cancels`, every product of both is 0 and no rounding is made. */
function drawnProblem(random: RandomValues, cancels: boolean): Problem {
  const [dim, keys] = [random.integer(1, 11), random.integer(1, 9)];
  const size = 2 ** random.integer(-20, 30);
  const q = Array.from({ length: dim }, () =>
    cancels ? random.integer(-9, 9) : size * random.normal(),
  );
  const k = Array.from({ length: keys }, () => {
    if (!cancels) return q.map(() => size * random.normal());
    const key = q.map(() => 0);
    const order = q.map((_, t) => t).sort(() => random.uniform() - 0.5);
    for (let t = 0; t + 1 < dim; t += 2) {
      const [one, other] = [order[t], order[t + 1]];
      const factor = random.integer(-9, 9);
      [key[one], key[other]] = [q[other] * factor, -q[one] * factor];
    }
    return key;
  }).flat();
  const has = (share: number) => random.uniform() < share;
  const biased = has(0.5);
  return filledProblem(
    { queries: 1, keys, dim, format: 'fp64' },
    { q: (at) => q[at], k: (at) => k[at], v: () => 1 },
    {
      scale: [1, -2, 0.3, 2 ** -8][random.integer(0, 3)],
      ...(biased ? { bias: tensor('fp32', [1, keys], () => 30 * random.normal()) } : {}),
      ...(biased && has(0.5) ? { alibiSlopes: tensor('fp32', [1], random.uniform) } : {}),
      ...(biased && has(0.5) ? { softcap: 2 ** random.integer(-3, 9) } : {}),
    },
  );
}

it('the interval of a key holds its exponent, and ends where the bound on its error does', () => {
  let [withRests, capped] = [0, 0];
  for (let run = 0; run < scaled(150); run++) {
    const cancels = run % 2 === 0;
    const { row, rules } = onlyRow(drawnProblem(randomValues(testSeed + run), cancels));
    const { law, constants } = rules;
    const { upper, largest } = exponentIntervals(row, law, constants)!;
    if (row.addendRests !== null) withRests++;
    const lower = Array.from(upper, (end, j) => {
      const error = reach(row, law, constants.factorHigh, j);
      const addend = (row.addends?.[j] ?? 0) * Math.LOG2E;
      const rounding = 2 ** -17 * error + 4 * u * Math.abs(addend);
      if (law.softcap !== null || cancels) {
        // The middle is that of the addend: the product is 0, or anywhere within the cap.
        if (law.softcap !== null) capped++;
        expect(Math.abs(end - addend - error)).toBeLessThanOrEqual(rounding);
        return addend - error;
      }
      const above = Number((fixed(end) << 600n) - exactExponent(row, law, j)) * 2 ** -800;
      expect(above).toBeGreaterThanOrEqual(0);
      expect(above).toBeLessThanOrEqual(2 * error + rounding);
      return end - 2 * error;
    });
    const most = Math.max(...lower);
    const allowed =
      2 ** -16 * Math.max(...lower.map((low, j) => upper[j] - low)) + 8 * u * Math.abs(most);
    expect(Math.abs(largest - most)).toBeLessThanOrEqual(allowed);
  }
  expect(withRests).toBeGreaterThan(0);
  expect(capped).toBeGreaterThan(0);
});

it('an interval is of use but under a softcap alone, has a floor for underflow, and is unknown where the score overflows', () => {
  const zero = singleHead('fp64', { q: [[0, 0, 0]], k: [[0, 0, 0]], v: [[1]] }, { scale: -4 });
  const of = (problem: Problem) => {
    const { row, rules } = onlyRow(problem);
    return { row, intervals: exponentIntervals(row, rules.law, rules.constants) };
  };
  const { upper, largest } = of(zero).intervals!;
  expect(Math.abs(upper[0] - 4 * (4 * Math.LOG2E + 1) * 2 ** -1073)).toBeLessThanOrEqual(
    2 ** -1073,
  );
  expect(largest).toBe(-upper[0]);
  expect(of({ ...zero, softcap: 3 }).intervals).toBeNull();
  const [q, k] = [
    [[1e200, 1e200]],
    [
      [1e200, -1e200],
      [-1, -1],
      [0, 1],
    ],
  ];
  const { row, intervals } = of(singleHead('fp64', { q, k, v: [[1], [2], [3]] }));
  expect(intervals!.upper[0]).toBeNaN();
  expect(weightyRow(row, intervals, 10)).toEqual({ row, dropped: 0, octaves: 10 });
});

it('keys are left out, with all that is theirs, just where their interval ends more than an octave below what is kept', () => {
  let dropped = 0;
  for (let run = 0; run < scaled(60); run++) {
    const random = randomValues(testSeed + run);
    const count = random.integer(1, 12);
    const octaves = random.integer(1, 40);
    const largest = random.integer(-50, 50);
    const ends = [NaN, -octaves - 1, -octaves - 1 - 2 ** -20, -octaves, 0, 1, -2000];
    const upper = Float64Array.from({ length: count }, () => largest + ends[random.integer(0, 6)]);
    const optional = <T>(array: T) => (random.integer(0, 1) === 0 ? null : array);
    const numbers = () => Float64Array.from({ length: count }, random.normal);
    const bits = () => Uint8Array.from({ length: count }, () => random.integer(0, 1));
    const row = {
      visible: Int32Array.from({ length: count }, (_, j) => 3 * j + random.integer(0, 2)),
      infinite: Int8Array.from({ length: count }, () => random.integer(-1, 1)),
      addends: optional(numbers()),
      addendRests: optional(numbers()),
      kept: optional(bits()),
      share: 0.5,
    } as unknown as Row;
    const stays = (_: unknown, j: number) => !(upper[j] < largest - octaves - 1);
    const found = weightyRow(row, { upper, largest }, octaves);
    const { visible, infinite, addends, addendRests, kept } = row;
    expect(found).toEqual({
      row: {
        visible: visible.filter(stays),
        infinite: infinite.filter(stays),
        addends: addends?.filter(stays) ?? null,
        addendRests: addendRests?.filter(stays) ?? null,
        kept: kept?.filter(stays) ?? null,
        share: 0.5,
      },
      dropped: [...upper].filter((end) => end < largest - octaves - 1).length,
      octaves,
    });
    dropped += found.dropped;
    expect(weightyRow(row, null, octaves)).toEqual({ row, dropped: 0, octaves });
  }
  expect(dropped).toBeGreaterThan(0);
});

it('what is left out widens the radii by the most that it can amount to', () => {
  const result = {
    out: Float64Array.of(1, 2, 3),
    outRadius: Float64Array.of(2 ** -40, 0, 2 ** -60),
    magnitude: Float64Array.of(4, 5, 6),
    lse: 7,
    lseRadius: 2 ** -50,
    maximum: 6,
    denominator: 7,
  } satisfies RowResult;
  const row = { share: 0.25 } as Row;
  const largest = Float64Array.of(3, 0, 2 ** -1070);
  const widened = withDroppedKeys(result, { row, dropped: 5, octaves: 50 }, largest);
  // δ = 5 · 2^-50: O moves by 2δ·max|v| / share, and the LSE by δ.
  const [first, second, third] = widened.outRadius;
  expect(first / (2 ** -40 + (2 * 5 * 2 ** -50 * 3) / 0.25)).toBeCloseTo(1, 12);
  expect(second).toBe(0);
  expect(third).toBeGreaterThan(2 ** -60);
  expect(widened.lseRadius / (2 ** -50 + 5 * 2 ** -50)).toBeCloseTo(1, 12);
  expect(widened.lseRadius).toBeGreaterThan(6 * 2 ** -50);
  expect({ ...widened, outRadius: 0, lseRadius: 0 }).toEqual({
    ...result,
    outRadius: 0,
    lseRadius: 0,
  });
  // The product underflows, and the radius does not become 0.
  const exact = { ...result, outRadius: new Float64Array(3) };
  const few = withDroppedKeys(exact, { row, dropped: 1, octaves: 1000 }, largest);
  expect(few.outRadius[1]).toBe(0);
  expect(few.outRadius[2]).toBe(2 ** -1074);
  expect(withDroppedKeys(result, { row, dropped: 0, octaves: 50 }, largest)).toBe(result);
  const infinite = { ...result, lse: Infinity, lseRadius: 0 };
  expect(withDroppedKeys(infinite, { row, dropped: 5, octaves: 50 }, largest).lseRadius).toBe(0);
});
