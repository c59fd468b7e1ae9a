import { describe, expect, it } from 'vitest';
import {
  attentionOracle,
  gradientOracle,
  type Gradient,
  type GroupGradients,
} from '../../../../oracles/index.js';
import {
  distanceToFormat,
  outputRounding,
  roundingSpread,
} from '../../../../src/audit/bounds/index.js';
import {
  createFinish,
  noErrors,
  type ElementErrors,
} from '../../../../src/audit/gradients/bounds/finish-gradient.js';
import {
  placeCount,
  techniquePlaces,
  techniquesByPlace,
} from '../../../../src/audit/gradients/bounds/gradient-techniques.js';
import {
  emptyGradientBound,
  type GradientTechniqueBound,
} from '../../../../src/audit/gradients/bounds/group-bounds.js';
import {
  anyGradientPremises,
  createGradientBounds,
  createSharedBounds,
} from '../../../../src/audit/gradients/bounds/index.js';
import {
  pairArithmetic,
  sumErrors,
} from '../../../../src/audit/gradients/bounds/pair-arithmetic.js';
import {
  createScoreSharer,
  emptyScoreShare,
  scoreArithmetic,
} from '../../../../src/audit/gradients/bounds/score-shares.js';
import {
  addToTable,
  emptyTechniqueSums,
  techniqueTable,
} from '../../../../src/audit/gradients/bounds/technique-table.js';
import { createRowErrors } from '../../../../src/audit/gradients/bounds/row-errors.js';
import type { FormatName } from '../../../../src/formats/index.js';
import { testSeed } from '../../../setup/effort.js';
import { filledProblem, tensor } from '../../../setup/problems.js';
import { bellShaped } from '../gradient-case.js';
import { addToRow, emptyRowSums, plainPairs } from './plain-sums.js';
import { coarseArithmetic, drawFrom, expectAlike } from './random-pairs.js';

const seed = (testSeed % 1_000_003) + 23;
const up = 1 + 2 ** -12;
const { lseInput, delta, accumulate, groupSum, scale, outputRound } = techniquePlaces;

type Arithmetic = Pick<ReturnType<typeof pairArithmetic>, 'elementwise' | 'elementwiseVariance'>;

/** The bound of an element: Theorems 8 and 9, and the spread. */
function finished(
  a: Arithmetic,
  format: FormatName,
  sum: ReturnType<typeof sumErrors>,
  growth: number,
  [exact, radius]: readonly [number, number],
  of: ElementErrors,
) {
  const value = exact + of.shift;
  const size = Math.abs(value);
  const grown = (x: number) => growth * up * x;
  const worst = {
    [lseInput]: grown(of.lseInput),
    [delta]: grown(of.delta),
    [accumulate]: grown(sum.worst * of.magnitude),
    [groupSum]: grown(of.groupSum),
    [scale]: up * (3 * a.elementwise * size + of.floor),
  };
  const partials = Math.min(of.partials, ((of.magnitude + size) / 2) ** 2);
  const variance = {
    [of.knownOf]: of.known ** 2,
    [lseInput]: of.lseVariance,
    [delta]: of.deltaVariance,
    [accumulate]: of.alike * sum.walk ** 2 * partials,
    [groupSum]: of.groupVariance,
    [scale]: a.elementwiseVariance * value ** 2,
  };
  const total = (all: Readonly<Record<number, number>>) =>
    Object.values(all).reduce((x, y) => x + y, 0);
  const before = grown(of.pairs) + total(worst) + radius;
  const spread = of.pairVariance + total(variance);
  const half = Math.min(
    outputRounding(format, value, before),
    distanceToFormat(format, value) + before,
  );
  const typical = Math.min(
    before,
    of.systematic + (sum.toZero + a.elementwise / 2) * size + of.floor + radius,
  );
  const rounded = roundingSpread(format, value, {
    predicted: 0,
    noise: Math.sqrt(spread),
    systematic: typical,
  });
  const ofOutput = rounded.variance + (rounded.known ?? 0) ** 2;
  const reach = 12 * Math.sqrt(spread) + typical;
  const isNear = rounded.known === null && reach < outputRounding(format, value, 0);
  return {
    shares: {
      worst: { ...worst, [outputRound]: half },
      variance: { ...variance, [outputRound]: ofOutput },
    },
    numbers: {
      total: before + half,
      systematic: typical + rounded.systematic,
      known: rounded.known ?? 0,
      reach: isNear ? reach : 0,
      deviation: Math.sqrt(spread + ofOutput),
      shift: of.shift,
      operands: of.known,
    },
  };
}

