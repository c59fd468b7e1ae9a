import { addInMemory } from './tile-sums.js';

/** Whether adding terms in some order gives an observed result; `undecided` where this is unknown. */
export type Reachability = 'someOrder' | 'undecided' | 'noOrder';

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
