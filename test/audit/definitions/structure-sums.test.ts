import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attentionOracle, WorkingMemories } from '../../../oracles/index.js';
import { problemPremises } from '../../../src/audit/premises/resolve-premises.js';
import {
  largestShiftedRounding,
  outputPlaces,
} from '../../../src/audit/structure/common-offset.js';
import { SelfNormalised } from '../../../src/audit/structure/declared/self-normalised.js';
import { ErrorPool, NearlyEqual } from '../../../src/audit/structure/error-pool.js';
import { RowElements } from '../../../src/audit/structure/row-elements.js';
import {
  leastTolerance,
  shareOfLargest,
  smoothPlaces,
  squaresAt,
  type RowProjections,
} from '../../../src/audit/structure/row-tolerance.js';
import { WorstResults, untestedStructure } from '../../../src/audit/structure/structure-result.js';
import { alarmDeviations } from '../../../src/audit/structure/structure-statistic.js';
import { formats, ulp } from '../../../src/formats/index.js';
import { filledProblem, pseudorandom } from '../../setup/problems.js';

const near = (a: number, b: number) => {
  if (a !== b && !(Math.abs(a - b) <= 1e-12 * Math.max(Math.abs(b), 1))) expect(a).toBe(b);
};
const size = fc.integer({ min: 0, max: 64 }).map((x) => x / 8);
const signed = fc.integer({ min: -64, max: 64 }).map((x) => x / 8);
const three = (one: fc.Arbitrary<number>) => fc.array(one, { minLength: 3, maxLength: 3 });
const rowOfUnit = fc.record({
  unit: fc.integer({ min: 0, max: 3 }),
  signed: three(signed),
  known: three(size),
  written: three(size),
  systematic: three(size),
  weights: three(size),
  outputs: three(size),
  others: three(size),
  curvature: three(size),
  lse: fc.option(fc.record({ error: signed, random: size, systematic: size })),
});
type Row = typeof rowOfUnit extends fc.Arbitrary<infer T> ? T : never;

function collect(into: SelfNormalised, rows: readonly Row[]): void {
  const of = (x: readonly number[]) => Float64Array.from(x);
  for (const { unit, curvature, lse, weights, outputs, others, ...row } of rows) {
    const projections = {
      signed: of(row.signed),
      known: of(row.known),
      written: of(row.written),
      systematic: of(row.systematic),
    } as unknown as RowProjections;
    const variances = { weights: of(weights), outputs: of(outputs), others: of(others) };
    into.add({ row: projections, variances, lse }, unit, of(curvature));
  }
}

/** What a row adds to the sums of a channel: the instruments of scale and bias are 0 and 2, and the LSE is the last channel. */
function addedBy(row: Row, channel: number) {
  if (channel === 2)
    return row.lse === null
      ? null
      : {
          x: row.lse.error,
          random: row.lse.random,
          systematic: row.lse.systematic + row.curvature[2],
          written: 0,
        };
  const d = 2 * channel;
  const ofWeights = Math.max(row.weights[d], row.known[d] ** 2);
  return {
    x: row.signed[d],
    random: Math.sqrt(ofWeights + row.outputs[d] + row.others[d]),
    systematic: row.systematic[d] - row.written[d] + row.curvature[channel],
    written: row.written[d],
  };
}

describe('sums that are told by their own spread', () => {
  it('are those of Theorem 14, in whatever order rows come and by whatever thread', () => {
    fc.assert(
      fc.property(fc.array(rowOfUnit, { maxLength: 12 }), size, fc.nat(12), (rows, z, cut) => {
        const whole = new SelfNormalised();
        collect(whole, rows.slice(3));
        whole.clear();
        collect(whole, rows.slice(0, cut));
        const rest = new SelfNormalised();
        collect(rest, rows.slice(cut));
        whole.mergeState(rest.state());
        for (const channel of [0, 1, 2]) {
          const units = new Map<number, { x: number; random: number; systematic: number }>();
          let [written, curvature] = [0, 0];
          for (const row of rows) {
            const added = addedBy(row, channel);
            if (added === null) continue;
            written += added.written;
            curvature += row.curvature[channel];
            const sums = units.get(row.unit) ?? { x: 0, random: 0, systematic: 0 };
            sums.x += added.x;
            sums.random += added.random;
            sums.systematic += added.systematic;
            units.set(row.unit, sums);
          }
          const all = [...units.values()];
          const total = (of: (unit: (typeof all)[number]) => number) =>
            all.reduce((sum, unit) => sum + of(unit), 0);
          near(
            whole.sum(channel),
            total(({ x }) => x),
          );
          near(whole.written(channel), written);
          const trace = total(({ random }) => random ** 2);
          near(
            whole.usual(channel, z),
            total(({ systematic }) => systematic) + z * Math.sqrt(trace),
          );
          // Σ a² by the tail of a sum of squares: tr + 2 √(Σ σ⁴ t) + 2 max σ² t, t = z²/2.
          const t = z ** 2 / 2;
          const largest = Math.max(0, ...all.map(({ random }) => random ** 2));
          const q = trace + 2 * Math.sqrt(total(({ random }) => random ** 4) * t) + 2 * largest * t;
          const spread =
            Math.sqrt(total(({ x }) => x ** 2)) +
            Math.sqrt(q) +
            Math.sqrt(total(({ systematic }) => systematic ** 2));
          near(whole.tolerance(channel, z), z * spread + curvature);
        }
        expect(whole.lseRows).toBe(rows.filter(({ lse }) => lse !== null).length);
      }),
    );
  });
});

