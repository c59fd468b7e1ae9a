import { multiplyFloat32 } from '../../../src/arith/index.js';
import { encode, formats } from '../../../src/formats/index.js';
import { conversions } from '../../../src/hardware/index.js';
import type { BackwardPatterns, OrderMatch, OrderMatches } from '../../backward/model.js';
import { roundingConversions } from '../units.js';
import { headsOfGroup, scaledSums, type Backward, type HeadGroupGradients } from './backward.js';
import { keyFactors, type BackwardRecipe } from './recipe.js';
import { addInMemory } from './tile-sums.js';

/** Whether adding terms in some order gives an observed result; `undecided` where this is unknown. */
type Reachability = 'someOrder' | 'undecided' | 'noOrder';

/** The most terms whose orders are all followed; more make too many subsets. */
const mostTermsOfSubsets = 10;
/** The most sums of one subset that are followed. */
const mostSumsOfSubset = 4096;
/** Number of orders that are tried for more terms. */
const triedOrders = 64;
/** A magnitude below which sums cannot overflow in any order. */
const safeMagnitude = 2 ** 126;

/** Unit roundoff of fp32, and the most that flushing takes from an addition: from both terms and the sum. */
const roundoff = 2 ** -24;
const flushed = 3 * 2 ** -126;

/** The fp32 sums of all orders in which terms can be added to 0; null where there are too many to follow. */
function sumsOfAllOrders(terms: readonly number[]): ReadonlySet<number> | null {
  const subsets: Set<number>[] = [new Set([0])];
  for (let subset = 1; subset < 2 ** terms.length; subset++) {
    const sums = new Set<number>();
    terms.forEach((term, i) => {
      if ((subset & (1 << i)) === 0) return;
      for (const before of subsets[subset & ~(1 << i)]) sums.add(addInMemory(before, term));
    });
    if (sums.size > mostSumsOfSubset) return null;
    subsets.push(sums);
  }
  return subsets[subsets.length - 1];
}

/**
 * An interval that contains the fp32 sums of all orders: the sum of the terms and, by every addition but the
 * first to 0, a roundoff of at most the sum of magnitudes, which grows by the roundoffs before.
 */
function enclosure(terms: readonly number[], magnitude: number): readonly [number, number] {
  const count = terms.length;
  const grown = (1 + roundoff) ** (count + 1);
  // The fp64 sum of the terms errs by far less than one roundoff of fp32.
  const error = ((count + 1) * roundoff * magnitude + (count + 1) * flushed) * grown * grown;
  const sum = terms.reduce((total, term) => total + term, 0);
  return [sum - error, sum + error];
}

/** An order of `count` terms that a seed decides. */
function shuffled(count: number, seed: number): number[] {
  const order = Array.from({ length: count }, (_, i) => i);
  let state = seed >>> 0;
  for (let i = count - 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const j = Math.floor((state / 2 ** 32) * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

/**
 * Decides whether fp32 terms, added one by one to 0 in fp32 memory in some order, give an observed result. For up to
 * ten terms all orders are followed, as the sums that every subset of them can have. For more, an enclosure of all
 * sums may rule the result out, and an order that gives it may be found; otherwise it is undecided.
 *
 * @param resultOf maps a sum to the result as bit patterns; it must be monotone
 */
export function reachability(
  terms: readonly number[],
  observed: number,
  resultOf: (sum: number) => number,
  orderOf: (result: number) => number,
): Reachability {
  const magnitude = terms.reduce((sum, term) => sum + Math.abs(term), 0);
  if (!(magnitude < safeMagnitude)) return 'undecided';
  const [low, high] = enclosure(terms, magnitude).map((bound) => orderOf(resultOf(bound)));
  const place = orderOf(observed);
  if (!(Math.min(low, high) <= place && place <= Math.max(low, high))) return 'noOrder';
  if (terms.length <= mostTermsOfSubsets) {
    const sums = sumsOfAllOrders(terms);
    if (sums !== null)
      return [...sums].some((sum) => resultOf(sum) === observed) ? 'someOrder' : 'noOrder';
  }
  for (let seed = 0; seed < triedOrders; seed++) {
    const order = shuffled(terms.length, seed);
    if (resultOf(order.reduce((sum, i) => addInMemory(sum, terms[i]), 0)) === observed)
      return 'someOrder';
  }
  return 'undecided';
}

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
