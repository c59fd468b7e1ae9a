import { describe, expect, it } from 'vitest';
import { gradientQuantities } from '../../../../src/audit/index.js';
import { gradientUnits } from '../../../../src/audit/gradients/row-units.js';
import {
  gradientStatistics,
  statisticCount,
  unitOf,
  type SummedGradient,
} from '../../../../src/audit/gradients/structure/gradient-structure.js';
import type { GradientStatistic } from '../../../../src/audit/gradients/structure/gradient-statistic.js';
import { noRoundings } from '../../../../src/audit/gradients/structure/output-roundings.js';
import { pairingStatistics } from '../../../../src/audit/gradients/structure/pairing.js';
import { decodeTensor } from '../../../../src/formats/index.js';
import { problemShape, type ProblemShape } from '../../../../src/problem/index.js';
import { testSeed } from '../../../setup/effort.js';
import { filledProblem } from '../../../setup/problems.js';
import { bellShaped } from '../gradient-case.js';
import { drawFrom, expectAlike } from './random-pairs.js';

const draw = drawFrom((testSeed % 1_000_003) + 47);
const numbers = (length: number, low: number, high: number) =>
  Float64Array.from({ length }, () => draw.between(low, high));

/** A gradient of drawn numbers. Some rows hold a NaN; some err together. */
function drawnGradient(name: 'dq' | 'dk', shape: ProblemShape, isSloped: boolean): SummedGradient {
  const quantity = gradientQuantities.find((one) => one.name === name)!;
  const [heads, rows] =
    name === 'dq'
      ? [shape.batch * shape.heads, shape.queries]
      : [shape.batch * shape.kvHeads, shape.keys];
  const length = heads * rows * shape.qkDim;
  const exact = numbers(length, -1, 1);
  const deviation = numbers(length, 0.1, 0.2);
  const values = exact.map((x) => x + draw.between(-0.1, 0.1));
  const unit = Int32Array.from({ length: heads * rows }, (_, row) => row % 5);
  return {
    compared: {
      quantity,
      format: 'fp64',
      values,
      exact: { values: exact, magnitude: exact },
      shape,
      isSpecialRow: (row: number) => row % rows === 1,
      mayBeNaN: () => false,
    } as SummedGradient['compared'],
    errors: {
      systematic: numbers(length, 0, 0.01),
      deviation,
      operands: new Float64Array(length),
      apart: null,
      roundings: noRoundings(deviation),
    },
    units: { unit, isShared: Uint8Array.from(unit, (one) => (one < 2 ? 1 : 0)) },
    means: {
      columns: numbers(heads * shape.qkDim, 0.1, 1),
      norm: numbers(heads, 0.1, 1),
      slope: isSloped ? numbers(heads, 0.1, 1) : null,
      pairing: isSloped ? numbers(heads, 0.1, 1) : null,
    },
  };
}

/** What independent errors leave of a sum over some elements. */
function limitOf(
  { errors, units }: SummedGradient,
  elements: ReadonlyMap<number, number>,
  columns: number,
  common: number,
): number {
  let systematic = 0;
  const byUnit = new Map<string, number>();
  for (const [at, pattern] of elements) {
    const row = Math.floor(at / columns);
    systematic += errors.systematic[at] * Math.abs(pattern);
    const key = units.isShared[row] === 1 ? `unit ${units.unit[row]}` : `row ${row}`;
    byUnit.set(key, (byUnit.get(key) ?? 0) + errors.deviation[at] * Math.abs(pattern));
  }
  return (
    systematic + 1000 * Math.sqrt([...byUnit.values()].reduce((sum, x) => sum + x * x, common ** 2))
  );
}

/** The statistics of a gradient by their definitions. */
function plainStatistics(of: SummedGradient, heads: number, rows: number, columns: number) {
  const { values, exact } = of.compared;
  const wanted: Pick<
    GradientStatistic,
    'test' | 'scope' | 'head' | 'firstRow' | 'rows' | 'column' | 'statistic' | 'threshold'
  >[] = [];
  for (let head = 0; head < heads; head++) {
    const isIn = (row: number) => row !== 1;
    const elementsOf = (
      first: number,
      end: number,
      pattern: (at: number) => number,
      only?: number,
    ) => {
      const found = new Map<number, number>();
      for (let row = first; row < end; row++)
        for (let c = 0; c < columns; c++)
          if (isIn(row) && (only === undefined || only === c)) {
            const at = (head * rows + row) * columns + c;
            found.set(at, pattern(at));
          }
      return found;
    };
    const longest = (first: number, end: number) =>
      Math.max(
        ...Array.from({ length: end - first }, (_, i) => {
          const from = (head * rows + first + i) * columns;
          return isIn(first + i) ? Math.hypot(...exact.values.subarray(from, from + columns)) : 0;
        }),
      );
    const add = (scope: 'tile' | 'head', first: number, end: number, common: number) => {
      const elements = elementsOf(first, end, (at) => exact.values[at]);
      const norm = [...elements.values()].reduce((sum, x) => sum + x * x, 0);
      const sum = [...elements].reduce((all, [at, x]) => all + (values[at] - x) * x, 0);
      wanted.push({
        test: 'scale',
        scope,
        head,
        firstRow: first,
        rows: end - first,
        column: null,
        statistic: sum / norm,
        threshold: limitOf(of, elements, columns, common) / norm,
      });
    };
    for (let first = 0; first < rows; first += 128) {
      const end = Math.min(rows, first + 128);
      add('tile', first, end, longest(first, end) * of.means.norm[head]);
    }
    add('head', 0, rows, of.means.slope?.[head] ?? longest(0, rows) * of.means.norm[head]);
    for (let column = 0; column < columns; column++) {
      const elements = elementsOf(0, rows, () => 1, column);
      const statistic = [...elements.keys()].reduce(
        (sum, at) => sum + values[at] - exact.values[at],
        0,
      );
      const common = of.means.columns[head * columns + column];
      wanted.push({
        test: 'sum',
        scope: 'head',
        head,
        firstRow: 0,
        rows,
        column,
        statistic,
        threshold: limitOf(of, elements, columns, common),
      });
    }
  }
  return wanted;
}

