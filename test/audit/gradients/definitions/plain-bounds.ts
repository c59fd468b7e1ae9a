import { expect } from 'vitest';
import type { AttentionReference, Gradient, GroupGradients } from '../../../../oracles/index.js';
import { createFinish, noErrors } from '../../../../src/audit/gradients/bounds/finish-gradient.js';
import {
  placeCount,
  techniquePlaces,
} from '../../../../src/audit/gradients/bounds/gradient-techniques.js';
import {
  emptyGradientBound,
  type GradientTechniqueBound,
  type StoredForward,
} from '../../../../src/audit/gradients/bounds/group-bounds.js';
import type { GradientPremises } from '../../../../src/audit/gradients/bounds/gradient-premises.js';
import {
  pairArithmetic,
  sumErrors,
} from '../../../../src/audit/gradients/bounds/pair-arithmetic.js';
import { createRowErrors } from '../../../../src/audit/gradients/bounds/row-errors.js';
import type { RowErrors } from '../../../../src/audit/gradients/bounds/pairs/weighed-pairs.js';
import { formats, round, ulp, unitRoundoff } from '../../../../src/formats/index.js';
import { keysOf, problemMask, type Problem, type Tensor } from '../../../../src/problem/index.js';
import {
  addPair,
  addToRow,
  emptyRowSums,
  equalRows,
  largestOf,
  ofKeys,
  ofQueries,
  ofValues,
  plainPairs,
  plainSum,
  timesAlike,
  type PairNumbers,
  type PlainSum,
} from './plain-sums.js';

const { lseInput, delta, dsRound, pRound } = techniquePlaces;
const up = 1 + 2 ** -12;

/** What bounds are of. */
export interface PlainProblem {
  readonly problem: Problem;
  readonly dout: Tensor;
  readonly reference: AttentionReference;
  readonly premises: GradientPremises;
  readonly given: StoredForward;
}

/** Sums of one head's shares, and what storing them loses so far. */
interface StoredShare {
  worst: number;
  /** By each factor that operands may have had, the smallest first. */
  readonly known: number[];
  variance: number;
}

/** What is known of a sum by each factor that operands may have had, the smallest first. */
const knownOf = ({ known, byOthers }: PlainSum) => [known, ...byOthers];

