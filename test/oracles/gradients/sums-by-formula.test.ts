import { describe, expect, it } from 'vitest';
import { gamma } from '../../../oracles/attention/operand.js';
import type { QueryRow, RowToSolve } from '../../../oracles/gradients/exact-level.js';
import { addRounded, exactSums } from '../../../oracles/gradients/exact-sums.js';
import { addExactShares, shareAdder } from '../../../oracles/gradients/row-shares.js';
import type { RowStatistics } from '../../../oracles/gradients/row-statistics.js';
import {
  sharedSums,
  type Term,
  type GradientContext,
} from '../../../oracles/gradients/shared-sums.js';
import {
  addRow,
  emptySums,
  finishSums,
  isAccurateElement,
  largestOfColumns,
} from '../../../oracles/gradients/sums.js';
import type { GradientBlock } from '../../../oracles/gradients/weigh-tile.js';
import { randomValues } from '../../../properties/problems/values.js';
import { float64FromRational } from '../../../src/arith/index.js';
import { testSeed } from '../../setup/effort.js';

const u = 2 ** -53;

describe('shared sums', () => {
  it('are compensated where they have more than one term, and err by γ(n)² of the sizes then', () => {
    const random = randomValues(testSeed);
    for (const terms of [1, 2, 9]) {
      const sums = sharedSums(2, terms);
      const added = Array.from({ length: terms }, () => ({
        value: random.normal(),
        error: 2 ** -60 * random.uniform(),
        size: 2 ** 40 * random.uniform(),
      }));
      for (const term of added) sums.add(1, term);
      const { values, radius, magnitude } = sums.finish();
      const total = (name: keyof Term) => added.reduce((sum, term) => sum + term[name], 0);
      const [size, error] = [total('size'), total('error')];
      expect(Math.abs(values[1] - total('value'))).toBeLessThanOrEqual(terms * 2 ** -50);
      const ofSizes = terms > 1 ? gamma(terms) ** 2 * size : 0;
      const formula = (error + (u * Math.abs(values[1]) + ofSizes)) * (1 + 2 ** -20);
      expect(radius[1]).toBe(formula);
      expect(magnitude[1]).toBe(size);
      expect([values[0], radius[0], magnitude[0]]).toEqual([0, 0, 0]);
    }
    const cancelling = sharedSums(1, 3);
    for (const value of [2 ** 60, 1, -(2 ** 60)]) cancelling.add(0, { value, error: 0, size: 0 });
    expect(cancelling.finish().values[0]).toBe(1);
  });

  it('are what is poisoned, without an error', () => {
    const sums = sharedSums(4, 2);
    for (let at = 0; at < 4; at++) sums.add(at, { value: 1, error: 1, size: 1 });
    sums.poison(0, Infinity);
    sums.poison(1, Infinity);
    sums.poison(1, -Infinity);
    sums.poison(2, 0);
    const { values, radius, magnitude } = sums.finish();
    expect([...values]).toEqual([Infinity, NaN, 1, 1]);
    expect([...radius.slice(0, 2)]).toEqual([0, 0]);
    expect(radius[2]).toBe(radius[3]);
    expect([...magnitude]).toEqual([Infinity, NaN, 1, 1]);
  });
});

it('exact sums are rounded once, and err by what their terms do', () => {
  const random = randomValues(testSeed);
  for (let run = 0; run < 40; run++) {
    const share = [1n, 3n][run % 2];
    const sums = exactSums(2, 2);
    let exact = 0n;
    let errors = 0;
    // In units of 2^-40.
    for (let term = 0; term < 4; term++) {
      const [integer, exponent] = [random.integer(-9, 9), random.integer(-20, 5)];
      const coefficient = { integers: [0n, BigInt(integer)], exponent, share };
      const radius = Float64Array.of(0, random.uniform());
      const x = random.integer(-3, 3) * 2 ** random.integer(-10, 3);
      const vector = Float64Array.of(0, x);
      sums.add(1, { ...coefficient, values: new Float64Array(2), radius }, 1, vector);
      exact += BigInt(integer) * BigInt(Math.round(x * 2 ** 20)) * (1n << BigInt(exponent + 20));
      errors += radius[1] * Math.abs(x);
    }
    for (const scale of [1, -0.75, 12]) {
      const { value, radius } = sums.rounded(1, 1, scale);
      const quarters = BigInt(scale * 4);
      expect(value).toBe(float64FromRational(exact * quarters, share << 42n));
      const ofTerms = errors * Math.abs(scale) * (1 + 2 ** -20);
      if (errors > 0) expect(radius).toBe(ofTerms + u * Math.abs(value) + 2 ** -1073);
    }
    // Nothing adds to what is multiplied by zeros, and to other rows.
    for (const [row, column] of [
      [1, 0],
      [0, 1],
    ] as const)
      expect(sums.rounded(row, column, 1)).toEqual({ value: 0, radius: 0 });
  }
});