const problem = filledProblem(
  { batch: 2, heads: 4, kvHeads: 2, queries: 3, keys: 130, dim: 3 },
  bellShaped(5),
);
const shape = problemShape(problem);

describe('sums over gradients', () => {
  it.each([
    ['dk', true],
    ['dk', false],
    ['dq', false],
  ] as const)('of %s are those of their rows and columns', (name, isSloped) => {
    const of = drawnGradient(name, shape, isSloped);
    const [heads, rows] = name === 'dq' ? [8, 3] : [4, 130];
    const found = [...gradientStatistics(of, 1000)];
    const wanted = plainStatistics(of, heads, rows, 3);
    expect(found.length).toBe(wanted.length);
    expect(statisticCount(of.compared)).toBe(wanted.length);
    wanted.forEach(({ statistic, threshold, ...place }, i) => {
      expect(found[i]).toMatchObject({ ...place, lastRow: place.firstRow + place.rows - 1 });
      expectAlike(found[i].statistic + 1, statistic + 1, `statistic ${i}`);
      expectAlike(found[i].threshold, threshold, `threshold ${i}`);
    });
    expect(unitOf(of, 6)).toBe(1);
    expect(unitOf(of, 7)).toBeNull();
  });

  it('leave out rows with what is not finite, and heads without any other', () => {
    const of = drawnGradient('dk', { ...shape, keys: 3 }, false);
    for (let i = 0; i < 9; i++) of.compared.values[i] = NaN;
    of.errors.deviation[9] = Infinity;
    const heads = [...gradientStatistics(of, 6)].map(({ head }) => head);
    expect(heads.filter((head) => head === 0)).toEqual([]);
    expect(heads.filter((head) => head === 1).length).toBe(5);
    expect(
      [...gradientStatistics(of, 6)].every(({ threshold }) => Number.isFinite(threshold)),
    ).toBe(true);
  });

  it.each([true, false])('of Q and dQ, and of K and dK, are one number', (isSloped) => {
    const [dq, dk] = [drawnGradient('dq', shape, false), drawnGradient('dk', shape, isSloped)];
    const [q, k] = [decodeTensor(problem.q), decodeTensor(problem.k)];
    const found = [...pairingStatistics(problem, dq, dk, 1000)];
    expect(found.map(({ head }) => head)).toEqual([0, 1, 2, 3]);
    found.forEach(({ statistic, threshold, ...place }, kvHead) => {
      expect(place).toMatchObject({
        test: 'pairing',
        scope: 'head',
        firstRow: 0,
        rows: 130,
        lastRow: 129,
        column: null,
      });
      const part = (of: SummedGradient, tensor: Float64Array, from: number, length: number) => {
        const elements = new Map(Array.from({ length }, (_, i) => [from + i, tensor[from + i]]));
        const terms = [...elements].map(([at, x]) => of.compared.values[at] * x);
        return {
          elements,
          sum: terms.reduce((x, y) => x + y, 0),
          size: terms.reduce((x, y) => x + Math.abs(y), 0),
        };
      };
      const ofQ = part(dq, q, kvHead * 18, 18);
      const ofK = part(dk, k, kvHead * 390, 390);
      const longest = Math.max(
        ...Array.from({ length: 130 }, (_, j) =>
          Math.hypot(...k.subarray((kvHead * 130 + j) * 3, (kvHead * 130 + j + 1) * 3)),
        ),
      );
      const common = dk.means.pairing?.[kvHead] ?? longest * dk.means.norm[kvHead];
      const sizes = ofQ.size + ofK.size;
      expectAlike(statistic + 1, (ofQ.sum - ofK.sum) / sizes + 1, 'the difference');
      const limit = limitOf(dq, ofQ.elements, 3, 0) + limitOf(dk, ofK.elements, 3, common);
      expectAlike(threshold, (limit + 2 ** -40 * sizes) / sizes, 'its limit');
    });
  });
});

describe('rows that may err alike', () => {
  it('agree to 12 significant bits in every column', () => {
    const row = [1.5, -2.25e-3, 7e9];
    const times = (factor: number) => row.map((x) => x * factor);
    const rows = [
      row,
      times(1 + 2 ** -15),
      times(1 + 2 ** -9),
      row.map((x) => -x),
      [1.5, -2.25e-3, 8e9],
      row,
    ];
    const { unit, isShared } = gradientUnits(Float64Array.from(rows.flat()), 3);
    expect([...unit]).toEqual([0, 0, 1, 2, 3, 0]);
    expect([...isShared]).toEqual([1, 1, 0, 0, 0, 1]);
    expect(gradientUnits(new Float64Array(0), 0).unit.length).toBe(0);
  });
});