describe('an element is bounded as Theorems 8 and 9 say, and technique by technique', () => {
  const draw = drawFrom(seed);
  const { between, flips } = draw;
  const drawn = (size: number): ElementErrors => {
    const small = () => size * between(0.2, 1);
    return Object.assign(noErrors({ knownOf: 5, alike: 1 + draw.count(3) }), {
      shift: between(-0.1, 0.1),
      pairs: small(),
      pairVariance: small() ** 2,
      known: (flips() ? 1 : -1) * small(),
      byOthers: Float64Array.from([small(), small(), small()]),
      magnitude: 4 * between(0.5, 1),
      partials: flips() ? Infinity : between(0.1, 0.5),
      lseInput: small(),
      lseVariance: small() ** 2,
      delta: small(),
      deltaVariance: small() ** 2,
      groupSum: small(),
      groupVariance: small() ** 2,
      systematic: small(),
      floor: small(),
    });
  };

  it.each(['bf16', 'fp16', 'fp32', 'fp64'] as const)('%s', (format) => {
    for (let i = 0; i < 60; i++) {
      const size = 2 ** -(4 + draw.count(40));
      const a = coarseArithmetic(draw);
      const fine = { ...a, elementwise: size * a.elementwise, elementwiseVariance: size ** 2 };
      const sum = { worst: size, walk: size * between(0.5, 1), toZero: size * between(0.2, 1) };
      const growth = between(1, 1.1);
      const errors = drawn(size);
      const exact = {
        values: Float64Array.from([0, between(-2, 2)]),
        radius: Float64Array.from([0, size / 9]),
        magnitude: new Float64Array(2),
      };
      const bound = emptyGradientBound(2, 1, 2);
      createFinish(fine, format, { sum, growth }).element(bound, 1, 1, exact, errors);
      const [value, radius] = [exact.values[1], exact.radius[1]];
      const { numbers, shares } = finished(fine, format, sum, growth, [value, radius], errors);
      for (const [name, x] of Object.entries(numbers))
        expectAlike(bound[name as 'total'][1], x, name);
      for (const name of ['worst', 'variance'] as const)
        for (const [place, x] of Object.entries(shares[name]))
          expectAlike(bound.techniques[name][placeCount + Number(place)], x, `${name} of ${place}`);
      expect(bound.byOthers.map((of) => of[1])).toEqual([...errors.byOthers.subarray(0, 2)]);
      expect(bound.total[0]).toBe(0);
    }
  });

  it('and by nothing where it may leave the format, or fp32 on its way', () => {
    const a = { elementwise: 0, elementwiseVariance: 0 } as ReturnType<typeof pairArithmetic>;
    const sum = { worst: 0, walk: 0, toZero: 0 };
    const totalOf = (format: FormatName, value: number, shift = 0) => {
      const bound = emptyGradientBound(1, 1, 1);
      const errors = Object.assign(noErrors({ knownOf: 5, alike: 1 }), { shift, known: 3 });
      errors.byOthers.fill(2);
      const exact: Gradient = {
        values: Float64Array.of(value),
        radius: new Float64Array(1),
        magnitude: new Float64Array(1),
      };
      createFinish(a, format, { sum, growth: 1 }).element(bound, 0, 0, exact, errors);
      return bound;
    };
    for (const [format, most] of [
      ['fp16', 65520],
      ['bf16', 2 ** 120],
      ['fp32', 2 ** 120],
    ] as const) {
      expect(totalOf(format, most * (1 - 2 ** -20)).total[0]).toBeLessThan(Infinity);
      const beyond = totalOf(format, most);
      expect([beyond.total[0], beyond.systematic[0], beyond.deviation[0]]).toEqual(
        Array(3).fill(Infinity),
      );
      expect([beyond.operands[0], beyond.byOthers[0][0]]).toEqual([0, 0]);
      expect(beyond.techniques.worst[outputRound]).toBe(Infinity);
    }
    expect(totalOf('fp64', 2 ** 500).total[0]).toBeLessThan(Infinity);
    expect(totalOf('fp16', 1, Infinity).shift[0]).toBe(0);
    expect(totalOf('fp16', 65519, 2).shift[0]).toBe(2);
  });
});

