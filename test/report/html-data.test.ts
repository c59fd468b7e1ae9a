import { type Problem, quantities, type Tensor } from '../../src/problem/index.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { attentionOracle, forEachWeightTile } from '../../oracles/index.js';
import {
  auditAccuracy,
  auditOutputs,
  fa4Arithmetic,
  type Audit,
  type AuditOptions,
  type JudgedElements,
} from '../../src/audit/index.js';
import { createHeatMaps } from '../../src/report/html/heat-map-data.js';
import { gatherPlotData } from '../../src/report/html/index.js';
import { createRowScatters } from '../../src/report/html/row-scatter-data.js';
import { createUlpHistogram } from '../../src/report/html/ulp-histogram.js';
import { scaled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { filledProblem, pseudorandom, tensor } from '../setup/problems.js';

const inTurn = turns(import.meta.url);

const bf16 = (shape: readonly number[], value: (i: number) => number): Tensor =>
  tensor('bf16', shape, value);

interface Sizes {
  readonly heads: number;
  readonly queries: number;
  readonly keys: number;
  readonly dim: number;
  readonly causal: boolean;
}

function problemOf({ causal, ...frame }: Sizes, seed = 7): Problem {
  const random = pseudorandom(seed);
  const wide = () => 4 * random();
  return filledProblem(frame, { q: wide, k: wide, v: random }, { causal });
}

/** Audits an output near the oracle's, and what the audit hands over. */
function judged(
  problem: Problem,
  change: (value: number, i: number) => number = (value) => value,
  options: AuditOptions = {},
): { readonly audit: Audit; readonly elements: JudgedElements } {
  const reference = attentionOracle(problem, { accuracy: auditAccuracy('bf16') });
  const out = bf16([1, problem.q.shape[1], problem.q.shape[2], problem.v.shape[3]], (i) =>
    change(reference.quantities.out.values[i], i),
  );
  let elements: JudgedElements | undefined;
  const audit = auditOutputs(
    problem,
    { out, lse: null },
    {
      reference,
      diagnose: false,
      ...options,
      onElements: (handed) => {
        elements = handed;
      },
    },
  );
  return { audit, elements: elements! };
}

const sizes = fc.record({
  heads: fc.integer({ min: 1, max: 3 }),
  queries: fc.integer({ min: 1, max: 40 }),
  keys: fc.integer({ min: 1, max: 40 }),
  dim: fc.integer({ min: 1, max: 20 }),
  causal: fc.boolean(),
});
const damage = fc.record({ at: fc.nat(10_000), by: fc.double({ min: -2, max: 2, noNaN: true }) });

describe("a page's data", () => {
  inTurn('says of maxima and counts what the audit says', () => {
    fc.assert(
      fc.property(sizes, damage, (of, { at, by }) => {
        const elements = of.heads * of.queries * of.dim;
        const { audit, elements: handed } = judged(problemOf(of), (value, i) =>
          i === at % elements ? value + by : value,
        );
        const { heat, ulps, scatters } = gatherPlotData(handed);
        const largest = Math.max(...heat.maps.map((map) => map.largest));
        expect(largest).toBe(Math.fround(audit.outputs.out.elements.worstRatio));
        const counted = ulps.bins.reduce((sum, { count }) => sum + count, ulps.exact);
        expect(counted).toBe(
          audit.outputs.out.error.elements - audit.outputs.out.error.nonFinite.output,
        );
        const last = ulps.bins.at(-1);
        if (last !== undefined && last.low > 0) {
          expect(audit.outputs.out.error.ulps.max).toBeGreaterThan(last.low * (1 - 1e-12));
          expect(audit.outputs.out.error.ulps.max).toBeLessThanOrEqual(last.high * (1 + 1e-12));
        }
        // Rows without keys have no place in a scatter, and no error unless the damage hit them.
        const visible = scatters.find(({ name }) => name === 'visible keys')!;
        const inScatter = visible.groups.reduce(
          (most, { largestError }) => Math.max(most, largestError),
          0,
        );
        const damagedRow = Math.floor((at % elements) / of.dim);
        if (handed.rows.visibleKeys[damagedRow] > 0)
          expect(inScatter).toBe(audit.outputs.out.error.absolute.max);
      }),
      { numRuns: scaled(10) },
    );
  });

  test('loses no outlier, however coarse its cells are', () => {
    const of = { heads: 5, queries: 70, keys: 9, dim: 33, causal: false };
    const { elements } = judged(problemOf(of));
    fc.assert(
      fc.property(
        fc.nat(of.heads * of.queries * of.dim - 1),
        fc.integer({ min: 1, max: 400 }),
        fc.integer({ min: 0, max: 6 }),
        (at, cells, maps) => {
          const out = elements.outputs.out.values.slice();
          out[at] += 3;
          const share =
            Math.abs(out[at] - elements.reference.quantities.out.values[at]) /
            elements.bounds.quantities.out.total[at];
          const heat = createHeatMaps(
            {
              ...elements,
              outputs: { ...elements.outputs, out: { ...elements.outputs.out, values: out } },
            },
            { cells, maps },
          );
          const head = Math.floor(at / (of.queries * of.dim));
          const shown = heat.maps.find((map) => map.head === null || map.head === head)!;
          const query = Math.floor(at / of.dim) % of.queries;
          const row = Math.floor(query / heat.rowsPerCell);
          const column = Math.floor((at % of.dim) / heat.columnsPerCell);
          expect(shown.shares[row * heat.columnCells + column]).toBe(Math.fround(share));
          expect(shown.largest).toBe(Math.fround(share));
          expect(heat.maps.length + heat.leftOut).toBe(maps === 0 ? 1 : of.heads);
          expect(heat.rowCells * heat.columnCells).toBeLessThanOrEqual(
            Math.max(1, Math.floor(cells / Math.max(1, Math.min(of.heads, maps)))),
          );
          expect(heat.rowCells).toBe(Math.ceil(of.queries / heat.rowsPerCell));
          expect(heat.columnCells).toBe(Math.ceil(of.dim / heat.columnsPerCell));
        },
      ),
    );
  });

  test('marks what is NaN or infinite and measures the rest', () => {
    const of = { heads: 1, queries: 4, keys: 4, dim: 4, causal: false };
    const { elements } = judged(problemOf(of), (value, i) => (i < 4 ? NaN : value));
    const [map] = createHeatMaps(elements).maps;
    expect([...map!.special]).toEqual([1, 1, 1, 1, ...new Array<number>(12).fill(0)]);
    expect([...map!.shares].slice(0, 4)).toEqual([NaN, NaN, NaN, NaN]);
    const histogram = createUlpHistogram(elements);
    expect(histogram.bins.reduce((sum, { count }) => sum + count, histogram.exact)).toBe(12);
    for (const { rows } of createRowScatters(elements)) expect(rows).toBe(3);
  });

  inTurn('keeps the worst row of many, and says how many there were', () => {
    const of = { heads: 4, queries: 250, keys: 240, dim: 2, causal: true };
    const { elements, audit } = judged(problemOf(of), (value, i) => value + (i === 1600 ? 5 : 0));
    for (const { rows, points, groups } of createRowScatters(elements)) {
      // The first 10 queries of each head see no key.
      expect(rows).toBe(960);
      expect(rows).toBe(groups.reduce((sum, group) => sum + group.rows, 0));
      expect(points.length).toBeLessThanOrEqual(900);
      const worst = points.reduce((a, b) => (a.error >= b.error ? a : b));
      expect(worst).toMatchObject({ row: 800, error: audit.outputs.out.error.absolute.max });
      for (const [i, { low, high }] of groups.entries()) {
        expect(low).toBeLessThanOrEqual(high);
        if (i > 0) expect(low).toBeGreaterThan(groups[i - 1].high);
      }
    }
  });
});

describe('a scatter that is thinned out', () => {
  test('keeps the worst among rows that are hard to tell apart', () => {
    fc.assert(
      fc.property(fc.nat(4999), (worst) => {
        const rows = 5000;
        const none = new Float64Array(0);
        const bounds = { total: none, systematic: none, known: none, deviation: none };
        const zeros = new Float64Array(rows);
        // All in one cell of any grid that a reader could tell the points of apart.
        const out = zeros.map((_, row) => (row === worst ? 1.001 : 1 + (row % 7) * 1e-4));
        const scatters = createRowScatters({
          outputs: { out: { quantity: quantities[0], format: 'fp64', values: out }, lse: null },
          bounds: { quantities: { out: bounds, lse: bounds }, unit: new Int32Array(0) },
          rows: { visibleKeys: new Int32Array(rows).fill(8), entropy: zeros, lag: zeros },
          reference: {
            shape: {
              batch: 1,
              heads: 1,
              kvHeads: 1,
              groupSize: 1,
              queries: rows,
              keys: 8,
              qkDim: 1,
              vDim: 1,
            },
            quantities: {
              out: { values: zeros, radius: none, magnitude: none },
              lse: { values: zeros, radius: none, magnitude: null },
            },
            maximum: zeros,
            denominator: zeros,
            level: new Uint8Array(0),
          },
        });
        for (const { points, rows: counted } of scatters) {
          expect(counted).toBe(rows);
          expect(points.length).toBeLessThan(900);
          expect(points).toContainEqual(expect.objectContaining({ row: worst, error: 1.001 }));
        }
      }),
      { numRuns: scaled(5) },
    );
  });
});

describe('statistics of rows', () => {
  test('the entropy of equal weights is the logarithm of the number of keys', () => {
    const problem = {
      ...problemOf({ heads: 1, queries: 33, keys: 33, dim: 4, causal: true }),
      scale: 0,
    };
    const { entropy, visibleKeys } = judged(problem).elements.rows;
    entropy.forEach((bits, row) => {
      expect(visibleKeys[row]).toBe(row + 1);
      expect(bits).toBeCloseTo(Math.log2(row + 1), 10);
    });
  });

  test('the entropy is between 0 and that, and NaN without keys', () => {
    fc.assert(
      fc.property(sizes, fc.integer({ min: 1, max: 1e6 }), (of, seed) => {
        const { entropy, visibleKeys } = judged(problemOf(of, seed)).elements.rows;
        entropy.forEach((bits, row) => {
          const keys = visibleKeys[row];
          if (keys === 0) expect(bits).toBeNaN();
          else {
            expect(bits).toBeGreaterThanOrEqual(0);
            expect(bits).toBeLessThanOrEqual(Math.log2(keys) + 1e-10);
          }
        });
      }),
      { numRuns: scaled(8) },
    );
  });

  test('a maximum lags by less than the threshold, and where weights say that it does', () => {
    const problem = problemOf({ heads: 1, queries: 64, keys: 300, dim: 64, causal: false });
    const threshold = 4;
    const arithmetic = fa4Arithmetic(problem, { rescaleThreshold: threshold });
    const { reference, rows } = judged(problem, undefined, { arithmetic }).elements;
    // The kernel's rule from all weights at once: blocks from the last to the first.
    const largest = Array.from({ length: 64 }, () => [-Infinity, -Infinity, -Infinity]);
    forEachWeightTile(problem, reference, {
      begin: () => {},
      end: () => {},
      visit: ({ firstRow, rows, firstKey, keys, stride, weights }) => {
        for (let i = 0; i < rows; i++)
          for (let j = 0; j < keys; j++) {
            const ofRow = largest[firstRow + i];
            const block = Math.floor((firstKey + j) / 128);
            ofRow[block] = Math.max(ofRow[block], Math.log2(weights[i * stride + j]));
          }
      },
    });
    const lags = largest.map((blocks) => {
      let used = -Infinity;
      for (const block of [...blocks].reverse()) if (block - used > threshold) used = block;
      return Math.max(...blocks) - used;
    });
    expect(lags.some((lag) => lag > 0)).toBe(true);
    expect(lags.every((lag) => lag <= threshold)).toBe(true);
    rows.lag!.forEach((lag, row) => expect(lag).toBeCloseTo(lags[row], 9));
  });

  test('are not taken where nobody asks, and change no verdict', () => {
    const problem = problemOf({ heads: 2, queries: 20, keys: 150, dim: 8, causal: false });
    const { audit, elements } = judged(problem);
    const out: Tensor = bf16([1, 2, 20, 8], (i) => elements.outputs.out.values[i]);
    const { reference, bounds } = elements;
    const plain = auditOutputs(problem, { out, lse: null }, { reference, diagnose: false });
    expect(audit).toEqual(plain);
    expect(elements.rows.lag).toBeNull();
    // Bounds that are handed over again are those that would be made.
    const again = auditOutputs(problem, { out, lse: null }, { reference, bounds, diagnose: false });
    expect(again).toEqual(plain);
  });
});
