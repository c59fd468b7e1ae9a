/** Rows of made-up numbers that a collector of a structure test walks over, and their errors by definition. */
import * as fc from 'fast-check';
import { expect } from 'vitest';
import { WorkingMemories, type AttentionReference } from '../../../oracles/index.js';
import type { KernelBound, RowBound } from '../../../src/audit/bounds/index.js';
import { outputPlaces } from '../../../src/audit/structure/common-offset.js';
import { NearlyEqual } from '../../../src/audit/structure/error-pool.js';
import type { InstrumentMaker } from '../../../src/audit/structure/instruments.js';
import type { PooledProjections } from '../../../src/audit/structure/pooled-projections.js';
import { RowCollector } from '../../../src/audit/structure/row-collector.js';
import { smoothPlaces } from '../../../src/audit/structure/row-tolerance.js';
import { formats, ulp } from '../../../src/formats/index.js';
import { pseudorandom } from '../../setup/problems.js';
import { handMadeReference } from '../hand-made.js';

/** The sizes of all problems. */
export const [batch, heads, queries, vDim, keys, qkDim] = [2, 2, 3, 3, 96, 7] as const;
const all = batch * heads * queries;
/** Places of an octave. */
export const places = 32;
/** P in fp16, of 4 times the weight. */
const weightScale = 4;
/** Weights of a row: so few different ones that they do not meet in a table by chance; the last is subnormal in P. */
const weightsOf = [0, 0.31, 0.17, 0.11, 0.013, 1e-4, 3e-6] as const;
/** Σ of numbers. */
export const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);

/** Numbers that make a model. */
export interface Drawn {
  readonly seed: number;
  readonly sumsTruncate: boolean;
  readonly hasSinks: boolean;
  readonly isSinkInLse: boolean;
  readonly share: number | null;
  readonly hasErrors: boolean;
  readonly typicalWeight: number;
  readonly addition: number;
  readonly keysOfRow: number;
  readonly isDominated: boolean;
}

/** Models by chance. */
export const drawn: fc.Arbitrary<Drawn> = fc.record({
  seed: fc.integer({ min: 1, max: 2 ** 20 }),
  sumsTruncate: fc.boolean(),
  hasSinks: fc.boolean(),
  isSinkInLse: fc.boolean(),
  share: fc.constantFrom(null, null, 0.9, 0.75),
  hasErrors: fc.boolean(),
  typicalWeight: fc.constantFrom(2 ** -22, 2 ** -9, 0.0624, 0.0626, 0.3),
  addition: fc.constantFrom(2 ** -25, 2 ** -23, 2 ** -12),
  keysOfRow: fc.constantFrom(1, 96, 4000),
  isDominated: fc.boolean(),
});

/** A direction and a pattern of all rows. */
export interface Instrument {
  readonly direction: Float64Array;
  readonly pattern: Float64Array;
}

/** Makes the instruments of rows those that are given. */
export function fillFrom(instruments: readonly Instrument[]): InstrumentMaker {
  return ({ directions, patterns }, from, rows) => {
    const of = (all: Float64Array) => all.subarray(from * vDim, (from + rows) * vDim);
    instruments.forEach(({ direction, pattern }, d) => {
      directions[d].set(of(direction));
      patterns[d].set(of(pattern));
    });
  };
}