describe('a table of techniques', () => {
  it('has means over elements, the worst row and parts; rows without a bound are left out', () => {
    const { between } = drawFrom(seed + 3);
    const rows = Array.from({ length: 5 }, () =>
      Array.from({ length: placeCount }, () => between(0.1, 1)),
    );
    const shares = {
      worst: Float64Array.from(rows.flat()),
      variance: Float64Array.from(rows.flat(), (x) => x / 7),
    };
    shares.worst[2 * placeCount + 3] = Infinity;
    const sums = emptyTechniqueSums();
    addToTable(sums, shares, 6);
    addToTable(
      sums,
      {
        worst: shares.worst.subarray(0, placeCount),
        variance: shares.variance.subarray(0, placeCount),
      },
      6,
    );
    const kept = [rows[0], rows[1], rows[3], rows[4], rows[0]];
    const sum = (of: readonly number[]) => of.reduce((all, x) => all + x, 0);
    const all = sum(kept.map(sum));
    for (const name of ['dq', 'dk', 'dv', 'dbias', 'dsink'] as const) {
      const table = techniqueTable(sums, name);
      expect([table.elements, table.unbounded]).toEqual([36, 6]);
      const places = techniquesByPlace[name].flatMap((technique, place) =>
        technique === null ? [] : [place],
      );
      expect(table.techniques.map(({ technique }) => technique)).toEqual(
        places.map((place) => techniquesByPlace[name][place]),
      );
      table.techniques.forEach(({ worst, largest, rms, share }, i) => {
        const own = kept.map((row) => row[places[i]]);
        expectAlike(worst, sum(own) / 30, 'worst');
        expectAlike(largest, Math.max(...own) / 6, 'largest');
        expectAlike(rms, Math.sqrt(sum(own) / 7 / 30), 'rms');
        expectAlike(share, sum(own) / all, 'share');
      });
      expectAlike(table.total.worst, all / 30, 'worst of all');
      expectAlike(table.total.largest, Math.max(...kept.map(sum)) / 6, 'largest of all');
      expectAlike(table.total.rms, Math.sqrt(all / 7 / 30), 'rms of all');
    }
    const nothing = techniqueTable(emptyTechniqueSums(), 'dq');
    expect(nothing.total).toEqual({ worst: 0, largest: 0, rms: 0 });
    expect(nothing.techniques.every(({ share }) => share === 0)).toBe(true);
  });
});