/** Bounds of all groups' gradients, pair by pair: Theorems 8 and 9 of the sums over the plain pairs. */
export function plainBounds(of: PlainProblem, groups: readonly GroupGradients[]) {
  const { problem, dout, reference, premises } = of;
  const { shape } = reference;
  const { groupSize, queries, keys, qkDim, vDim } = shape;
  const arithmetic = pairArithmetic(problem, shape, premises);
  const pairs = plainPairs(problem, dout, arithmetic);
  const mask = problemMask(problem, shape);
  const rowErrors = createRowErrors(of, arithmetic);
  const values = { q: pairs.q, k: pairs.k, v: pairs.v, dO: pairs.dO };
  const isFp32 = arithmetic.ds.format === null;
  const scale = Math.abs(arithmetic.scale);

  const rowOf = (head: number, query: number, mean: { value: number; radius: number }) => {
    const row = head * queries + query;
    const kvHead = pairs.kvHeadOf(head);
    const alike = {
      scores: equalRows(values.k, kvHead, keys, qkDim),
      products: equalRows(values.v, kvHead, keys, vDim),
    };
    const begun = rowErrors.begin(row, mean);
    const sums = emptyRowSums();
    if (rowErrors.needsSums)
      for (const key of keysOf(mask.ranges(head, query))) {
        pairs.weigh(head, query, key, begun);
        const counts = { scores: alike.scores[key], products: alike.products[key] };
        addToRow(sums, pairs.weighed, 0, begun.mean, counts);
      }
    return rowErrors.finish(row, begun, sums, Float64Array.from(pairs.rowOf(values.dO, row, vDim)));
  };

  const finishes = new Map<string, ReturnType<typeof createFinish>>();

  /** Fills in the elements of a row whose sums are known. */
  const settle = (
    bound: GradientTechniqueBound,
    [row, at]: readonly [row: number, at: number],
    exact: Gradient,
    sum: PlainSum,
    by: {
      readonly scale: number;
      readonly knownOf: number;
      readonly alike: number;
      readonly terms: number;
      readonly growth: number;
      readonly changes: Partial<ReturnType<typeof noErrors>>;
    },
  ) => {
    const size = Math.abs(by.scale);
    const sumOf = by.terms === keys + 1 ? arithmetic.overKeys : sumErrors(by.terms, premises);
    const kind = `${by.terms} ${by.growth}`;
    const finish =
      finishes.get(kind) ??
      createFinish(arithmetic, premises.output, { sum: sumOf, growth: by.growth });
    finishes.set(kind, finish);
    const errors = noErrors({ knownOf: by.knownOf, alike: by.alike });
    Object.assign(errors, {
      pairs: size * sum.worst,
      pairVariance: size ** 2 * sum.variance,
      known: by.scale * sum.known,
      byOthers: Float64Array.from(sum.byOthers, (x) => by.scale * x),
      magnitude: size * sum.magnitude,
      partials: isFp32 ? size ** 2 * (largestOf(sum.terms) ** 2 + sum.squares / 6) : Infinity,
      systematic:
        size *
        (sum.systematic + (isFp32 ? sum.common.reduce((all, x) => all + Math.abs(x), 0) : 0)),
      ...by.changes,
    });
    finish.element(bound, row, at, exact, errors);
  };

  /** Adds a technique's part of pairs to the shares of a row. */
  const share = (
    bound: GradientTechniqueBound,
    row: number,
    pair: PairNumbers,
    counts: ReadonlyMap<number, number>,
    [factors, by, growth]: readonly [readonly number[], number, number],
  ) => {
    const sizes = factors.reduce((sum, x) => sum + Math.abs(x), 0);
    const squares = factors.reduce((sum, x) => sum + x * x, 0);
    for (const [place, count] of counts) {
      bound.techniques.worst[row * placeCount + place] +=
        pair.worst[place] * sizes * Math.abs(by) * growth * up;
      bound.techniques.variance[row * placeCount + place] +=
        pair.variance[place] * count * squares * by ** 2;
    }
  };

  return groups.map((group) => {
    const dk = Array.from({ length: keys * qkDim }, plainSum);
    const dv = Array.from({ length: keys * vDim }, plainSum);
    const stored =
      groupSize > 1 && unitRoundoff(formats[premises.partials]) > arithmetic.elementwise;
    // Where shares may be stored, what is known is known once more of a kernel that stores none.
    const knownBeside = (others: number) => (stored ? 1 + 2 * others : others);
    const bounds = {
      dk: emptyGradientBound(keys, qkDim, knownBeside(arithmetic.ds.otherUnits.length)),
      dv: emptyGradientBound(keys, vDim, knownBeside(arithmetic.p.otherUnits.length)),
    };
    const growth = stored ? 1 + unitRoundoff(formats[premises.partials]) : 1;
    const empty = (of: PlainSum) => ({ worst: 0, known: knownOf(of).map(() => 0), variance: 0 });
    const lost = { dk: dk.map(empty), dv: dv.map(empty) };
    const alikeOfGroup = group.heads.map(({ head }) => {
      const scores = equalRows(values.q, head, queries, qkDim);
      const products = equalRows(values.dO, head, queries, vDim);
      return scores.reduce((most, count, i) => Math.max(most, Math.min(count, products[i])), 1);
    });
    const heads = group.heads.map((of, member) => {
      const { head } = of;
      const kvHead = pairs.kvHeadOf(head);
      const alikeQ = [
        equalRows(values.q, head, queries, qkDim),
        equalRows(values.dO, head, queries, vDim),
      ];
      const alikeK = [
        equalRows(values.k, kvHead, keys, qkDim),
        equalRows(values.v, kvHead, keys, vDim),
      ];
      const mostAlike = alikeK[0].reduce(
        (most, n, i) => Math.max(most, Math.min(n, alikeK[1][i])),
        1,
      );
      const bound = emptyGradientBound(queries, qkDim, arithmetic.ds.otherUnits.length);
      const weightVariance = new Float64Array(queries);
      const before = { dk: dk.map(knownOf), dv: dv.map(knownOf) };
      const [headK, headV] = [new Float64Array(dk.length), new Float64Array(dv.length)];
      for (let query = 0; query < queries; query++) {
        const row = rowOf(head, query, {
          value: of.mean.values[query],
          radius: of.mean.radius[query],
        });
        weightVariance[query] = row.weightVariance;
        const seen = [...keysOf(mask.ranges(head, query))];
        const sums = Array.from({ length: qkDim }, plainSum);
        const q = pairs.rowOf(values.q, head * queries + query, qkDim);
        const dO = pairs.rowOf(values.dO, head * queries + query, vDim);
        const index =
          (member * Math.ceil(queries / 64) + Math.floor(query / 64)) * 64 + (query % 64);
        for (const key of seen) {
          pairs.weigh(head, query, key, row);
          const { ofWeight, ofScore } = pairs.errorsOf(row);
          const k = pairs.rowOf(values.k, kvHead * keys + key, qkDim);
          const countsOf = (
            places: readonly number[],
            [scores, products]: number[][],
            at: number,
          ) => new Map(places.map((place) => [place, timesAlike(place, scores[at], products[at])]));
          const ofQuery = countsOf(ofQueries, alikeK, key);
          k.forEach((x, c) => {
            addPair(sums[c], ofScore, x, ofQuery, {
              index: key,
              systematic: ofScore.systematic,
              signed: ofScore.sloped,
              beside: ofScore.worst[lseInput] + ofScore.worst[delta],
            });
          });
          share(bound, query, ofScore, ofQuery, [k, scale, 1]);
          const common = (pair: PairNumbers) => ({
            index,
            systematic:
              pair.systematic +
              row.typicalWeight * Math.abs(pair.value) +
              row.typicalMean * pair.sloped,
            signed: pair.value - pair.unshifted,
            beside: 0,
          });
          const [ofKey, ofValue] = [
            countsOf(ofKeys, alikeQ, query),
            countsOf(ofValues, alikeQ, query),
          ];
          q.forEach((x, c) => {
            addPair(dk[key * qkDim + c], ofScore, x, ofKey, common(ofScore));
            headK[key * qkDim + c] += ofScore.value * x;
          });
          dO.forEach((x, c) => {
            addPair(dv[key * vDim + c], ofWeight, x, ofValue, common(ofWeight));
            headV[key * vDim + c] += ofWeight.value * x;
          });
          share(bounds.dk, key, ofScore, ofKey, [q, scale, growth]);
          share(bounds.dv, key, ofWeight, ofValue, [dO, 1, growth]);
        }
        if (of.dq !== null && seen.length > 0)
          sums.forEach((sum, c) => {
            settleQuery(bound, query, c, of.dq!, sum, row, seen.length, mostAlike);
          });
      }
      if (stored)
        for (const [name, all, byHead, by] of [
          ['dk', dk, headK, arithmetic.scale],
          ['dv', dv, headV, 1],
        ] as const)
          all.forEach((sum, at) => {
            const ofHead = knownOf(sum).map((known, k) => by * (known - before[name][at][k]));
            storeShare(lost[name][at], by * byHead[at], Math.abs(by), sum, ofHead);
          });
      return { head, dq: bound, weightVariance };
    });
    for (const [name, all, dim, by, place, others] of [
      ['dk', dk, qkDim, arithmetic.scale, dsRound, arithmetic.ds.otherUnits.length],
      ['dv', dv, vDim, 1, pRound, arithmetic.p.otherUnits.length],
    ] as const)
      all.forEach((sum, at) => {
        const terms = queries * groupSize;
        const { worst, known, variance } = lost[name][at];
        settle(bounds[name], [Math.floor(at / dim), at], group[name]!, sum, {
          scale: by,
          knownOf: place,
          alike: Math.max(...alikeOfGroup),
          terms: terms + 1,
          growth,
          changes: {
            shift: by * sum.signed,
            ...(stored && {
              known: known[0],
              unstored: by * sum.known,
              byOthers: Float64Array.of(
                ...known.slice(1, 1 + others),
                ...knownOf(sum)
                  .slice(0, 1 + others)
                  .map((x) => by * x),
              ),
            }),
            groupSum: worst,
            groupVariance: variance,
            floor: sum.worst > 0 ? 3 * terms * arithmetic.underflow * Math.max(1, Math.abs(by)) : 0,
          },
        });
      });
    return { heads, ...bounds };
  });

  /** dQ has the row's errors beside those of its pairs. */
  function settleQuery(
    bound: GradientTechniqueBound,
    query: number,
    c: number,
    exact: Gradient,
    sum: PlainSum,
    row: RowErrors,
    seen: number,
    alike: number,
  ) {
    const at = query * qkDim + c;
    const shift =
      row.weightShift * exact.values[at] - arithmetic.scale * row.meanShift * sum.signed;
    const size = Math.abs(exact.values[at] + shift);
    const ofMean = scale * Math.abs(sum.signed);
    const common = isFp32 ? sum.common.slice(1).reduce((all, x) => all + Math.abs(x), 0) : 0;
    settle(bound, [query, at], exact, sum, {
      scale: arithmetic.scale,
      knownOf: dsRound,
      alike,
      terms: keys + 1,
      growth: 1,
      changes: {
        shift,
        lseInput: row.weight * size,
        lseVariance: row.weightVariance * size ** 2,
        delta: row.worstMean * (1 + row.weight) * ofMean,
        deltaVariance: row.meanVariance * ofMean ** 2,
        systematic:
          scale * (sum.systematic + common) + row.typicalMean * ofMean + row.typicalWeight * size,
        floor: 3 * seen * arithmetic.underflow * Math.max(1, scale),
      },
    });
  }

  /** Rounds a head's share, of which something is known, to the format that it is stored in. */
  function storeShare(
    lost: StoredShare,
    value: number,
    by: number,
    sum: PlainSum,
    known: readonly number[],
  ) {
    const format = formats[premises.partials];
    const error = by * (sum.worst + arithmetic.overQueries.worst * sum.magnitude);
    const rounding = round(format, value) - value;
    const half = ulp(format, value) / 2;
    const near = Math.abs(rounding) + error;
    lost.worst += Math.min(
      Math.max(unitRoundoff(format) * Math.abs(value), ulp(format, 0) / 2),
      near,
    );
    const isCertain = near < half;
    known.forEach((x, k) => (lost.known[k] += isCertain ? rounding : x));
    if (!isCertain && value !== 0) lost.variance += half ** 2 / 3;
  }
}

/** Expects bounds that are one but for fp64's roundings, those of signed sums beside their bounds. */
export function expectBounds(
  found: GradientTechniqueBound,
  wanted: GradientTechniqueBound,
  what: string,
): void {
  const { total } = wanted;
  for (const name of [
    'total',
    'systematic',
    'deviation',
    'known',
    'reach',
    'shift',
    'operands',
  ] as const)
    found[name].forEach((x, at) => {
      const y = wanted[name][at];
      const isNear = x === y || Math.abs(x - y) <= 2 ** -30 * (Math.abs(y) + total[at]);
      if (!isNear) expect([what, name, at, x]).toEqual([what, name, at, y]);
    });
  expect(found.byOthers.length).toBe(wanted.byOthers.length);
  found.byOthers.forEach((of, k) => {
    of.forEach((x, at) => {
      expect(Math.abs(x - wanted.byOthers[k][at]), what).toBeLessThanOrEqual(2 ** -30 * total[at]);
    });
  });
  for (const name of ['worst', 'variance'] as const)
    found.techniques[name].forEach((x, at) => {
      const y = wanted.techniques[name][at];
      if (Math.abs(x - y) > 2 ** -30 * y) expect([what, name, at, x]).toEqual([what, name, at, y]);
    });
}
