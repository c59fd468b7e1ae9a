import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../../../oracles/index.js';
import { outputRounding } from '../../../../src/audit/bounds/index.js';
import { anyGradientPremises, measureGradients } from '../../../../src/audit/index.js';
import {
  ErrorSum,
  type SummedErrors,
} from '../../../../src/audit/gradients/structure/error-sum.js';
import {
  measureMeanErrors,
  measureWeightErrors,
  noMeanErrors,
  togetherOf,
} from '../../../../src/audit/gradients/structure/mean-errors.js';
import { outputRoundings } from '../../../../src/audit/gradients/structure/output-roundings.js';
import { decodeTensor, formats, round, unitRoundoff } from '../../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../../src/problem/index.js';
import { testSeed } from '../../../setup/effort.js';
import { filledProblem, tensor } from '../../../setup/problems.js';
import { bellShaped } from '../gradient-case.js';
import { drawFrom, expectAlike } from './random-pairs.js';

const seed = (testSeed % 1_000_003) + 19;

/** Errors of elements, drawn, as they are where operands may have three factors. */
function drawnErrors(length: number) {
  const { between, flips } = drawFrom(seed);
  const numbers = (low: number, high: number) =>
    Float64Array.from({ length }, () => between(low, high));
  const deviation = numbers(0.5, 1);
  return {
    systematic: numbers(0, 0.01),
    deviation,
    operands: numbers(-1, 1),
    apart: null,
    roundings: {
      expected: numbers(-1, 1),
      jump: Float64Array.from({ length }, () => (flips() ? 0 : between(-1, 1))),
      turn: numbers(-1, 1),
      blurred: numbers(-1, 1),
      following: [numbers(-1, 1), numbers(0, 1.5)],
      unknown: deviation.map((x) => x * between(0.1, 0.9)),
    },
  };
}

/** The sum of errors with its limits: Theorem 24, written down plainly. */
function plainSum(
  of: SummedErrors,
  pattern: readonly number[],
  rows: readonly (number | null)[],
  columns: number,
) {
  const { roundings } = of;
  const total = (numbers: Float64Array, weigh: (c: number) => number = (c) => c) =>
    pattern.reduce((sum, c, i) => sum + numbers[i] * weigh(c), 0);
  const squares = (numbers: Float64Array, common: number) => {
    const byUnit = new Map<string, number>();
    rows.forEach((unit, row) => {
      const key = unit === null ? `alone ${row}` : `unit ${unit}`;
      for (let i = row * columns; i < (row + 1) * columns; i++)
        byUnit.set(key, (byUnit.get(key) ?? 0) + numbers[i] * Math.abs(pattern[i]));
    });
    return [...byUnit.values()].reduce((sum, x) => sum + x * x, common ** 2);
  };
  const systematic = total(of.systematic, Math.abs);
  const jumps = (sign: number) => {
    const sums = Array.from({ length: 65 }, (_, k) => {
      const t = (k - 32) / 32;
      return pattern.reduce((sum, c, i) => {
        const turn = Math.min(Math.floor((1 + roundings.turn[i]) * 32), 63);
        const isIn = t > 0 ? turn >= 32 && turn < k : turn < 32 && turn >= k;
        return isIn ? sum + roundings.jump[i] * c : sum;
      }, 0);
    });
    return Math.max(0, ...sums.map((x) => sign * x));
  };
  return {
    expected: total(roundings.expected),
    independent: (z: number, common: number) =>
      systematic + z * Math.sqrt(squares(of.deviation, common)),
    following: (z: number, common: number, sign: number) => {
      const [all, unknown] = [squares(of.deviation, common), squares(roundings.unknown, common)];
      const P = Math.max(
        Math.max(0, sign * total(of.operands)) + Math.max(0, sign * total(roundings.blurred)),
        ...roundings.following.map((numbers) => sign * total(numbers)),
      );
      const jumpSquares = pattern.reduce((sum, c, i) => sum + (roundings.jump[i] * c) ** 2, 0);
      if (P + jumps(sign) <= 4 * Math.sqrt(all - unknown + jumpSquares))
        return systematic + z * Math.sqrt(all);
      // The largest over the share that is left.
      let most = 0;
      for (let k = 0; k <= 4096; k++) {
        const a = k / 4096;
        most = Math.max(most, a * P + z * Math.sqrt(all - a * a * (all - unknown)));
      }
      return systematic + jumps(sign) + most;
    },
  };
}

