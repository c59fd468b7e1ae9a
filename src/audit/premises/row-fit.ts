import type { Errors } from './error-sizes.js';

/** Errors of sampled rows: what an output has, what a premise predicts, and what any kernel's roundings make. */
export interface ComparedErrors {
  readonly found: Errors;
  readonly predicted: Errors;
  readonly usual: Errors;
  /** By row: the head that it is of. */
  readonly heads: readonly number[];
  /** What an LSE is off by through its own rounding and that of its sums. */
  readonly lseRounding: number;
}

/** A row errs as predicted if it errs as much, within this factor, and in this direction, by the cosine. */
const alikeInRow = 2.5;
const leastCosine = 0.25;
/** Of rows that are predicted to err by this part of any kernel's roundings and more something can be told. */
const visible = 0.5;
/** The part of these rows that must err as predicted: of all, and of those of each head. */
const mostRows = 0.75;
const mostOfHead = 0.5;
/** Fewer rows tell nothing. */
export const fewestRows = 8;
/** √(Σ x²) that a sum over rows may come to and be typical; of few rows, a part of what it can come to at most. */
const typicalDeviations = 3.5;
const typicalShare = 0.8;
/** What sums of O are known to, relative to Σ O². */
const sumsRounding = 2 ** -18;

/** How one row's errors lie to the predicted ones. */
interface RowFit {
  readonly head: number;
  readonly isVisible: boolean;
  readonly isAlike: boolean;
}

function fitOfRow(
  { found, predicted, usual, heads }: ComparedErrors,
  row: number,
  hasDirection: boolean,
): RowFit {
  const columns = found.out.length / heads.length;
  let [ofFound, ofPredicted, ofUsual, both] = [0, 0, 0, 0];
  for (let at = row * columns; at < (row + 1) * columns; at++) {
    const x = found.out[at] - usual.out[at];
    const y = predicted.out[at] - usual.out[at];
    ofFound += x * x;
    ofPredicted += y * y;
    ofUsual += usual.out[at] ** 2;
    both += x * y;
  }
  const ratio = ofFound / ofPredicted;
  const isAsLarge = ratio <= alikeInRow ** 2 && ratio * alikeInRow ** 2 >= 1;
  const pointsAlike = !hasDirection || both >= leastCosine * Math.sqrt(ofFound * ofPredicted);
  return {
    head: heads[row],
    isVisible: ofPredicted > visible ** 2 * ofUsual,
    isAlike: isAsLarge && pointsAlike,
  };
}

/**
 * Whether rows err as predicted, one by one: most of those of which something can be told, and in every head. True where O is
 * predicted to err as any kernel's does.
 * @param hasDirection whether the signs of errors follow from the problem
 */
export function errsRowByRow(compared: ComparedErrors, hasDirection: boolean): boolean {
  const rows = compared.heads
    .map((_, row) => fitOfRow(compared, row, hasDirection))
    .filter(({ isVisible }) => isVisible);
  if (2 * rows.length < compared.heads.length) return true;
  const shareOf = (some: readonly RowFit[]) =>
    some.filter(({ isAlike }) => isAlike).length / some.length;
  const heads = new Set(rows.map(({ head }) => head));
  return (
    shareOf(rows) >= mostRows &&
    [...heads].every((head) => shareOf(rows.filter((row) => row.head === head)) >= mostOfHead)
  );
}

/** Whether numbers that are as likely of either sign come to no more than such numbers do, beyond what they are known to. */
function isTypicalSum(values: Float64Array, known: number): boolean {
  const sum = Math.abs(values.reduce((all, x) => all + x, 0));
  const size = Math.sqrt(values.reduce((all, x) => all + x * x, 0));
  const deviations = Math.min(typicalDeviations, typicalShare * Math.sqrt(values.length));
  return sum <= known || sum <= deviations * size;
}

/**
 * Whether what is left of the errors once the predicted ones are taken off has no common part: O is neither larger nor
 * higher than predicted over the rows, nor the LSE, than numbers are that are as likely of either sign.
 */
export function isTypical({ found, predicted, heads, lseRounding }: ComparedErrors): boolean {
  const rows = heads.length;
  const columns = found.out.length / rows;
  const left = { slope: new Float64Array(rows), bias: new Float64Array(rows) };
  let [squares, sizes] = [0, 0];
  for (let row = 0; row < rows; row++)
    for (let at = row * columns; at < (row + 1) * columns; at++) {
      const x = found.out[at] - predicted.out[at];
      left.slope[row] += x * found.exact[at];
      left.bias[row] += x;
      squares += found.exact[at] ** 2;
      sizes += Math.abs(found.exact[at]);
    }
  const ofLse = found.lse.map((x, row) => x - predicted.lse[row]);
  return (
    isTypicalSum(left.slope, sumsRounding * squares) &&
    isTypicalSum(left.bias, sumsRounding * sizes) &&
    isTypicalSum(ofLse, rows * lseRounding)
  );
}