/** Bounds of dBias pair by pair: Theorem 21. */
describe('dBias is bounded as the sum over what the bias is broadcast to', () => {
  it.each([
    ['of each pair', [2, 2, 3, 5]],
    ['of keys, over heads', [1, 3, 1]],
    ['of every head', [2, 1, 1]],
    ['over queries', [2, 1, 5]],
  ] as const)('%s', (_, shape) => {
    const random = bellShaped(seed);
    const bias = tensor('bf16', shape, random);
    const problem = filledProblem(
      { batch: 2, heads: 2, kvHeads: 1, queries: 3, keys: 5, dim: 4 },
      random,
      { bias },
    );
    const dout = tensor('bf16', [2, 2, 3, 4], random);
    const reference = attentionOracle(problem);
    const premises = anyGradientPremises(problem, 'bf16');
    const given = { out: null, lse: null };
    const a = pairArithmetic(problem, reference.shape, premises);
    const shared = createSharedBounds(problem, reference.shape, premises, {
      dbias: 'fp32',
      dsink: null,
    });
    const of = { problem, dout, reference, premises, given };
    const boundsOf = createGradientBounds({ ...of, shared });
    const walk = gradientOracle(problem, dout, { wanted: ['dq', 'dk', 'dv', 'dbias'] });
    const groups: GroupGradients[] = [];
    let next = walk.next();
    for (; next.done !== true; next = walk.next()) {
      groups.push(next.value);
      boundsOf(next.value);
    }
    const exact = next.value.dbias!;
    const found = shared.finish(next.value).dbias!;
    const pairs = plainPairs(problem, dout, a);
    const rowErrors = createRowErrors(of, a);
    const ofBias = scoreArithmetic(a, premises);
    const shareOf = createScoreSharer(ofBias);
    const dims = [...Array<number>(4 - shape.length).fill(1), ...shape];
    const elements = dims.reduce((x, y) => x * y, 1);
    const terms = (2 * 2 * 3 * 5) / elements;
    const sums = exact.values.map(() => 0);
    const zeros = () => Array<number>(elements).fill(0);
    const all = {
      pairs: zeros(),
      pairVariance: zeros(),
      known: zeros(),
      magnitude: zeros(),
      systematic: zeros(),
      shift: zeros(),
    };
    expect(sums.length).toBe(elements);
    for (const { heads } of groups)
      for (const { head, mean } of heads)
        for (let i = 0; i < 3; i++) {
          const begun = rowErrors.begin(head * 3 + i, {
            value: mean.values[i],
            radius: mean.radius[i],
          });
          const ofRow = emptyRowSums();
          for (let j = 0; j < 5; j++) {
            pairs.weigh(head, i, j, begun);
            addToRow(ofRow, pairs.weighed, 0, begun.mean, { scores: 1, products: 1 });
          }
          const row = rowErrors.finish(
            head * 3 + i,
            begun,
            ofRow,
            Float64Array.from(pairs.rowOf(pairs.dO, head * 3 + i, 4)),
          );
          let [weights, squares, last] = [0, 0, 0];
          for (let j = 0; j < 5; j++) {
            pairs.weigh(head, i, j, row);
            const share = emptyScoreShare();
            shareOf(pairs.weighed, 0, row, { scores: 1, products: 1 }, share);
            const at = [Math.floor(head / 2), head % 2, i, j].reduce(
              (sum, x, axis) => sum * dims[axis] + (dims[axis] === 1 ? 0 : x),
              0,
            );
            all.pairs[at] += share.worst;
            all.pairVariance[at] += share.variance;
            all.known[at] += share.known;
            all.magnitude[at] += share.magnitude;
            all.systematic[at] += share.systematic;
            all.shift[at] += share.shift;
            weights += share.weight;
            squares += share.weight ** 2;
            last = at;
          }
          if (dims[3] === 1) all.pairVariance[last] += row.meanVariance * (weights ** 2 - squares);
        }
    const wanted: GradientTechniqueBound = emptyGradientBound(1, elements, 0);
    const finish = createFinish(ofBias, 'fp32', { sum: sumErrors(terms, premises), growth: 1 });
    for (let at = 0; at < elements; at++) {
      const errors = noErrors({ knownOf: techniquePlaces.dsRound, alike: 1 });
      for (const name of Object.keys(all) as (keyof typeof all)[]) errors[name] = all[name][at];
      errors.floor = 3 * terms * premises.underflow;
      finish.element(wanted, 0, at, exact, errors);
    }
    for (const name of ['total', 'systematic', 'deviation'] as const)
      found[name].forEach((x, at) => {
        expect(Math.abs(x / wanted[name][at] - 1), `${name} of ${at}`).toBeLessThan(2 ** -28);
      });
    const total = found.techniques.worst.reduce((x, y) => x + y, 0);
    const bounds = found.total.reduce((x, y, at) => x + y - exact.radius[at], 0);
    expect(Math.abs(total / bounds - 1)).toBeLessThan(2 ** -28);
  });
});
