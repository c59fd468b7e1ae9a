import { multiplyFloat32 } from '../../../src/arith/index.js';
import { encode, formats } from '../../../src/formats/index.js';
import { conversions } from '../../../src/hardware/index.js';
import { roundingConversions } from '../units.js';
import type { BackwardPatterns, OrderMatch, OrderMatches } from '../../backward/model.js';
import { headsOfGroup, scaledSums, type Backward, type HeadGroupGradients } from './backward.js';
import { keyFactors, type BackwardRecipe } from './recipe.js';
import { reachability } from './reachable-sums.js';

const { fp32 } = formats;

/** 16-bit patterns of numbers as integers in the order of the numbers; NaNs lie beyond the infinities. */
function placeOf(pattern: number): number {
  return pattern >= 0x8000 ? 0x8000 - pattern : pattern;
}

/** A function from fp32 sums to the patterns in which the backward stores them. */
function finished({ format }: BackwardRecipe, factor: number): (sum: number) => number {
  const { evaluate } = conversions[roundingConversions[format]];
  return (sum) => evaluate(encode(fp32, multiplyFloat32(sum, factor)));
}

/** The places of a gradient's elements that differ. */
function unequalPlaces(expected: Uint16Array, given: ArrayLike<number>): readonly number[] {
  const places: number[] = [];
  for (let i = 0; i < expected.length; i++) if (expected[i] !== given[i]) places.push(i);
  return places;
}

/**
 * Judges the elements of a gradient that differ from those of the ascending order.
 * @param termsOf the terms of places, in any order; null where the order is fixed
 */
function countsOf(
  elements: number,
  given: ArrayLike<number>,
  termsOf: ReadonlyMap<number, readonly number[]>,
  unequal: readonly number[],
  resultOf: (sum: number) => number,
): OrderMatch {
  const counts = { equal: elements - unequal.length, someOrder: 0, undecided: 0, noOrder: 0 };
  for (const place of unequal) {
    const terms = termsOf.get(place);
    counts[
      terms === undefined ? 'noOrder' : reachability(terms, given[place], resultOf, placeOf)
    ]++;
  }
  return counts;
}

/** The tiles that are added to some elements of dQ of a group. */
function termsOfQueries(
  { passes, shape }: Backward,
  kvHead: number,
  places: readonly number[],
): ReadonlyMap<number, readonly number[]> {
  const { queries, qkDim } = shape;
  const terms = new Map<number, number[]>(places.map((place) => [place, []]));
  headsOfGroup(kvHead, shape).forEach((head, i) => {
    for (const { first, count } of passes.queryBlocks) {
      const begin = (i * queries + first) * qkDim;
      const ofBlock = places.filter((place) => begin <= place && place < begin + count * qkDim);
      if (ofBlock.length === 0) continue;
      const tile = (_: unknown, values: Float32Array): void =>
        ofBlock.forEach((place) => terms.get(place)?.push(values[place - begin]));
      passes.run([head], { tile }, first);
    }
  });
  return terms;
}

/** Terms that the query heads of a group add to some elements of dK and dV. */
function termsOfKeys(
  { passes, recipe, shape }: Backward,
  kvHead: number,
  places: { readonly dk: readonly number[]; readonly dv: readonly number[] },
): { readonly dk: Map<number, number[]>; readonly dv: Map<number, number[]> } {
  const noTerms = (of: readonly number[]): Map<number, number[]> =>
    new Map(of.map((place): [number, number[]] => [place, []]));
  const terms = { dk: noTerms(places.dk), dv: noTerms(places.dv) };
  const collect = (of: Map<number, number[]>, begin: number, sums: Float32Array): void => {
    for (const [place, values] of of)
      if (begin <= place && place < begin + sums.length) values.push(sums[place - begin]);
  };
  const { each } = keyFactors(recipe, shape.groupSize);
  for (const head of headsOfGroup(kvHead, shape))
    passes.run([head], {
      keys: ({ first }, { dk, dv }) => {
        collect(terms.dk, first * shape.qkDim, scaledSums(dk, each));
        collect(terms.dv, first * shape.vDim, dv);
      },
    });
  return terms;
}

/**
 * Compares given gradients of a key/value head with a backward element by element: equal to the ascending order's,
 * given by some other order of the adds that have none, or by no order.
 */
export function matchOrders(
  backward: Backward,
  kvHead: number,
  given: BackwardPatterns,
): OrderMatches {
  const { recipe, shape } = backward;
  const expected = backward.run(kvHead);
  const unequal = (name: keyof HeadGroupGradients): readonly number[] =>
    given[name] === null ? [] : unequalPlaces(expected[name], given[name]);
  const places = { dq: unequal('dq'), dk: unequal('dk'), dv: unequal('dv') };
  const isAnyGroup = recipe.groupOrder === 'any' && shape.groupSize > 1;
  const ofKeys =
    isAnyGroup && places.dk.length + places.dv.length > 0
      ? termsOfKeys(backward, kvHead, places)
      : { dk: new Map<number, number[]>(), dv: new Map<number, number[]>() };
  const terms = {
    ...ofKeys,
    dq:
      recipe.queryOrder === 'any'
        ? termsOfQueries(backward, kvHead, places.dq)
        : new Map<number, number[]>(),
  };
  const factors = {
    dq: recipe.softmaxScale,
    dk: keyFactors(recipe, shape.groupSize).sum,
    dv: 1,
  };
  const counts = (name: keyof HeadGroupGradients): OrderMatch | null => {
    const patterns = given[name];
    if (patterns === null) return null;
    const resultOf = finished(recipe, factors[name]);
    return countsOf(expected[name].length, patterns, terms[name], places[name], resultOf);
  };
  return { dq: counts('dq'), dk: counts('dk'), dv: counts('dv') };
}
