import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  gradientQuantities,
  sharedQuantities,
} from '../../../../src/audit/gradients/gradient-quantities.js';
import { ErrorSum } from '../../../../src/audit/gradients/structure/error-sum.js';
import type { GradientStatistic } from '../../../../src/audit/gradients/structure/gradient-statistic.js';
import {
  gradientStatistics,
  statisticCount,
  type SummedGradient,
} from '../../../../src/audit/gradients/structure/gradient-structure.js';
import { pairingStatistics } from '../../../../src/audit/gradients/structure/pairing.js';
import { decodeTensor } from '../../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../../src/problem/index.js';
import { filledProblem } from '../../../setup/problems.js';
import { bellShaped } from '../gradient-case.js';
import { drawFrom } from './random-pairs.js';

const [batch, heads, kvHeads, columns] = [2, 4, 2, 2] as const;
const [dqQuantity, dkQuantity] = gradientQuantities;

/** What gradients to sum up are drawn by. */
interface Drawn {
  readonly seed: number;
  readonly queries: number;
  readonly keys: number;
  readonly isApart: boolean;
  readonly hasMeans: boolean;
}

const drawns: fc.Arbitrary<Drawn> = fc.record({
  seed: fc.nat(1e6),
  queries: fc.constantFrom(3, 128, 131),
  keys: fc.constantFrom(5, 130),
  isApart: fc.boolean(),
  hasMeans: fc.boolean(),
});

function problemOf({ queries, keys, seed }: Drawn): Problem {
  return filledProblem({ batch, heads, kvHeads, queries, keys, dim: columns }, bellShaped(seed));
}

/** Errors, values and limits of a gradient, head by head of another size; some rows are of infinities and NaNs, or of zeros. */
function drawGradient(of: Drawn, name: 'dq' | 'dk'): SummedGradient {
  const { between, flips, count } = drawFrom(of.seed + (name === 'dq' ? 1 : 2));
  const shape = problemShape(problemOf(of));
  const rowsOfHead = name === 'dq' ? of.queries : of.keys;
  const headCount = batch * (name === 'dq' ? heads : kvHeads);
  const length = headCount * rowsOfHead * columns;
  const numbers = (make: () => number) => Float64Array.from({ length }, make);
  const exact = numbers(() => between(-1, 1));
  const deviation = numbers(() => between(0.01, 0.1));
  const systematic = numbers(() => between(0, 0.02));
  const values = exact.map((x, i) => x + 3 * deviation[i] * between(-1, 1));
  for (let head = 0; head < headCount; head++) {
    // Weights of slopes have limits: see where errors are next to nothing beside values, or beside other heads' errors.
    const size = head % 3 === 2 ? 2 ** -250 : 1;
    const share = head % 3 === 1 ? 2 ** -64 : size < 1 ? 2 ** -8 : 1;
    const isOff = flips() ? 8 : 1;
    for (let i = head * rowsOfHead * columns; i < (head + 1) * rowsOfHead * columns; i++) {
      const error = (values[i] - exact[i]) * isOff;
      exact[i] *= size;
      deviation[i] *= size * share;
      systematic[i] *= size * share;
      values[i] = exact[i] + error * size * share;
    }
  }
  const rowCount = headCount * rowsOfHead;
  const special = new Set([count(rowCount)]);
  const at = () => count(rowCount) * columns;
  values[at()] = NaN;
  values[at() + 1] = -Infinity;
  deviation[at() + 1] = Infinity;
  systematic[at()] = Infinity;
  for (let i = 0; i < 3; i++) exact.fill(0, at());
  const zeroHead = count(headCount) * rowsOfHead * columns;
  exact.fill(0, zeroHead, zeroHead + rowsOfHead * columns);
  const unit = Int32Array.from({ length: rowCount }, () => count(3));
  const jump = numbers(() => (flips() ? 0 : between(-0.1, 0.1)));
  const ofHeads = (make: () => number, each = 1) =>
    Float64Array.from({ length: headCount * each }, make);
  const mean = () => between(0.1, 2);
  return {
    compared: {
      quantity: name === 'dq' ? dqQuantity : dkQuantity,
      format: 'fp64',
      values,
      exact: { values: exact, magnitude: exact.map(Math.abs) },
      shape,
      isSpecialRow: (row) => special.has(row),
      mayBeNaN: () => false,
    },
    errors: {
      systematic,
      deviation,
      apart: of.isApart ? deviation.map((x) => x * between(0.2, 0.9)) : null,
      operands: numbers(() => between(-0.1, 0.1)),
      roundings: {
        expected: numbers(() => between(-0.1, 0.1)),
        jump,
        turn: numbers(() => between(-1, 1)),
        blurred: numbers(() => between(-0.1, 0.1)),
        following: [numbers(() => between(-0.1, 0.1)), numbers(() => between(0, 0.2))],
        unknown: deviation.map((x) => x * between(0.1, 0.9)),
      },
    },
    units: { unit, isShared: Uint8Array.from({ length: rowCount }, () => (flips() ? 1 : 0)) },
    means: {
      columns: ofHeads(mean, columns),
      norm: ofHeads(mean),
      slope: of.hasMeans ? ofHeads(mean) : null,
      pairing: of.hasMeans ? ofHeads(mean) : null,
    },
  };
}