/** A model of made-up numbers: an oracle's answer, a kernel's output, bounds, and directions; and the weights of each row. */
export function made(of: Drawn) {
  const random = pseudorandom(of.seed);
  const signed = () => 2 * random();
  const plain = handMadeReference({ batch, heads, queries, vDim, out: () => signed() });
  const numbers = (length: number, one: () => number) => Float64Array.from({ length }, one);
  const maximum = numbers(all, () => 3 * signed());
  const denominator = maximum.map((x) => x + 1 + random());
  const { out } = plain.quantities;
  const reference: AttentionReference = {
    ...plain,
    shape: { ...plain.shape, keys, qkDim },
    quantities: {
      out: { ...out, magnitude: out.values.map((x) => Math.abs(x) + Math.abs(random())) },
      // Less than the denominator where a sink is left out.
      lse: { ...plain.quantities.lse, values: denominator.map((x) => x - Math.abs(random())) },
    },
    maximum,
    denominator,
  };
  const instruments = [0, 1, 2, 3].map(() => ({
    direction: numbers(all * vDim, signed),
    pattern: numbers(all * vDim, signed),
  }));
  const bounds = Array.from({ length: all }, () => ({
    typicalWeight: of.typicalWeight,
    addition: of.addition,
    keys: of.keysOfRow,
    weightRounding: Math.abs(random()),
    // Weights that underflow count where values are as large as they can be.
    range: 2 ** 124 * Math.abs(random()),
    isCoarse: false,
    declared: {
      ofWeights: Math.abs(random()),
      ofScores: Math.abs(random()),
      ofMagnitude: Math.abs(random()),
      ofValue: Math.abs(random()),
      floor: Math.abs(random()),
      halves: Math.abs(random()),
    },
  }));
  const sinks = of.hasSinks ? numbers(heads, () => 4 * signed()) : null;
  const model = {
    reference,
    out: out.values.map((x) => x + random() / 64),
    outputFormat: 'bf16' as const,
    bound: { row: (row: number) => bounds[row] as unknown as RowBound } as unknown as KernelBound,
    makeInstruments: fillFrom(instruments),
    weightGroups: new NearlyEqual(3, -40, 0),
    outputGroups: new NearlyEqual(10, -40, 20),
    sumsTruncate: of.sumsTruncate,
    scoreError: 2 ** -8,
    premises: { elementwise: 2 ** -11, underflow: 2 ** -9, exponential: 2 ** -24 },
    weightFormat: 'fp16' as const,
    weightScale,
    roundingErrors: of.hasErrors ? numbers(places, () => random() / 64) : null,
    kept: of.share === null ? null : { share: of.share, fill: () => undefined },
    roundings: 2,
    sinks,
    isSinkInLse: of.isSinkInLse,
  };
  const weights = Array.from({ length: all }, () => {
    const drawnWeights = Array.from({ length: keys }, (_, j) => {
      const weight = weightsOf[Math.floor(Math.abs(random()) * weightsOf.length)];
      const isOnly = of.isDominated && j > 0;
      const applied = isOnly || random() < -0.4 ? 0 : weight / (of.share ?? 1);
      return { weight, applied, projections: [0, 1, 2, 3].map(signed) };
    });
    return of.isDominated
      ? [{ ...drawnWeights[0], weight: 0.31, applied: 0.31 }, ...drawnWeights.slice(1)]
      : drawnWeights;
  });
  return { model, instruments, bounds, weights };
}
/** A model, and the weights of its rows. */
export type Made = ReturnType<typeof made>;

/** A sum by places of what rows add to a pool. */
function recorder() {
  const added: { mass: number[]; own: number[]; massOfLse: number[] }[] = [];
  const pooled = {
    outputs: new Float64Array(4 * outputPlaces),
    phases: new Float64Array(4 * 3 * places),
    addMass: (mass: Float64Array, own: Float64Array, massOfLse: Float64Array) =>
      added.push({ mass: [...mass], own: [...own], massOfLse: [...massOfLse] }),
  };
  return { added, pooled: pooled as unknown as PooledProjections, phases: pooled.phases };
}