describe('tolerances', () => {
  it('take each kind of rounding at its worst or by chance, whichever is less in the end', () => {
    const ways = fc.array(fc.record({ known: size, variance: size }), {
      minLength: 1,
      maxLength: 3,
    });
    fc.assert(
      fc.property(ways, ways, size, size, (weights, outputs, others, z) => {
        const all = weights.flatMap((a) =>
          outputs.map((b) => a.known + b.known + z * Math.sqrt(a.variance + b.variance + others)),
        );
        near(leastTolerance(z, weights, outputs, others), Math.min(...all));
      }),
    );
  });

  it('have the most that an offset makes of roundings by their place', () => {
    const places = fc.array(signed, { minLength: smoothPlaces, maxLength: smoothPlaces });
    fc.assert(
      fc.property(places, places, (first, second) => {
        const squares = Float64Array.from([...first, ...second], (x) => x * x);
        const half = (place: number) => 4 ** (-(place % smoothPlaces) / smoothPlaces);
        const own = squares.subarray(smoothPlaces);
        const all = own.reduce((a, b) => a + b, 0);
        const moved = own.map((_, shift) =>
          own.reduce((sum, x, place) => sum + x * half(place + shift), 0),
        );
        near(shareOfLargest(squares, 1), all === 0 ? 1 : Math.max(...moved) / all);
        const smooth = Float64Array.from([...first, ...second]);
        near(
          squaresAt(smooth, 1),
          second.reduce((sum, x) => sum + x * x, 0),
        );
        const byPlace = Float64Array.from([...first, ...second]);
        // In half ulps, an output at a part f of its ulp is rounded by −2f, or by 2 − 2f from the middle on.
        const error = (f: number) => (f < 0.5 ? -2 * f : 2 - 2 * f);
        const shifted = Array.from({ length: outputPlaces }, (_, shift) =>
          Math.abs(
            byPlace.reduce(
              (sum, x, place) =>
                sum + x * error((((place + shift) % outputPlaces) + 0.5) / outputPlaces),
              0,
            ),
          ),
        );
        near(largestShiftedRounding(byPlace), Math.max(...shifted));
      }),
      { numRuns: 20 },
    );
  });

  it('alarm at the rate that all tests together have', () => {
    for (const [count, rate] of [
      [1, 0.05],
      [100, 1e-3],
    ] as const) {
      const z = alarmDeviations(count, rate);
      near(count * 2 * Math.exp(-(z ** 2) / 2), rate);
    }
    expect(alarmDeviations(0, 0.01)).toBe(alarmDeviations(1, 0.01));
  });
});