/** A sum over some rows of errors, or of values, along a pattern. */
function sumOver(
  { compared, errors, units }: SummedGradient,
  rows: readonly number[],
  term: (
    at: number,
  ) => { readonly projected: number; readonly pattern: number; readonly value: number } | null,
): ErrorSum {
  const sum = new ErrorSum(errors);
  expect(compared.values.length).toBe(errors.deviation.length);
  for (const row of rows) {
    for (let c = 0; c < columns; c++) {
      const one = term(row * columns + c);
      if (one !== null) sum.add(row * columns + c, one.projected, one.pattern, one.value);
    }
    sum.endRow(units.isShared[row] === 1 ? units.unit[row] : null);
  }
  return sum;
}

/** The slopes of tiles and heads on the exact gradient, and the sums of columns, written down plainly. */
function plainStatistics(of: SummedGradient, rowsOfHead: number, deviations: number) {
  const { compared, errors, means } = of;
  const { values, exact, isSpecialRow } = compared;
  const { deviation, systematic, apart } = errors;
  const elements = (row: number) => Array.from({ length: columns }, (_, c) => row * columns + c);
  const errorOf = (at: number) => values[at] - exact.values[at];
  const size = Array.from(deviation, (x, at) => Math.hypot(x, systematic[at]));
  const largest = Math.max(...size.filter(Number.isFinite));
  // By least squares: x over the variance of its errors.
  const weight = (at: number) => {
    const x = exact.values[at];
    if (apart === null) return x;
    if (x === 0 || size[at] === 0) return 0;
    return (
      x / largest / (Math.max(size[at], 2 ** -60 * Math.abs(x), 2 ** -200 * largest) / largest) ** 2
    );
  };
  const isSummable = (row: number) =>
    !isSpecialRow(row) &&
    elements(row).every((at) =>
      [errorOf(at), systematic[at], deviation[at]].every(Number.isFinite),
    );
  const lengthOf = (row: number) => Math.hypot(...elements(row).map((at) => exact.values[at]));
  const found: GradientStatistic[] = [];
  const slope = (
    place: Pick<GradientStatistic, 'scope' | 'head' | 'firstRow' | 'rows' | 'lastRow'>,
    rows: readonly number[],
    common: number,
  ) => {
    const sum = sumOver(of, rows, (at) => {
      const pattern = weight(at);
      return { projected: errorOf(at) * pattern, pattern, value: exact.values[at] };
    });
    const norm = rows.flatMap(elements).reduce((all, at) => all + weight(at) * exact.values[at], 0);
    if (!(norm > 0 && norm < Infinity)) return;
    const { statistic, threshold } = sum.judge(deviations, common);
    found.push({
      test: 'scale',
      ...place,
      column: null,
      statistic: statistic / norm,
      threshold: threshold / norm,
    });
  };
  const headCount = values.length / columns / rowsOfHead;
  for (let head = 0; head < headCount; head++) {
    const all = Array.from({ length: rowsOfHead }, (_, i) => head * rowsOfHead + i);
    const longest = (rows: readonly number[]) => Math.max(0, ...rows.map(lengthOf));
    for (let firstRow = 0; firstRow < rowsOfHead; firstRow += 128) {
      const ofTile = all.slice(firstRow, firstRow + 128);
      const rows = ofTile.filter(isSummable);
      const lastRow = firstRow + ofTile.length - 1;
      const place = { scope: 'tile', head, firstRow, rows: ofTile.length, lastRow } as const;
      slope(place, rows, longest(rows) * means.norm[head]);
    }
    const rows = all.filter(isSummable);
    const place = { head, firstRow: 0, rows: rowsOfHead, lastRow: rowsOfHead - 1 };
    slope(
      { scope: 'head', ...place },
      rows,
      means.slope?.[head] ?? longest(rows) * means.norm[head],
    );
    if (rows.length === 0) continue;
    for (let column = 0; column < columns; column++) {
      const sum = sumOver(of, rows, (at) =>
        at % columns === column ? { projected: errorOf(at), pattern: 1, value: 1 } : null,
      );
      const judged = sum.judge(deviations, means.columns[head * columns + column]);
      found.push({ test: 'sum', scope: 'head', ...place, column, ...judged });
    }
  }
  return found;
}