it('coefficients that are added in fp64 bring their errors, those below 2^-170 of others as a floor', () => {
  for (const radius of [2 ** -170 * 8, 2 ** -169 * 8]) {
    const sums = emptySums(2, 2);
    const coefficients = { values: Float64Array.of(9, -3), radius: Float64Array.of(9, radius) };
    const vector = Float64Array.of(2, -5);
    addRounded(sums, 1, coefficients, { at: 1, size: 7, extent: 8 }, vector);
    const isNegligible = radius === 2 ** -170 * 8;
    const error = ((isNegligible ? 0 : radius) + 2 ** -51 * 3) * (1 + 2 ** -20);
    expect([...sums.sum]).toEqual([0, 0, -6, 15]);
    expect([...sums.size]).toEqual([0, 0, 14, 35]);
    expect([...sums.error]).toEqual([0, 0, 2 * error, 5 * error]);
    expect([...sums.additions]).toEqual([0, 1]);
    expect([...sums.floor]).toEqual([0, (isNegligible ? radius : 0) + 2 ** -1070]);
  }
});

describe('sums of tiles', () => {
  it('take a row of a tile with the errors of its factors', () => {
    const sums = emptySums(3, 2);
    const tile = {
      sum: Float64Array.of(0, 0, 0, 5, -6, 0),
      size: Float64Array.of(0, 0, 0, 7, 8, 0),
      stride: 3,
      relative: (row: number) => row * 0.5,
      absolute: Float64Array.of(9, 0.25),
      floor: (row: number) => row * 11,
      largest: Float64Array.of(2, 16),
    };
    for (let times = 1; times <= 2; times++) {
      addRow(sums, 2, tile, 1);
      const of = (...numbers: number[]) => [0, 0, 0, 0, ...numbers.map((x) => x * times)];
      expect([...sums.sum]).toEqual(of(5, -6));
      expect([...sums.size]).toEqual(of(7, 8));
      expect([...sums.error]).toEqual(of(0.5 * 7 + 0.25 * 2, 0.5 * 8 + 0.25 * 16));
      expect([...sums.additions]).toEqual([0, 0, times]);
      expect([...sums.floor]).toEqual([0, 0, 11 * times]);
    }
    expect([...largestOfColumns(Float64Array.of(1, -2, -3, 1, 0, 0), 2)]).toEqual([3, 2]);
  });

  it('become gradients times the scale, with the errors of terms, of sums and of underflow', () => {
    const slack = 1 + 2 ** -5;
    const accuracy = { outputFormat: 'fp32', ulpFraction: 2 ** -10, magnitudeFraction: 0 } as const;
    const random = randomValues(testSeed);
    const sums = emptySums(3, 2);
    for (const row of [0, 2]) {
      for (let at = 2 * row; at < 2 * row + 2; at++) {
        sums.sum[at] = random.normal();
        sums.size[at] = 8 + random.uniform();
        sums.error[at] = row === 2 ? 2 ** -40 : 1;
      }
      sums.additions[row] = 1 + row;
      sums.floor[row] = 0.5;
    }
    const before = { sum: [...sums.sum], size: [...sums.size], error: [...sums.error] };
    const largest = Float64Array.of(0, 3);
    const { gradient, inaccurate } = finishSums(sums, { scale: -0.5, largest, accuracy });
    expect(inaccurate).toEqual([0]);
    for (const row of [0, 2])
      for (let c = 0; c < 2; c++) {
        const at = 2 * row + c;
        const value = -0.5 * before.sum[at];
        const ofSum = gamma(64 + 2 + 1 + row) * slack * before.size[at];
        const radius = 0.5 * (before.error[at] + ofSum) * slack + 2 * u * Math.abs(value);
        const floor = 0.5 * 0.5 * largest[c] * slack + 2 ** -1068 * (1 + row);
        expect(gradient.values[at]).toBe(value);
        expect(gradient.magnitude[at]).toBe(0.5 * before.size[at]);
        expect(Math.abs(gradient.radius[at] / (radius + floor) - 1)).toBeLessThan(2 ** -48);
      }
    expect([...gradient.values.slice(2, 4), ...gradient.radius.slice(2, 4)]).toEqual([0, 0, 0, 0]);
  });

  it('are as accurate as the largest of what is asked for', () => {
    const asked = { outputFormat: 'fp32', ulpFraction: 0, magnitudeFraction: 0 } as const;
    const limits = [
      [isAccurateElement, 3, 100, { ...asked, ulpFraction: 2 ** -4 }, 2 ** -26],
      [isAccurateElement, -3, 100, { ...asked, magnitudeFraction: 2 ** -40 }, 100 * 2 ** -40],
      [isAccurateElement, -3, 0, asked, 3 * 2 ** -52],
      [isAccurateElement, 0, 0, asked, 2 ** -1040],
      [isAccurateElement, 2 ** 200, 0, { ...asked, ulpFraction: 2 ** 60 }, 2 ** (104 + 60)],
    ] as const;
    for (const [is, value, magnitude, accuracy, limit] of limits) {
      expect(is(value, limit, magnitude, accuracy)).toBe(true);
      expect(is(value, limit * (1 + 2 ** -20), magnitude, accuracy)).toBe(false);
    }
    expect(isAccurateElement(1, Infinity, Infinity, { ...asked, magnitudeFraction: 1 })).toBe(
      false,
    );
    expect(isAccurateElement(1, NaN, 1, asked)).toBe(false);
  });
});

