import { listed } from '../../../../words/index.js';
import type { GradientQuantityName } from '../../gradient-quantities.js';
import type { GivenGradient } from '../../judge-gradient.js';
import { explains, fails, type Prediction, type WiderBound } from '../prediction.js';
import type { Replayed } from '../replay/replay.js';
import { anyOrders, namedOrders, ordersOf, type AdditionOrder } from './addition-orders.js';
import {
  bestOrder,
  errorsBeside,
  findNarrowLaw,
  isAlike,
  lawsOfSize,
  likenessSums,
  tileRows,
  type NarrowLaw,
} from './find-narrow-law.js';
import { gradientTerms, sizesOf, type GradientRows } from './gradient-terms.js';
import { narrowErrors, narrowSums, tileSums } from './narrow-sum.js';

/** Numbers that sums of tiles take at a time, at most. */
const mostNumbers = 2 ** 22;

/** Rows of a gradient at a time, few enough for the sums of their tiles. */
function* rowsAtATime(of: Replayed, given: GivenGradient, law: NarrowLaw): Generator<GradientRows> {
  const { heads, rows, columns, members, places } = sizesOf(of, given);
  const ofRow = members * Math.ceil(places / law.terms) * columns;
  const fitting = Math.max(1, Math.floor(mostNumbers / Math.max(ofRow, members * places)));
  const step = law.order === 'any' ? tileRows : Math.min(tileRows, fitting);
  for (let head = 0; head < heads; head++)
    for (let begin = 0; begin < rows; begin += step)
      yield { head, begin, end: Math.min(begin + step, rows) };
}

/** A gradient by a law, and the errors that its roundings may add. */
interface NarrowGradient {
  readonly values: Float64Array;
  readonly wider: WiderBound;
  /** Whether the errors of all of it are the law's. */
  readonly isAlike: boolean;
}

/** A whole gradient summed by a law. */
function summedBy(of: Replayed, given: GivenGradient, law: NarrowLaw): NarrowGradient {
  const { rows, columns, members, places } = sizesOf(of, given);
  const counts = { heads: members, tiles: Math.ceil(places / law.terms) };
  const named = ordersOf(counts).find(([name]) => name === law.order);
  const orders: readonly AdditionOrder[] = named === undefined ? anyOrders(counts) : [named[1]];
  const numbers = () => new Float64Array(given.values.length);
  const [values, total, deviation] = [numbers(), numbers(), numbers()];
  const beside = errorsBeside(of, given);
  const likeness = likenessSums();
  for (const at of rowsAtATime(of, given, law)) {
    const first = (at.head * rows + at.begin) * columns;
    const tiles = tileSums(gradientTerms(of, given, at), law.terms);
    const own =
      orders.length === 1 ? null : bestOrder(beside, first, [tiles, law.accumulator], orders);
    const order = own?.order ?? orders[0];
    const sums = narrowSums(tiles, law.accumulator, order);
    const { worst, variance } = narrowErrors(tiles, law.accumulator, order);
    values.set(sums, first);
    total.set(worst, first);
    deviation.set(variance.map(Math.sqrt), first);
    sums.forEach((sum, i) => {
      likeness.add(beside.given(first + i), beside.made(first + i, sum));
    });
  }
  return { values, wider: { total, deviation }, isAlike: isAlike(likeness.found()) };
}

/** "every 64 keys" */
function stepsOf({ quantity }: GivenGradient, terms: number): string {
  return terms === 1
    ? 'every addition'
    : `every ${terms} ${quantity.name === 'dq' ? 'keys' : 'queries'}`;
}

/** The way in which a gradient is summed, in words that follow its name. */
function inWords(of: Replayed, given: GivenGradient, { accumulator, terms, order }: NarrowLaw) {
  const { places, members } = sizesOf(of, given);
  const { format } = accumulator;
  if (members * Math.ceil(places / terms) === 1) return `rounded to ${format} once all is added`;
  const way =
    order === 'any'
      ? `in an order of each ${tileRows} rows' own, as atomic adds come`
      : namedOrders[order];
  return `added up in ${format}, rounded after ${stepsOf(given, terms)}, ${way}`;
}

/**
 * Sums in 16 bits: dQ over tiles of keys, dK and dV over tiles of queries, in accumulators or in memory. The roundings
 * themselves tell them: the gradient's errors are those that its sums in some order would have.
 */
export function* narrowFaults(of: Replayed): Generator<Prediction> {
  const { failed, budget } = of;
  if (failed.problem.sequences !== undefined) return;
  const failing = failed.given.filter((one) => fails(failed, one));
  const predicted: [GradientQuantityName, Float64Array][] = [];
  const wider: [GradientQuantityName, WiderBound][] = [];
  const ways = new Map<string, string[]>();
  for (const one of failing) {
    if (!budget.takes(1)) return;
    const law = findNarrowLaw(of, one);
    if (law === null || !budget.takes(law.terms === 1 ? 3 : 1)) return;
    const found = summedBy(of, one, law);
    if (!found.isAlike) return;
    const { name, prose } = one.quantity;
    predicted.push([name, found.values]);
    wider.push([name, found.wider]);
    const way = inWords(of, one, law);
    ways.set(way, [...(ways.get(way) ?? []), prose]);
  }
  const clauses = [...ways].map(
    ([way, names]) => `${listed(names)} ${names.length === 1 ? 'is' : 'are'} ${way}`,
  );
  yield {
    id: 'narrow-sums',
    sentence: listed(clauses),
    predicted: Object.fromEntries(predicted),
    wider: Object.fromEntries(wider),
  };
}

/** The factor, either way, within which the size of a gradient's errors is near that of a law's. */
const nearness = 1.4;

/**
 * A statement about errors that are as large as sums in 16 bits make them, but those of no order that is tried; null where they
 * are larger or smaller, or where all tests do not pass with such sums allowed for.
 */
export function narrowSize(of: Replayed): string | null {
  const { failed, budget } = of;
  if (failed.problem.sequences !== undefined) return null;
  const failing = failed.given.filter((one) => fails(failed, one));
  const predicted: [GradientQuantityName, Float64Array][] = [];
  const wider: [GradientQuantityName, WiderBound][] = [];
  const clauses: string[] = [];
  for (const one of failing) {
    if (!budget.takes(2)) return null;
    const [law, ...others] = lawsOfSize(of, one, nearness);
    if (law === undefined) return null;
    const { name, prose } = one.quantity;
    predicted.push([name, failed.measured.gradients[name].exact.values]);
    const { total, deviation } = summedBy(of, one, law).wider;
    const twice = (numbers: Float64Array) => numbers.map((x) => 2 * x);
    wider.push([name, { total: twice(total), deviation: twice(deviation) }]);
    const ways = [law, ...others].map(
      ({ accumulator, terms }) =>
        `in ${accumulator.format} that are rounded after ${stepsOf(one, terms)}`,
    );
    clauses.push(`those of ${prose} are as large as of sums ${ways.join(', or ')}`);
  }
  const isAllowed = explains(failed, {
    predicted: Object.fromEntries(predicted),
    wider: Object.fromEntries(wider),
  });
  return isAllowed
    ? `the errors are of no order of additions that was tried, but ${listed(clauses)}`
    : null;
}