/** ⟨Q, dQ⟩ − ⟨K, dK⟩ of each head of K over the sizes of the terms, written down plainly. */
function plainPairing(of: Drawn, dq: SummedGradient, dk: SummedGradient, deviations: number) {
  const problem = problemOf(of);
  const side = (one: SummedGradient, tensor: Float64Array, firstRow: number, count: number) => {
    const rows = Array.from({ length: count }, (_, i) => firstRow + i);
    const { values } = one.compared;
    const terms = rows.flatMap((row) =>
      Array.from({ length: columns }, (_, c) => {
        const at = row * columns + c;
        return values[at] * tensor[at];
      }),
    );
    return {
      sum: sumOver(one, rows, (at) => ({
        projected: values[at] * tensor[at],
        pattern: tensor[at],
        value: tensor[at],
      })),
      signed: terms.reduce((all, x) => all + x, 0),
      sizes: terms.reduce((all, x) => all + Math.abs(x), 0),
      longest: Math.max(
        ...rows.map((row) => Math.hypot(...tensor.subarray(row * columns, (row + 1) * columns))),
      ),
    };
  };
  const [q, k] = [decodeTensor(problem.q), decodeTensor(problem.k)];
  const group = heads / kvHeads;
  return Array.from({ length: batch * kvHeads }, (_, kvHead) => {
    // Heads of Q count over batch entries as those of K do, a group for each.
    const ofQ = side(dq, q, kvHead * group * of.queries, group * of.queries);
    const ofK = side(dk, k, kvHead * of.keys, of.keys);
    const sizes = ofQ.sizes + ofK.sizes;
    const common = dk.means.pairing?.[kvHead] ?? ofK.longest * dk.means.norm[kvHead];
    const own = 2 ** -40 * sizes;
    const difference = ofQ.signed - ofK.signed;
    const limit =
      ofQ.sum.ofIndependent(deviations, 0) + ofK.sum.ofIndependent(deviations, common) + own;
    if (!(Math.abs(difference) > limit))
      return { kvHead, statistic: difference / sizes, threshold: limit / sizes };
    const rest = difference - (ofQ.sum.expected - ofK.sum.expected);
    const sign = rest < 0 ? -1 : 1;
    const following =
      ofQ.sum.ofFollowing(deviations, 0, sign) +
      ofK.sum.ofFollowing(deviations, common, -sign) +
      own;
    return { kvHead, statistic: rest / sizes, threshold: following / sizes };
  }).filter(({ statistic, threshold }) => Number.isFinite(statistic) && Number.isFinite(threshold));
}

/** Expects the same statistics but for the roundings of these sums. */
function expectStatistics(
  found: readonly GradientStatistic[],
  wanted: readonly GradientStatistic[],
) {
  const placeOf = ({ test, scope, head, firstRow, rows, lastRow, column }: GradientStatistic) =>
    [test, scope, head, firstRow, rows, lastRow, column].join();
  expect(found.map(placeOf)).toEqual(wanted.map(placeOf));
  found.forEach((one, i) => {
    const { statistic, threshold } = wanted[i];
    const isAlike =
      Math.abs(one.threshold - threshold) <= 2 ** -30 * threshold &&
      Math.abs(one.statistic - statistic) <= 2 ** -30 * (Math.abs(statistic) + threshold);
    if (!isAlike) expect(one).toEqual(wanted[i]);
  });
}

describe('statistics of a gradient are those of every tile, head and column', () => {
  it('with the thresholds of the rows that are summed', () => {
    let beyond = 0;
    fc.assert(
      fc.property(drawns, fc.constantFrom('dq' as const, 'dk' as const), (drawn, name) => {
        const one = drawGradient(drawn, name);
        const found = [...gradientStatistics(one, 6)];
        const rows = name === 'dq' ? drawn.queries : drawn.keys;
        expectStatistics(found, plainStatistics(one, rows, 6));
        beyond += found.filter(
          ({ statistic, threshold }) => Math.abs(statistic) > threshold,
        ).length;
        const ofHead = Math.ceil(rows / 128) + 1 + columns;
        expect(statisticCount(one.compared)).toBe(
          batch * (name === 'dq' ? heads : kvHeads) * ofHead,
        );
      }),
      { numRuns: 15 },
    );
    expect(beyond).toBeGreaterThan(0);
  });

  it('and none of numbers without rows', () => {
    const [, dsink] = sharedQuantities;
    const { compared } = drawGradient(
      { seed: 1, queries: 3, keys: 5, isApart: false, hasMeans: false },
      'dq',
    );
    expect(statisticCount({ ...compared, quantity: dsink })).toBe(0);
  });
});