/** Rows from `first` on, collected tile by tile; null for those that are left out. */
export function collect(
  { model, weights }: Pick<Made, 'model' | 'weights'>,
  first: number,
  rows: number,
) {
  const { added, pooled, phases } = recorder();
  const finished = RowCollector.with(new WorkingMemories(), model, places, (collector) => {
    collector.begin(first, rows);
    for (const firstKey of [0, 64]) {
      const block = (of: (key: Made['weights'][number][number]) => number) => {
        const numbers = new Float64Array(64 * 64);
        for (let i = 0; i < rows; i++)
          weights[first + i]
            .slice(firstKey, firstKey + 64)
            .forEach((key, j) => (numbers[64 * i + j] = of(key)));
        return numbers;
      };
      collector.visit({
        firstRow: first,
        rows,
        firstKey,
        keys: Math.min(64, keys - firstKey),
        stride: 64,
        weights: block(({ weight }) => weight),
        applied: block(({ applied }) => applied),
        projections: [0, 1, 2, 3].map((d) => block(({ projections }) => projections[d])),
      });
    }
    collector.end(pooled);
    return Array.from({ length: rows }, (_, i) => {
      const row = collector.finish(first + i, i, pooled);
      expect(collector.isUsed(i)).toBe(row !== null);
      if (row === null) return null;
      const arrays = ['signed', 'norm', 'systematic', 'written', 'common', 'mass'] as const;
      const { known, shifts, rounding, accumulated } = row;
      return {
        ...Object.fromEntries(arrays.map((name) => [name, [...row[name]]])),
        known: [...known],
        accumulated: [...accumulated],
        shifts,
        rounding,
      };
    });
  });
  return { finished, added, phases };
}

/** What is within 2^-36 of a whole number is one. */
const fraction = (y: number) => (Math.abs(y - Math.round(y)) < 2 ** -36 ? 0 : y - Math.floor(y));

