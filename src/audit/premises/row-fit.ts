import type { Errors } from './error-sizes.js';

/** Errors of sampled rows: those of an output, those that a premise predicts, and those of any kernel's roundings. */
export interface ComparedErrors {
  readonly found: Errors;
  readonly predicted: Errors;
  readonly usual: Errors;
  /** The head of each row. */
  readonly heads: readonly number[];
  /** The error of an LSE through its own rounding and that of its sums. */
  readonly lseRounding: number;
}

/** The factor within which, and the least cosine with which, a row's error is the predicted one. */
const alikeInRow = 2.5;
const leastCosine = 0.25;
/** The least predicted error, as a part of any kernel's roundings, of a row that tells something. */
const visible = 0.5;
/** The part of these rows that must err as predicted: among all, and among those of each head. */
const mostRows = 0.75;
const mostOfHead = 0.5;
/** The fewest rows that tell something. */
export const fewestRows = 8;
/** The size up to which a sum over rows is typical, in units of √(Σ x²); for few rows, as a part of the largest possible sum. */
const typicalDeviations = 3.5;
const typicalShare = 0.8;
/** The uncertainty of sums of O, relative to Σ O². */
const sumsRounding = 2 ** -18;

/** The relation of one row's errors to the predicted ones. */
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
 * Whether rows err as predicted, one by one: most of those that tell something, and in every head. True where O is predicted
 * to err as any kernel's does.
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

/** Whether numbers that are equally likely of either sign add up to no more than such numbers do, or than their uncertainty. */
function isTypicalSum(values: Float64Array, known: number): boolean {
  const sum = Math.abs(values.reduce((all, x) => all + x, 0));
  const size = Math.sqrt(values.reduce((all, x) => all + x * x, 0));
  const deviations = Math.min(typicalDeviations, typicalShare * Math.sqrt(values.length));
  return sum <= known || sum <= deviations * size;
}

/**
 * Whether the errors less the predicted ones have no common part: over the rows, neither the scale or the level of O
 * nor the LSE is further from the predicted one than for numbers that are equally likely of either sign.
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