describe('the pairing is ⟨Q, dQ⟩ − ⟨K, dK⟩ of each head of K', () => {
  it.each(['own', 'small', 'along'] as const)('over the query heads of its group: %s', (kind) => {
    let [made, beyond] = [0, 0];
    fc.assert(
      fc.property(drawns, (drawn) => {
        const problem = problemOf(drawn);
        const [dq, dk] = (['dq', 'dk'] as const).map((name) => {
          const one = drawGradient(drawn, name);
          const { deviation } = one.errors;
          const tensor = decodeTensor(name === 'dq' ? problem.q : problem.k);
          const sign = (at: number) => (name === 'dq' ? 200 : -200) * Math.sign(tensor[at]);
          const values = {
            own: one.compared.values,
            // Next to nothing, or so large one way that roundings do not explain it.
            small: deviation.map((x) => x / 9),
            along: deviation.map((x, at) => x * sign(at) * (drawn.seed % 2 === 0 ? 1 : -1)),
          }[kind];
          return { ...one, compared: { ...one.compared, values } };
        });
        const found = [...pairingStatistics(problem, dq, dk, 6)];
        const wanted = plainPairing(drawn, dq, dk, 6).map(
          ({ kvHead, statistic, threshold }): GradientStatistic => ({
            test: 'pairing',
            scope: 'head',
            head: kvHead,
            firstRow: 0,
            rows: drawn.keys,
            lastRow: drawn.keys - 1,
            column: null,
            statistic,
            threshold,
          }),
        );
        expectStatistics(found, wanted);
        made += found.length;
        beyond += found.filter(
          ({ statistic, threshold }) => Math.abs(statistic) > threshold,
        ).length;
      }),
      { numRuns: 6 },
    );
    // Of its own, drawn values every head may be left out, or none be beyond.
    if (kind === 'own') return;
    expect(made).toBeGreaterThan(0);
    expect(beyond > 0).toBe(kind === 'along');
  });

  it.each([0, 1])(
    'within 2^-40 of the terms where nothing else is rounded, and not of zeros: %d',
    (off) => {
      const drawn = { seed: 5, queries: 3, keys: 5, isApart: false, hasMeans: false };
      const problem = problemOf(drawn);
      const exactly = (name: 'dq' | 'dk'): SummedGradient => {
        const one = drawGradient(drawn, name);
        const nothing = () => one.compared.values.map(() => 0);
        const none = { expected: nothing(), jump: nothing(), turn: nothing(), blurred: nothing() };
        const roundings = { ...none, following: [nothing()], unknown: nothing() };
        const errors = { systematic: nothing(), deviation: nothing(), operands: nothing() };
        // Of the last head of K all is zero; of the others ⟨Q, dQ⟩ is 0 and ⟨K, dK⟩ is not, or next to 0.
        const [of, rows] = name === 'dq' ? [heads, drawn.queries] : [kvHeads, drawn.keys];
        const lasts = (batch * of - of / kvHeads) * rows * columns;
        const size = name === 'dq' ? 1 : off === 1 ? 2 ** -30 : 2 ** -60;
        const tensor = decodeTensor(name === 'dq' ? problem.q : problem.k);
        const values = nothing().map((_, at) => {
          if (at >= lasts) return 0;
          if (name === 'dk') return size * tensor[at];
          // Across the row.
          return at % columns === 0 ? -tensor[at + 1] : tensor[at - 1];
        });
        return {
          ...one,
          compared: { ...one.compared, values },
          errors: { ...errors, apart: null, roundings },
          means: { ...one.means, norm: nothing() },
        };
      };
      const found = [...pairingStatistics(problem, exactly('dq'), exactly('dk'), 6)];
      expect(found.map(({ head }) => head)).toEqual([0, 1, 2]);
      for (const { statistic, threshold } of found) {
        expect(threshold).toBeCloseTo(2 ** -40, 20);
        expect(Math.abs(statistic) > threshold).toBe(off === 1);
      }
    },
  );
});
