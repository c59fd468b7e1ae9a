import { formats, round, type FormatName } from '../../../../formats/index.js';
import type { GivenGradient } from '../../judge-gradient.js';
import type { Replayed } from '../replay/replay.js';
import { anyOrders, ordersOf, type AdditionOrder, type NamedOrder } from './addition-orders.js';
import { gradientTerms, sizesOf, type GradientRows } from './gradient-terms.js';
import { narrowSums, tileSums, type NarrowAccumulator, type TileSums } from './narrow-sum.js';

/** The way in which a kernel sums a gradient in 16 bits. */
export interface NarrowLaw {
  readonly accumulator: NarrowAccumulator;
  /** Number of terms that are added exactly before they join the sum. */
  readonly terms: number;
  /** `any` where each tile of rows has an order of its own. */
  readonly order: NamedOrder | 'any';
}

/** Terms of the tiles that are tried; 1 where every addition is rounded, 16 where every step of a product is. */
const tileTerms = [128, 64, 256, 32, 96, 192, 16, 1] as const;

/** The fewest terms of tiles that may come in any order. */
const fewestOfAny = 32;

/** Likeness of an error to another: their correlation, and the slope of the first on the second. */
export interface Likeness {
  readonly correlation: number;
  readonly slope: number;
  readonly elements: number;
}

/** Adds up likenesses over parts of a gradient. */
export function likenessSums() {
  let [products, ofError, ofMade, elements] = [0, 0, 0, 0];
  return {
    add: (error: number, made: number) => {
      products += error * made;
      ofError += error * error;
      ofMade += made * made;
      elements++;
    },
    found: (): Likeness => {
      const correlation = products / Math.sqrt(ofError * ofMade);
      return {
        correlation: Number.isFinite(correlation) ? correlation : 0,
        slope: ofMade > 0 ? products / ofMade : 0,
        elements,
      };
    },
  };
}

/**
 * The correlation from which on errors are those of a law; and the same in standard deviations of the correlation of independent
 * errors.
 */
const leastCorrelation = 0.5;
const leastDeviations = 8;

/** Whether a gradient's errors are those of a law: where noise takes part in both, at least half of them. */
export function isAlike({ correlation, slope, elements }: Likeness): boolean {
  const least = Math.max(leastCorrelation, leastDeviations / Math.sqrt(elements));
  return correlation >= least && slope >= 0.5 && slope <= 1.5;
}

/** The errors of a gradient in some rows, beyond the rounding of an exact one; and those that sums would have there. */
export function errorsBeside(of: Replayed, { quantity, values, format }: GivenGradient) {
  const { exact, bound } = of.failed.measured.gradients[quantity.name];
  const stored = (x: number) => round(formats[format], x);
  return {
    given: (i: number) => values[i] - stored(exact.values[i] + bound.shift[i]),
    made: (i: number, sum: number) =>
      stored(sum + bound.shift[i]) - stored(exact.values[i] + bound.shift[i]),
  };
}

/** Compares the errors of some rows with those of sums. */
function likenessOf(
  beside: ReturnType<typeof errorsBeside>,
  first: number,
  sums: Float64Array,
): Likeness {
  const all = likenessSums();
  sums.forEach((sum, i) => {
    all.add(beside.given(first + i), beside.made(first + i, sum));
  });
  return all.found();
}

/** The order of a tile of rows that its errors are most like. */
export function bestOrder(
  beside: ReturnType<typeof errorsBeside>,
  first: number,
  [tiles, accumulator]: readonly [TileSums, NarrowAccumulator],
  orders: readonly AdditionOrder[],
): { readonly order: AdditionOrder; readonly likeness: Likeness } | null {
  let best: { order: AdditionOrder; likeness: Likeness } | null = null;
  for (const order of orders) {
    const likeness = likenessOf(beside, first, narrowSums(tiles, accumulator, order));
    if (best === null || likeness.correlation > best.likeness.correlation)
      best = { order, likeness };
  }
  return best;
}

/** Rows of the tiles that have an order of their own. */
export const tileRows = 64;
/** Products in the sums of a sample, at most, and rows. */
const mostProducts = 1e6;
const mostRows = 32;