describe('the outputs of a row', () => {
  it('are projected with what their rounding and their sums may do', () => {
    const random = pseudorandom(3);
    const problem = filledProblem({ heads: 1, queries: 3, keys: 4, dim: 5 }, random);
    const reference = attentionOracle(problem);
    const { values, magnitude } = reference.quantities.out;
    const out = values.map((x) => x + random() / 64);
    const instruments = [0, 1, 2, 3].map(() => ({
      direction: values.map(() => random()),
      pattern: values.map(() => random()),
    }));
    const outputGroups = new NearlyEqual(10, -40, 20);
    // One output is that of another column again: they are a group.
    values[14] = values[13];
    const rules = { vDim: 5, outputFormat: 'bf16', outputGroups } as const;
    RowElements.with(new WorkingMemories(), rules, (rows) => {
      rows.load(0, 3, reference, out);
      instruments.forEach(({ direction, pattern }, d) => {
        rows.directions[d].set(direction);
        rows.patterns[d].set(pattern);
      });
      rows.measure(3);
      for (const row of [2, 0, 2]) {
        expect(rows.isMeasured(row)).toBe(true);
        const found = rows.project(row, 2 ** -10);
        instruments.forEach(({ direction, pattern }, d) => {
          const columns = [0, 1, 2, 3, 4].map((c) => row * 5 + c);
          const sum = (term: (at: number) => number) =>
            columns.reduce((total, at) => total + term(at), 0);
          const x = (at: number) => direction[at];
          const half = (at: number) => ulp(formats.bf16, Math.abs(values[at])) / 2;
          const ofSums = (at: number) => 2 ** -10 * magnitude[at];
          const wanted = {
            signed: sum((at) => (out[at] - values[at]) * x(at)),
            outputWorst: sum((at) => half(at) * Math.abs(x(at))),
            accumulated: sum((at) => ofSums(at) * Math.abs(x(at))),
            total: sum((at) => Math.abs(x(at))),
            ofOutputs: sum((at) => Math.abs(values[at] * x(at))),
            ofMagnitudes: sum((at) => magnitude[at] * Math.abs(x(at))),
          };
          for (const [name, number] of Object.entries(wanted))
            near(found[name as keyof typeof wanted][d], number);
          near(
            rows.norm(row)[d],
            sum((at) => pattern[at] * x(at)),
          );
          near(
            rows.own(row)[d],
            sum((at) => values[at] * x(at)),
          );
          const byPlace = new Float64Array(outputPlaces);
          for (const at of columns) {
            const ulps = Math.abs(values[at]) / (2 * half(at));
            const place = Math.floor((ulps % 1) * outputPlaces);
            byPlace[place] += Math.sign(values[at]) * half(at) * x(at);
          }
          byPlace.forEach((sums, place) => near(found.places[d * outputPlaces + place], sums));
          // At random, each by √(half² + sums²) in both directions alike.
          const errors = columns.map(
            (at) => Math.sign(values[at]) * Math.hypot(half(at), ofSums(at)) * x(at),
          );
          const pool = new ErrorPool(1);
          errors.forEach((error, c) =>
            pool.addAll(outputGroups.group(Math.abs(values[row * 5 + c])), Float64Array.of(error)),
          );
          expect(found.pool.view().groups).toEqual(pool.view().groups);
          expect(pool.view().groups.length).toBe(row === 2 ? 4 : 5);
          for (const of of ['absolute', 'coherent', 'independent', 'squared'] as const)
            near(found.pool[of](d), pool[of]());
          const { channels, sums, squares } = found.pool.view();
          pool.view().sums.forEach((one, place) => near(sums[place * channels + d], one));
          pool.view().squares.forEach((one, place) => near(squares[place * channels + d], one));
        });
      }
    });
  });
});

describe('the worst results', () => {
  const result = (statistic: number, threshold: number, of = {}) =>
    ({
      test: 'scale',
      scope: 'head',
      head: 0,
      firstRow: 4,
      rows: 8,
      firstKey: null,
      keys: null,
      statistic,
      threshold,
      ...of,
    }) as const;

  it('are those that use most of their threshold, by test and scope', () => {
    const worst = new WorstResults();
    worst.add(result(1, 4));
    worst.add(result(-2, 4));
    worst.add(result(3, 100));
    worst.add(result(9, Infinity));
    worst.add(result(0, 0, { scope: 'tile' }));
    worst.add(result(1, 4, { test: 'bias', lastRow: 90 }));
    expect(worst.list()).toMatchObject([
      { test: 'scale', scope: 'head', statistic: -2, lastRow: 11 },
      { test: 'scale', scope: 'tile', statistic: 0 },
      { test: 'bias', statistic: 1, lastRow: 90 },
    ]);
    expect([0.4, 0.5, 0.6, NaN].map((use) => worst.isBeyond('scale', 'head', use))).toEqual([
      false,
      false,
      true,
      true,
    ]);
    expect(worst.isBeyond('bias', 'row', 0)).toBe(true);
    expect(() => worst.add(result(NaN, 1))).toThrow();
    expect(() => worst.add(result(1, NaN))).toThrow();
  });

  it('say why a test has none', () => {
    const problem = filledProblem({ heads: 1, queries: 2, keys: 256, dim: 2 }, () => 0.5);
    const premises = problemPremises(problem, 'bf16');
    const { shape } = attentionOracle(problem);
    type Situation = Parameters<typeof untestedStructure>[3];
    const reasons = (
      of: Partial<typeof premises>,
      situation: Partial<Situation> = {},
      keys = 256,
    ) => {
      const all = { hasLse: true, isThin: false, ...situation };
      const list = untestedStructure([], { ...shape, keys }, { ...premises, ...of }, all);
      return Object.fromEntries(list.map(({ test, reason }) => [test, reason]));
    };
    const usual = reasons({});
    const common = usual['scale'];
    expect(Object.keys(usual).length).toBe(6);
    expect(new Set(Object.values(usual)).size).toBe(1);
    const others = (of: Record<string, string>) =>
      Object.keys(of).filter((test) => of[test] !== common);
    expect(others(reasons({}, {}, 128))).toEqual(['key-tile']);
    expect(others(reasons({}, {}, 129))).toEqual([]);
    expect(others(reasons({ maximum: 'group' }))).toEqual(['key-tile']);
    expect(others(reasons({}, { isThin: true }))).toEqual(['key-tile']);
    expect(others(reasons({}, { hasLse: false }))).toEqual(['lse-mean']);
    expect(others(reasons({ isUsual: false }))).toEqual(['truncation', 'dispersion', 'lse-mean']);
  });
});
