import type { Gradient } from '../../../../oracles/index.js';
import { formats, unitRoundoff, type FormatName } from '../../../formats/index.js';
import { distanceToFormat, outputRounding, roundingSpread } from '../../bounds/index.js';
import { addShare, techniquePlaces } from './gradient-techniques.js';
import type { GradientTechniqueBound } from './group-bounds.js';
import type { PairArithmetic, SumErrors } from './pair-arithmetic.js';

/** What fp64 leaves uncertain in all of this, many times over. */
export const up = 1 + 2 ** -12;

/** fp32 sums beyond this may leave their range on the way. */
const largestSum = 2 ** 120;

/** An error at worst, and its variance. */
interface TechniqueError {
  readonly worst: number;
  readonly variance: number;
}

const none: TechniqueError = { worst: 0, variance: 0 };

/** What moves an element before it is rounded. */
export interface ElementErrors {
  /** Signed: what the stored forward moves. */
  readonly shift: number;
  /** Of the pairs that it is a sum over: all techniques together, without what is known. */
  readonly pairs: TechniqueError;
  /** What is known of the roundings of pairs, and whose they are. */
  readonly known: number;
  readonly knownOf: number;
  /** Of the sum: its terms with their errors, how many of them may err alike, and what any such sum may be off by. */
  readonly magnitude: number;
  readonly alike: number;
  readonly sum: SumErrors;
  readonly lseInput?: TechniqueError;
  readonly delta?: TechniqueError;
  readonly groupSum?: TechniqueError;
  /** What a head's share that is stored may make of errors before. */
  readonly growth: number;
  /** What does not average out, but for the sum's and the scale's. */
  readonly systematic: number;
  /** What numbers that underflow come to. */
  readonly floor: number;
}

/** Which element: of a bound, its row and place; and its place in the exact gradient. */
export interface ElementPlace {
  readonly row: number;
  readonly at: number;
  readonly of: number;
}

/** Makes a function that writes the bounds of elements: `accumulate`, `scale` and `output-round`, Theorems 8 and 9. */
export function createFinish(
  { elementwise, elementwiseVariance }: PairArithmetic,
  format: FormatName,
) {
  const table = formats[format];
  // What is halfway to the next number beyond the largest becomes infinite.
  const most = table.maxFinite * (1 + unitRoundoff(table) / 2);
  const { lseInput, delta, accumulate, groupSum, scale, outputRound } = techniquePlaces;

  return function finishElement(
    bound: GradientTechniqueBound,
    { row, at, of }: ElementPlace,
    { values, radius }: Gradient,
    errors: ElementErrors,
  ): void {
    const { shift, pairs, magnitude, sum, growth } = errors;
    const value = values[of] + shift;
    const size = Math.abs(value);
    let worst = growth * pairs.worst * up;
    let variance = pairs.variance + errors.known ** 2;
    const add = (place: number, error: TechniqueError, factor: number) => {
      const ofWorst = factor * error.worst * up;
      addShare(bound.techniques, row, place, ofWorst, error.variance);
      worst += ofWorst;
      variance += error.variance;
    };
    addShare(bound.techniques, row, errors.knownOf, 0, errors.known ** 2);
    add(lseInput, errors.lseInput ?? none, growth);
    add(delta, errors.delta ?? none, growth);
    const walk = (sum.walk * (magnitude + size)) / 2;
    const ofSum = { worst: sum.worst * magnitude, variance: errors.alike * walk ** 2 };
    add(accumulate, ofSum, growth);
    add(groupSum, errors.groupSum ?? none, growth);
    const ofScale = 3 * elementwise * size + errors.floor;
    add(scale, { worst: ofScale, variance: elementwiseVariance * size ** 2 }, 1);
    worst += radius[of];
    bound.shift[at] = shift;
    const reach = size + worst;
    if (!(reach < most && (format === 'fp64' || reach < largestSum))) {
      bound.total[at] = Infinity;
      bound.systematic[at] = Infinity;
      bound.deviation[at] = Infinity;
      addShare(bound.techniques, row, outputRound, Infinity, Infinity);
      if (!Number.isFinite(shift)) bound.shift[at] = 0;
      return;
    }
    const half = Math.min(
      outputRounding(format, value, worst),
      distanceToFormat(format, value) + worst,
    );
    bound.total[at] = worst + half;
    const typical =
      errors.systematic + (sum.toZero + elementwise / 2) * size + errors.floor + radius[of];
    const systematic = Math.min(typical, worst);
    const rounded = roundingSpread(format, value, {
      predicted: 0,
      noise: Math.sqrt(variance),
      systematic,
    });
    bound.systematic[at] = systematic + rounded.systematic;
    bound.known[at] = rounded.known ?? 0;
    const ofRounding = rounded.variance + bound.known[at] ** 2;
    bound.deviation[at] = Math.sqrt(variance + ofRounding);
    addShare(bound.techniques, row, outputRound, half, ofRounding);
  };
}