/** The tile of rows whose errors are the largest beside their bounds. */
function worstRows(of: Replayed, given: GivenGradient): GradientRows {
  const { heads, rows, columns, members, places } = sizesOf(of, given);
  const { bound } = of.failed.measured.gradients[given.quantity.name];
  const beside = errorsBeside(of, given);
  let worst = { head: 0, begin: 0, ratio: -1 };
  for (let head = 0; head < heads; head++)
    for (let begin = 0; begin < rows; begin += tileRows) {
      const [first, end] = [begin, Math.min(begin + tileRows, rows)].map(
        (row) => (head * rows + row) * columns,
      );
      let [errors, allowed] = [0, 0];
      for (let i = first; i < end; i++) {
        errors += beside.given(i) ** 2;
        allowed += bound.deviation[i] ** 2;
      }
      const ratio = errors / allowed;
      if (ratio > worst.ratio) worst = { head, begin, ratio };
    }
  const fitting = Math.floor(mostProducts / Math.max(members * places * columns, 1));
  const count = Math.min(Math.max(fitting, 4), mostRows);
  const { head, begin } = worst;
  return { head, begin, end: Math.min(begin + count, rows) };
}

/** Formats that sums may be kept in: that of the gradient first. */
function accumulatorFormats({ format }: GivenGradient): readonly FormatName[] {
  const usual = ['bf16', 'fp16'] as const;
  return format === 'fp16' ? usual.toReversed() : usual;
}

/** The lead in likeness that an order without a name needs over one with a name. */
const namedAdvantage = 0.03;

/** Rows of a gradient that laws are tried on, and the data of them that every law is compared with. */
function sampleOf(of: Replayed, given: GivenGradient) {
  const { members, places, rows, columns } = sizesOf(of, given);
  const sample = worstRows(of, given);
  if (places === 0) return null;
  const terms = gradientTerms(of, given, sample);
  const scale = given.quantity.name === 'dv' ? 1 : of.failed.problem.scale;
  const isPower = Math.log2(Math.abs(scale)) % 1 === 0;
  const last = [1, scale] as const;
  const scales = isPower ? [last] : [last, [scale, 1] as const];
  const accumulators = accumulatorFormats(given).flatMap((format) =>
    scales.map((ofScale): NarrowAccumulator => ({ format, scales: ofScale })),
  );
  const steps = tileTerms.flatMap((count) => {
    const counts = { heads: members, tiles: Math.ceil(places / count) };
    return counts.tiles === 1 && count > 2 * places ? [] : [{ count, counts }];
  });
  return {
    first: (sample.head * rows + sample.begin) * columns,
    beside: errorsBeside(of, given),
    accumulators,
    steps: steps.map((step) => ({ ...step, tiles: () => tileSums(terms, step.count) })),
  };
}

/** The law that the worst rows of a gradient are most like; null where they are like none. */
export function findNarrowLaw(of: Replayed, given: GivenGradient): NarrowLaw | null {
  const sample = sampleOf(of, given);
  if (sample === null) return null;
  const { first, beside, accumulators, steps } = sample;
  let best: NarrowLaw | null = null;
  let most = 0;
  const consider = (law: NarrowLaw, likeness: Likeness) => {
    const worth = likeness.correlation - (law.order === 'any' ? namedAdvantage : 0);
    if (!isAlike(likeness) || worth <= most) return;
    most = worth;
    best = law;
  };
  for (const { count, counts, tiles: made } of steps) {
    const tiles = made();
    for (const accumulator of accumulators) {
      for (const [order, additions] of ordersOf(counts))
        consider(
          { accumulator, terms: count, order },
          likenessOf(beside, first, narrowSums(tiles, accumulator, additions)),
        );
      const any = count < fewestOfAny ? [] : anyOrders(counts);
      const own = bestOrder(beside, first, [tiles, accumulator], any);
      if (own !== null) consider({ accumulator, terms: count, order: 'any' }, own.likeness);
    }
  }
  return best;
}

/**
 * The law of each format, in ascending order, whose errors in the worst rows are nearest in size to those of a gradient; the nearest
 * first.
 * @param most the factor by which they may differ
 */
export function lawsOfSize(of: Replayed, given: GivenGradient, most: number): readonly NarrowLaw[] {
  const sample = sampleOf(of, given);
  if (sample === null) return [];
  const { first, beside, accumulators, steps } = sample;
  const found: { readonly law: NarrowLaw; readonly distance: number }[] = [];
  for (const { count, counts, tiles: made } of steps) {
    const tiles = made();
    for (const accumulator of accumulators) {
      const [[order, additions]] = ordersOf(counts);
      let [errors, ofSums] = [0, 0];
      narrowSums(tiles, accumulator, additions).forEach((sum, i) => {
        errors += beside.given(first + i) ** 2;
        ofSums += beside.made(first + i, sum) ** 2;
      });
      const distance = Math.abs(Math.log(errors / ofSums)) / 2;
      if (distance < Math.log(most))
        found.push({ law: { accumulator, terms: count, order }, distance });
    }
  }
  const laws = found.sort((a, b) => a.distance - b.distance).map(({ law }) => law);
  const formatsOf = laws.map(({ accumulator }) => accumulator.format);
  return laws.filter((_, i) => formatsOf.indexOf(formatsOf[i]) === i);
}