describe('sums of errors stay below what Theorem 24 says', () => {
  const [rows, columns] = [30, 4];
  const units = Array.from({ length: rows }, (_, row) => (row % 3 === 0 ? row % 2 : null));
  it.each([
    ['of any sign', (x: number) => x],
    ['of what follows from values', (x: number) => Math.abs(x)],
  ])('%s', (_, shaped) => {
    const errors = drawnErrors(rows * columns);
    const { between } = drawFrom(seed + 1);
    // Patterns along what follows from the values, so that it is beyond chance.
    const along = errors.roundings.following[0];
    const pattern = Array.from({ length: rows * columns }, (__, i) =>
      shaped === Math.abs ? Math.sign(along[i]) * between(2, 3) : shaped(between(-1, 1)),
    );
    const values = pattern.map(() => between(-1, 1));
    const sum = new ErrorSum(errors);
    for (let row = 0; row < rows; row++) {
      for (let i = row * columns; i < (row + 1) * columns; i++) sum.add(i, values[i], pattern[i]);
      sum.endRow(units[row]);
    }
    const plain = plainSum(errors, pattern, units, columns);
    expectAlike(
      sum.signed,
      values.reduce((all, x) => all + x, 0),
      'the sum',
    );
    expectAlike(sum.expected, plain.expected, 'what is expected');
    expectAlike(
      sum.norm,
      pattern.reduce((all, x) => all + x * x, 0),
      'the norm',
    );
    for (const [z, common] of [
      [6, 0],
      [3, 5],
      [0.5, 1],
    ] as const) {
      expectAlike(sum.ofIndependent(z, common), plain.independent(z, common), 'independent');
      for (const sign of [1, -1]) {
        const [found, wanted] = [
          sum.ofFollowing(z, common, sign),
          plain.following(z, common, sign),
        ];
        expect(Math.abs(found / wanted - 1)).toBeLessThan(2 ** -18);
      }
    }
    const within = sum.judge(1e6, 0);
    expect(within).toEqual({ statistic: sum.signed, threshold: sum.ofIndependent(1e6, 0) });
    const beyond = sum.judge(0, 0);
    if (Math.abs(sum.signed) <= sum.ofIndependent(0, 0)) return;
    const statistic = sum.signed - sum.expected;
    expect(beyond).toEqual({ statistic, threshold: sum.ofFollowing(0, 0, Math.sign(statistic)) });
  });
});

describe('the roundings of outputs', () => {
  it('are those of the exact values, as far as errors leave them', () => {
    const { between, count } = drawFrom(seed + 2);
    const length = 300;
    const values = Float64Array.from({ length }, (_, i) => (i === 0 ? 1 : between(-4, 4)));
    const kind = values.map(() => count(3));
    const half = values.map((x) => outputRounding('bf16', x, 0));
    const known = values.map((_, i) => (kind[i] === 0 ? half[i] / 3 : 0));
    const reach = values.map((_, i) => (kind[i] === 1 ? between(0, half[i]) : 0));
    const operands = values.map((_, i) => between(-half[i], half[i]) / 4);
    const byOthers = [operands.map((x) => -2 * x)];
    const deviation = values.map((_, i) => half[i] * between(0.3, 1));
    const bf16 = (x: number) => round(formats.bf16, x) - x;
    const found = outputRoundings(
      { exact: { values }, format: 'bf16' } as Parameters<typeof outputRoundings>[0],
      { deviation, known, reach, operands, byOthers },
    );
    values.forEach((x, i) => {
      const rest = (less: number) =>
        Math.sqrt(Math.max(0, deviation[i] ** 2 - operands[i] ** 2 - less ** 2));
      const rounding = bf16(x);
      const isBlurred = kind[i] === 2;
      expect(found.expected[i]).toBe(isBlurred ? 0 : rounding);
      expect(found.blurred[i]).toBe(isBlurred ? rounding : 0);
      [operands, ...byOthers].forEach((of, k) => {
        const wanted = of[i] + (isBlurred ? bf16(x + of[i]) : 0);
        expect(found.following[k][i]).toBe(wanted);
      });
      const blur = Math.min(Math.abs(rounding), (rounding === 0 ? 0 : half[i]) / Math.sqrt(3));
      expectAlike(found.unknown[i], rest([known[i], 0, blur][kind[i]]), 'what is unknown');
      // The midpoint that errors may take it past lies behind the number that it is rounded away from.
      const midpoint = rounding > 0 ? rounding - half[i] : rounding + half[i];
      const isJump = kind[i] === 1 && rounding !== 0 && Math.abs(midpoint) < reach[i];
      expectAlike(found.turn[i], isJump ? midpoint / reach[i] : 0, 'its turn');
      expectAlike(found.jump[i], isJump ? -2 * half[i] * Math.sign(rounding) : 0, 'its jump');
    });
  });
});