/** A row by the formulas of docs/theory/bounds.md, "The structure". */
export function defined(
  { model, instruments, bounds, weights }: Made,
  row: number,
  { sumsTruncate, share }: Drawn,
) {
  const { reference, premises, sinks } = model;
  const { maximum, denominator } = reference;
  const { values, magnitude } = reference.quantities.out;
  const { typicalWeight, addition, declared, range, weightRounding, keys: seen } = bounds[row];
  const { elementwise, underflow, exponential } = premises;
  const met = weights[row].filter(({ weight }) => weight !== 0);
  const columns = [0, 1, 2].map((c) => row * vDim + c);
  const sinkScore = sinks === null ? -Infinity : sinks[Math.floor(row / queries) % heads];
  const sink = Math.exp(sinkScore - denominator[row]);
  // Weights relative to the largest, as they are, and relative to the largest of scores and sink.
  const exponents = [
    (denominator[row] - maximum[row]) / Math.LN2,
    0,
    (denominator[row] - (sinks === null ? 0 : Math.max(maximum[row], sinkScore))) / Math.LN2,
  ];
  const toLargest = Math.exp(denominator[row] - maximum[row]);
  const counts = weightsOf.map((one) => met.filter(({ weight }) => weight === one).length);
  const many = sumsTruncate ? [] : counts.filter((count) => count >= 16);
  const few = sumsTruncate ? [] : counts.filter((count) => count < 16);
  const variance = Math.max(seen, sum(few.map((count) => count ** 2)));
  const perAddition = sumsTruncate ? addition : Math.min(addition, 2 ** -24);
  const error = (d: number, family: number, shift: number) =>
    sum(
      met.map(({ weight, applied, projections }) => {
        const part = fraction(Math.log2(weight) + exponents[family] + shift);
        const isExact = family === 0 && shift === 0 && part === 0;
        return isExact
          ? 0
          : applied * projections[d] * (model.roundingErrors?.[Math.floor(part * places)] ?? 0);
      }),
    );
  const families = sinks === null ? [0, 1] : [0, 1, 2];
  const mass = [0, 1, 2].flatMap((family) =>
    Array.from({ length: smoothPlaces }, (_, place) =>
      sum(
        met
          .map(({ weight }) => weight)
          .filter(
            (weight) =>
              Math.floor(fraction(Math.log2(weight) + exponents[family]) * smoothPlaces) === place,
          ),
      ),
    ),
  );
  const ofLse =
    sinks !== null && !model.isSinkInLse
      ? Math.exp(denominator[row] - reference.quantities.lse.values[row])
      : 1;
  const of = [0, 1, 2, 3].map((d) => {
    const { direction, pattern } = instruments[d];
    const over = (one: (at: number, x: number) => number) =>
      sum(columns.map((at) => one(at, direction[at])));
    const own = over((at, x) => values[at] * x);
    const c = met.map(({ applied, projections }) => applied * projections[d]);
    const w = met.map(({ weight }) => weight);
    // An error that all weights share is without effect.
    const separate = sum(c.map((x, i) => x ** 2 - 2 * own * x * w[i] + (own * w[i]) ** 2));
    const groups = new Map<number, number>();
    c.forEach((x, i) => {
      const group = model.weightGroups.group(w[i] * toLargest);
      groups.set(group, (groups.get(group) ?? 0) + x - own * w[i]);
    });
    const shared = Math.max(separate, sum([...groups.values()].map((x) => x ** 2)));
    // What is left of the error of a typical weight, without the exponential, is that of its score.
    const score = (typicalWeight - exponential) / (Math.sqrt(qkDim) * addition + 4 * elementwise);
    const random =
      exponential +
      Math.max(0, score) * Math.hypot(Math.sqrt(qkDim) * perAddition, 2 * elementwise);
    const size = sum(c.map(Math.abs)) + Math.abs(own) * sum(w);
    const isDominated =
      sum(met.map(({ applied }) => applied ** 2)) >
      (15 / 16) * sum(met.map(({ applied }) => applied)) ** 2;
    const half = over((at, x) => (ulp(formats.bf16, Math.abs(values[at])) / 2) * Math.abs(x));
    const lost = sum(
      met
        .filter(({ weight }) => weight < 2 ** -14 / weightScale)
        .map(({ applied, projections }) => {
          const most = 2 ** -25 / weightScale / (share ?? 1);
          return 2 * Math.min(applied, most) * Math.abs(projections[d]);
        }),
    );
    return {
      signed: over((at, x) => (model.out[at] - values[at]) * x),
      norm: over((at, x) => pattern[at] * x),
      accumulated: Math.sqrt(seen) * perAddition * over((at, x) => magnitude[at] * Math.abs(x)),
      common: Math.hypot(
        random * Math.sqrt(shared),
        own * 2 * elementwise,
        own * Math.sqrt(variance) * perAddition,
      ),
      written: declared.ofScores * size,
      systematic:
        ((seen + 2) * underflow + seen * 2 ** -127 * range + declared.floor) *
          over((_, x) => Math.abs(x)) +
        lost +
        (declared.ofValue + (sumsTruncate ? (seen * addition) / 4 : 0)) *
          over((at, x) => Math.abs(x * values[at])) +
        declared.ofMagnitude * over((at, x) => Math.abs(x) * magnitude[at]) +
        (declared.halves + (isDominated ? 1 : 0)) * half +
        (elementwise + sum(many) * perAddition + sink * typicalWeight) * Math.abs(own) +
        (model.scoreError + (typicalWeight > 1 / 16 ? typicalWeight : 0) + declared.ofWeights) *
          size,
      known: Math.max(
        ...families
          .flatMap((family) => [
            [family, 0] as const,
            ...(share === null ? [] : [[family, -Math.log2(share)] as const]),
          ])
          .map(([family, shift]) => Math.abs(error(d, family, shift))),
      ),
      own,
    };
  });
  const each = (name: keyof (typeof of)[number]) => of.map((one) => one[name]);
  return {
    row: {
      signed: each('signed'),
      norm: each('norm'),
      accumulated: each('accumulated'),
      systematic: each('systematic'),
      written: each('written'),
      common: each('common'),
      known: each('known'),
      rounding: weightRounding,
      mass: mass.map((x) => x * ofLse),
      shifts: exponents.map((one) => one - exponents[0]),
    },
    added: { mass, own: each('own'), massOfLse: mass.map((x) => x * ofLse) },
    sum: [0, 1, 2, 3].map((d) =>
      sum(met.map(({ applied, projections }) => applied * projections[d])),
    ),
  };
}

/** Numbers that are within roundings of each other. */
export function expectClose(actual: unknown, wanted: unknown, path = ''): void {
  if (typeof wanted === 'number') {
    const apart = Math.abs((actual as number) - wanted);
    if (!(apart <= 2 ** -30 * Math.max(Math.abs(wanted), 2 ** -12)))
      expect(actual, path).toBe(wanted);
    return;
  }
  for (const [name, value] of Object.entries(wanted as object))
    expectClose((actual as Record<string, unknown>)[name], value, `${path}.${name}`);
}