/** A context with a bias whose element is 100 head + 10 row + key, and a sink, that write down what is added. */
function recordingContext() {
  const bias: [number, Term][] = [];
  const sink: [number, Term][] = [];
  const context = {
    bias: {
      placesOf: (head: number, row: number) => (key: number) => 100 * head + 10 * row + key,
      add: (at: number, term: Term) => bias.push([at, term]),
    },
    sink: { add: (at: number, term: Term) => sink.push([at, term]) },
    shape: { heads: 2 },
    rules: { sinkOf: (head: number) => (head === 3 ? {} : null) },
  } as unknown as GradientContext;
  return { context, bias, sink };
}

const emptyMean = () => ({
  values: new Float64Array(4),
  radius: new Float64Array(4),
  magnitude: new Float64Array(4),
});

describe('what rows add to dBias, dSink and D', () => {
  it.each([3, 4])(
    'is, of exact rows of head %s, what they are with the errors that they have',
    (head) => {
      const { context, bias, sink } = recordingContext();
      const mean = emptyMean();
      const solved = {
        mean: -5,
        meanRadius: 2 ** -40,
        meanSize: 2 ** 80,
        sinkShare: 0.25,
        scoreDerivatives: { values: Float64Array.of(3, -7), radius: Float64Array.of(2 ** -50, 0) },
        scales: Float64Array.of(11, 13),
      };
      const row = { operands: { head }, row: 2, keys: { visible: Int32Array.of(4, 6) } };
      addExactShares(
        context,
        row as unknown as RowToSolve,
        { solved } as unknown as QueryRow,
        mean,
      );
      expect([mean.values[2], mean.radius[2], mean.magnitude[2]]).toEqual([-5, 2 ** -40, 2 ** 80]);
      expect(bias).toEqual([
        [100 * head + 24, { value: 3, error: 2 ** -50 + u * 3 + 2 ** -1074, size: 11 }],
        [100 * head + 26, { value: -7, error: u * 7 + 2 ** -1074, size: 13 }],
      ]);
      const error = 0.25 * (2 ** -40 + 2 ** -50 * 5) + 2 ** -160 * 2 ** 80 + 2 ** -1070;
      expect(sink).toEqual(head === 3 ? [[1, { value: 1.25, error, size: 0.25 * 2 ** 80 }]] : []);
    },
  );

  it.each([3, 4])('is, of rows of fp64 of head %s, by their statistics, tile by tile', (head) => {
    const { context, bias, sink } = recordingContext();
    const mean = emptyMean();
    const of = (first: number, second: number) => Float64Array.of(first, second, 99);
    const statistics = {
      isUsable: Uint8Array.of(0, 1, 1),
      relative: of(9, 0.5),
      absolute: of(9, 0.25),
      floor: of(9, 2 ** -30),
      sinkShare: of(9, 0.75),
      weightError: of(9, 2 ** -9),
      mean: of(9, -5),
      meanRadius: of(9, 2 ** -10),
      meanSize: of(9, 6),
    } as unknown as RowStatistics;
    const range = (begin: number, end: number) => ({ begin, end });
    const ranges = [[range(0, 99)], [range(62, 66), range(127, 131)]];
    const block = { operands: { head }, firstRow: 1, ranges } as unknown as GradientBlock;
    const visit = shareAdder(context, block, statistics, mean);
    expect([...mean.values]).toEqual([0, 0, -5, 0]);
    expect([...mean.radius]).toEqual([0, 0, 2 ** -10, 0]);
    expect([...mean.magnitude]).toEqual([0, 0, 6, 0]);
    const error = 2 * 0.75 * (2 ** -10 + 2 ** -9 * 5) + 2 ** -30;
    expect(sink).toEqual(head === 3 ? [[1, { value: 3.75, error, size: 4.5 }]] : []);
    const tile = (factor: number) => Float64Array.from({ length: 128 }, (_, at) => factor * at);
    visit?.({ firstKey: 64, derivatives: tile(-1), scales: tile(2), weights: tile(3) });
    const at = (key: number) => 64 + key - 64;
    expect(bias).toEqual(
      [64, 65, 127].map((key) => [
        100 * head + 20 + key,
        {
          value: -at(key),
          error: 0.5 * 2 * at(key) + 0.25 * 3 * at(key) + 2 ** -30,
          size: 2 * at(key),
        },
      ]),
    );
    const without = { ...context, bias: null } as GradientContext;
    expect(shareAdder(without, block, statistics, mean)).toBeNull();
  });
});