describe('what errors of D and of the LSE do to sums over keys', () => {
  const frame = { batch: 2, heads: 4, kvHeads: 2, queries: 3, keys: 5, dim: 3, vDim: 2 } as const;
  const cases: Readonly<Record<string, Partial<Problem>>> = {
    plain: {},
    'with dropout': {
      dropout: {
        kept: {
          shape: [2, 4, 3, 5],
          data: Uint8Array.from({ length: 120 }, (_, i) => (i % 3 ? 1 : 0)),
        },
        probability: 0.25,
      },
    },
    'under a softcap': { softcap: 2 },
  };

  it.each(Object.entries(cases))('%s', (name, changes) => {
    const random = bellShaped(seed);
    const problem = filledProblem(frame, random, changes);
    const dout = tensor('bf16', [2, 4, 3, 2], random);
    const premises = {
      ...anyGradientPremises(problem, 'bf16'),
      ...(name === 'plain' && ({ dp: 'bf16', scores: 'bf16' } as const)),
    };
    const measured = measureGradients(problem, dout, { premises, given: { out: null, lse: null } });
    const weightVariance = measured.weightVariance.map((_, i) => 1e-4 * (1 + i));
    const of = { ...measured, weightVariance };
    const dO = decodeTensor(dout);
    const found = measureMeanErrors(problem, dO, of, premises);
    const { groupSize } = problemShape(problem);
    const [q, k, v] = [problem.q, problem.k, problem.v].map((one) => decodeTensor(one));
    const { dk } = measured.gradients;
    const { out } = measured.reference.quantities;
    const at = (numbers: Float64Array, row: number, dim: number) =>
      Array.from(numbers.subarray(row * dim, (row + 1) * dim));
    const norm = (row: readonly number[]) => Math.hypot(...row);
    const exactWeights = (row: number) => {
      const kvHead = Math.floor(row / 3 / groupSize);
      const scores = Array.from({ length: 5 }, (_, j) => {
        const raw = at(q, row, 3).reduce((sum, x, c) => sum + x * k[(kvHead * 5 + j) * 3 + c], 0);
        return raw * problem.scale;
      });
      const sizes = scores.map(Math.exp);
      return sizes.map((x) => x / sizes.reduce((sum, y) => sum + y, 0));
    };
    for (let kvHead = 0; kvHead < 4; kvHead++) {
      const columns = [0, 0, 0];
      let [slope, pairing] = [0, 0];
      const keysOf = (numbers: Float64Array) =>
        Array.from({ length: 5 }, (_, j) => at(numbers, kvHead * 5 + j, 3));
      const [exactRows, keyRows] = [keysOf(dk.exact.values), keysOf(k)];
      const longest = [exactRows, keyRows].map((rows) => Math.max(...rows.map(norm)));
      for (let row = kvHead * 6; row < (kvHead + 1) * 6; row++) {
        const largest = [0, 1].map((c) =>
          Math.max(...Array.from({ length: 5 }, (_, j) => Math.abs(v[(kvHead * 5 + j) * 2 + c]))),
        );
        const heaviest = Math.min(
          1,
          Math.exp(measured.reference.maximum[row] - measured.reference.denominator[row]),
        );
        const uP = unitRoundoff(formats[premises.p]);
        const uX = unitRoundoff(formats[premises.dp]) + unitRoundoff(formats[premises.scores]);
        let [variance, sizes, reach] = [0, 0, 0];
        for (const c of [0, 1]) {
          const i = row * 2 + c;
          variance += (dO[i] * outputRounding('bf16', out.values[i], 0)) ** 2;
          variance += dO[i] ** 2 * uP ** 2 * heaviest * out.magnitude[i] * largest[c];
          sizes += Math.abs(dO[i] * out.values[i]);
          reach += Math.abs(dO[i]) * largest[c];
        }
        const ofP = premises.dp === 'fp32' ? 0 : uP ** 2;
        variance += (uX ** 2 + ofP) * heaviest * measured.mean.magnitude[row] * reach;
        variance += (2 * premises.accumulation * sizes) ** 2;
        const sigma = Math.sqrt(variance);
        const ofLse = 4 * weightVariance[row] * measured.mean.magnitude[row] ** 2;
        const scaled = at(q, row, 3).map((x) => problem.scale * x);
        scaled.forEach((x, c) => (columns[c] += (sigma * x) ** 2 + ofLse * x ** 2));
        const P = exactWeights(row);
        const along = (rows: readonly number[][]) =>
          P.reduce(
            (sum, p, j) => sum + p * rows[j].reduce((all, x, c) => all + x * scaled[c], 0),
            0,
          );
        const squares = ofLse * norm(scaled) ** 2;
        slope += (sigma * along(exactRows)) ** 2 + squares * longest[0] ** 2;
        pairing += (sigma * along(keyRows)) ** 2 + squares * longest[1] ** 2;
      }
      const isNear = (x: number, y: number) => Math.abs(x / y - 1) < 2 ** -14;
      columns.forEach((x, c) => {
        expect(isNear(found.columns[kvHead * 3 + c], Math.sqrt(x))).toBe(true);
      });
      expect(isNear(found.norm[kvHead], Math.sqrt(columns.reduce((all, x) => all + x, 0)))).toBe(
        true,
      );
      if (name === 'under a softcap') continue;
      expect(isNear(found.slope![kvHead], Math.sqrt(slope))).toBe(true);
      expect(isNear(found.pairing![kvHead], Math.sqrt(pairing))).toBe(true);
    }
    if (name === 'under a softcap') expect([found.slope, found.pairing]).toEqual([null, null]);
    const ofWeights = measureWeightErrors(problem, dO, { weightVariance });
    const share = name === 'with dropout' ? 0.75 : 1;
    for (let kvHead = 0; kvHead < 4; kvHead++) {
      const columns = [0, 1].map((c) => {
        const rows = Array.from({ length: 6 }, (_, i) => kvHead * 6 + i);
        return rows.reduce(
          (sum, row) => sum + weightVariance[row] * (dO[row * 2 + c] / share) ** 2,
          0,
        );
      });
      columns.forEach((x, c) => {
        expectAlike(ofWeights.columns[kvHead * 2 + c], Math.sqrt(x), 'of a column');
      });
      expectAlike(ofWeights.norm[kvHead], Math.sqrt(columns[0] + columns[1]), 'of a head');
    }
    expect([ofWeights.slope, ofWeights.pairing]).toEqual([null, null]);
    const both = { dk: found, dv: ofWeights };
    expect(togetherOf(both, 'dk', 4, 3)).toBe(found);
    expect(togetherOf(both, 'dv', 4, 2)).toBe(ofWeights);
    expect(togetherOf(both, 'dq', 8, 3)).toEqual(noMeanErrors(8, 3));
    expect(noMeanErrors(8, 3).columns).toEqual(new Float64Array(24));
    expect(attentionOracle(problem).shape).toEqual(measured.shape);
  });
});
