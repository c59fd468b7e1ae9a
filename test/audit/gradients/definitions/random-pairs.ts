import { expect } from 'vitest';
import {
  meanRounding,
  operandRounding,
  type OperandRounding,
  type PairArithmetic,
  type SumErrors,
} from '../../../../src/audit/gradients/bounds/pair-arithmetic.js';
import { createPairTile } from '../../../../src/audit/gradients/bounds/pairs/pair-tile.js';
import {
  knownBlocks,
  type KnownPairs,
  type RowErrors,
} from '../../../../src/audit/gradients/bounds/pairs/weighed-pairs.js';
import type { KeyRange } from '../../../../src/problem/index.js';
import { pseudorandom } from '../../../setup/problems.js';

/** Rows of a tile of pairs. */
export const tile = 64;

/** Numbers from a seed: of [low, high). */
export interface Draw {
  readonly between: (low: number, high: number) => number;
  readonly flips: () => boolean;
  readonly count: (most: number) => number;
}

export function drawFrom(seed: number): Draw {
  // Of [-1, 1).
  const signed = pseudorandom(seed);
  const uniform = () => (signed() + 1) / 2;
  return {
    between: (low, high) => low + (high - low) * uniform(),
    flips: () => uniform() < 0.5,
    count: (most) => Math.floor(uniform() * most),
  };
}

/** What a kernel's pairs are off by, so coarse that every term of a bound shows. */
export function coarseArithmetic(
  { between, flips }: Draw,
  changes: Partial<PairArithmetic> = {},
): PairArithmetic {
  const small = () => between(0.004, 0.03);
  const sums = (): SumErrors => ({ worst: small(), toZero: small(), walk: small() });
  const scale = (flips() ? 1 : -1) * between(0.3, 1.4);
  const elementwise = small();
  return {
    scale,
    softcap: null,
    dropout: small(),
    scores: sums(),
    products: sums(),
    overKeys: sums(),
    overQueries: sums(),
    tellsApart: flips(),
    commonScores: small(),
    commonProducts: small(),
    operations: small(),
    operationVariance: small(),
    productRounding: small(),
    weightRounding: small(),
    largestScore: 1e30,
    largestProduct: 1e30,
    elementwise,
    elementwiseVariance: meanRounding * elementwise ** 2,
    exponential: small(),
    tanh: small(),
    tanhFloor: small(),
    typicalTanh: small(),
    tanhVariance: small(),
    underflow: small() / 2 ** 16,
    p: operandRounding('bf16', 2 ** -24, [], 1),
    weights: operandRounding('e4m3', 2 ** -24, [], 1),
    ds: operandRounding('bf16', 2 ** -24, [0.7, scale], 2),
    ...changes,
  };
}

/** Rows of pairs whose errors are of a size with their values. */
export function coarseRows({ between, flips }: Draw, count: number): RowErrors[] {
  const signed = (size: number) => (flips() ? 1 : -1) * between(size / 2, size);
  return Array.from({ length: count }, () => ({
    denominator: between(0, 3),
    mean: signed(1),
    weightShift: signed(0.2),
    meanShift: signed(0.3),
    weight: between(0.02, 0.2),
    typicalWeight: between(0.02, 0.2),
    commonWeight: signed(0.1),
    weightVariance: between(0.02, 0.2),
    worstMean: between(0.02, 0.4),
    typicalMean: between(0.02, 0.2),
    commonMean: signed(0.1),
    meanVariance: between(0.02, 0.2),
  }));
}

/** Pairs of a tile, with all that a problem may have. */
export function knownPairs({ between, flips }: Draw, isWhole: boolean): KnownPairs {
  const numbers = (make: () => number) => Float64Array.from({ length: tile * tile }, make);
  const signed = (size: number) => (flips() ? 1 : -1) * between(0, size);
  const dot = numbers(() => signed(2));
  const product = numbers(() => signed(2));
  const addend = numbers(() => signed(1));
  return {
    dot,
    dotSize: dot.map((x) => Math.abs(x) * between(1, 3)),
    product,
    productSize: product.map((x) => Math.abs(x) * between(1, 3)),
    dotPartials: isWhole ? dot.map((x) => x * x * between(0.5, 4)) : null,
    productPartials: isWhole ? product.map((x) => x * x * between(0.5, 4)) : null,
    addend: isWhole ? addend : null,
    addendSize: isWhole ? addend.map((x) => Math.abs(x) * between(1, 2)) : null,
    factor: isWhole ? numbers(() => (flips() ? 0 : 1.25)) : null,
  };
}

/** What rows see of a tile: one range, two, or nothing. */
export function someRanges({ count }: Draw, rows: number): KeyRange[][] {
  return Array.from({ length: rows }, (_, row) => {
    if (row === 2) return [];
    const [begin, end] = [count(20), 40 + count(25)];
    return row % 2 === 0
      ? [{ begin, end }]
      : [
          { begin, end: begin + 5 },
          { begin: end, end: tile },
        ];
  });
}

/** The places of the pairs that rows see. */
export function* placesOf(ranges: readonly (readonly KeyRange[])[]) {
  for (const [i, ofRow] of ranges.entries())
    for (const { begin, end } of ofRow)
      for (let j = begin; j < end; j++) yield { i, j, at: i * tile + j };
}

/**
 * Expects numbers that are the same but for fp64's roundings: relative ones, and those of a number of size `residualOf`
 * whose residual they are, of which most digits cancel.
 */
export function expectAlike(found: number, wanted: number, what: string, residualOf = 0): void {
  const isAlike =
    Object.is(found, wanted) ||
    found === wanted ||
    Math.abs(found - wanted) <= 2 ** -36 * Math.max(Math.abs(found), Math.abs(wanted)) ||
    Math.abs(found - wanted) <= 2 ** -48 * residualOf;
  if (!isAlike) expect({ what, found }).toEqual({ what, found: wanted });
}

/** A tile of these pairs, which are weighed. */
export function weighedTile(
  arithmetic: PairArithmetic,
  known: KnownPairs,
  rows: readonly RowErrors[],
  ranges: readonly (readonly KeyRange[])[],
) {
  const found = createPairTile(arithmetic, {
    hasPartials: known.dotPartials !== null,
    hasAddends: known.addend !== null,
    hasFactors: known.factor !== null,
  });
  for (const name of knownBlocks) found.known[name]?.set(known[name] ?? []);
  found.setRows(rows);
  found.setRanges(ranges);
  found.weigh();
  return found;
}

/** The loops that round to a format are made once for each rounding. */
const rounders = new WeakMap<OperandRounding, ReturnType<typeof createPairTile>>();

/** The rounding of one number that is off by some error, as an operand. */
export function roundingOf(of: OperandRounding, x: number, error: number) {
  const features = { hasPartials: false, hasAddends: false, hasFactors: false };
  const arithmetic = { ...coarseArithmetic(drawFrom(1)), p: of };
  const rounder = rounders.get(of) ?? createPairTile(arithmetic, features);
  rounders.set(of, rounder);
  const { roundings } = rounder;
  const results = ['worst', 'known', 'variance', 'byFirst', 'bySecond', 'byThird'] as const;
  for (const name of results) roundings[name].fill(7, 0, 3);
  roundings.numbers.fill(x, 0, 3);
  roundings.errors.fill(error, 0, 3);
  rounder.round('p', 1, 2);
  // The numbers beside it are left alone.
  for (const name of results) expect([roundings[name][0], roundings[name][2]]).toEqual([7, 7]);
  const [worst, known, variance, ...byOthers] = results.map((name) => roundings[name][1]);
  return { worst, known, variance, byOthers };
}
