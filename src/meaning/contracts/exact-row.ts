import {
  addDoubleDouble,
  addFloat64ToDoubleDouble,
  divideDoubleDouble,
  doubleDouble,
  multiplyDoubleDouble,
  multiplyDoubleDoubleByFloat64,
  negateDoubleDouble,
  subtractDoubleDouble,
  type DoubleDouble,
} from '../../arith/index.js';
import {
  exponentRows,
  ln2Words,
  log2eWords,
  log2OfDoubleDouble,
  type ExponentRow,
} from '../../../oracles/index.js';
import { problemShape, type Problem } from '../../problem/index.js';
import type { LseParts } from './lse-forms.js';
import { power, scaledExponent, weighColumns, weighRow, type RowWeights } from './weigh-row.js';

/** A row of queries of a problem. */
export interface RowPlace {
  readonly batch: number;
  /** A query head, counted within the batch. */
  readonly head: number;
  readonly row: number;
}

/**
 * What an element of an output would be without any rounding; null for one that has no meaning.
 * @param column 0 for an output of one number a row
 */
export type RealOf = (
  output: 'out' | 'lse',
  place: RowPlace,
  column: number,
) => DoubleDouble | null;

/** One row of attention in double-double: an infinity or a NaN is in the high word. */
export interface ExactRow {
  /** Per column of V. */
  readonly out: readonly DoubleDouble[];
  /** Σ p|v| / Σ p per column, with the weights that O has: what errors of O are relative to. */
  readonly magnitude: readonly DoubleDouble[];
  /** log2 Σ 2^exponent: the LSE in octaves, with the sink where the LSE has it; −∞ for an empty sum. */
  readonly log2Sum: DoubleDouble;
  /** That logarithm as the sum of the largest exponent's and a rest. */
  readonly lseParts: LseParts;
  /** The natural logarithm: log2Sum · ln 2. */
  readonly lse: DoubleDouble;
  /** The divisor of O relative to the largest weight of a key, with the sink; 0 for a row without keys. */
  readonly rowSum: DoubleDouble;
}

/** The exact factor of q·k in a base 2 exponent: scale · log2 e, relative error 3u², u = 2^-53. */
export function exactFactor({ scale }: Pick<Problem, 'scale'>): DoubleDouble {
  return multiplyDoubleDoubleByFloat64(log2eWords(), scale);
}

/** A factor over the exact one; null for 1, and for a scale of 0, which has no other factor. */
export function factorRatio(
  problem: Pick<Problem, 'scale'>,
  factor: DoubleDouble | null,
): DoubleDouble | null {
  if (factor === null || problem.scale === 0) return null;
  return divideDoubleDouble(factor, exactFactor(problem));
}

/** The parts of the LSE; a sink above all keys counts in place of the largest of them, so that nothing cancels. */
function lsePartsOf(
  row: ExponentRow,
  { ofKeys, largest }: RowWeights,
  ratio: DoubleDouble | null,
): LseParts {
  const without = (octaves: DoubleDouble) => ({ octaves, largest: null, sum: doubleDouble(0) });
  if (row.specialLse !== null) return without(doubleDouble(row.specialLse));
  const octaves = (natural: DoubleDouble) =>
    scaledExponent(multiplyDoubleDouble(natural, log2eWords()), ratio);
  const origin = addDoubleDouble(octaves(row.origin), largest);
  const sink = row.sink?.inLse === true ? row.sink : null;
  const above =
    sink === null ? null : subtractDoubleDouble(scaledExponent(sink.exponent, ratio), largest);
  if (sink !== null && above !== null && (ofKeys.high === 0 || above.high > 0)) {
    const below =
      ofKeys.high === 0 ? ofKeys : multiplyDoubleDouble(ofKeys, power(negateDoubleDouble(above)));
    const sum = addFloat64ToDoubleDouble(below, 1);
    return without(addDoubleDouble(octaves(doubleDouble(sink.logit)), log2OfDoubleDouble(sum)));
  }
  if (ofKeys.high === 0) return without(doubleDouble(-Infinity));
  const sum = above === null ? ofKeys : addDoubleDouble(ofKeys, power(above));
  const exact = multiplyDoubleDouble(
    ratio === null ? largest : divideDoubleDouble(largest, ratio),
    ln2Words(),
  );
  return {
    octaves: addDoubleDouble(origin, log2OfDoubleDouble(sum)),
    largest: { octaves: origin, natural: addDoubleDouble(row.origin, exact) },
    sum,
  };
}

/**
 * A row from its exponents.
 * @param ratio as `factorRatio` gives it
 */
export function exactRowOf(row: ExponentRow, ratio: DoubleDouble | null): ExactRow {
  const weighed = weighRow(row, ratio);
  const columns = weighColumns(row, weighed);
  const lseParts = lsePartsOf(row, weighed, ratio);
  const log2Sum = lseParts.octaves;
  return {
    out: columns.map(({ out }) => out),
    magnitude: columns.map(({ magnitude }) => magnitude),
    log2Sum,
    lseParts,
    lse: Number.isFinite(log2Sum.high) ? multiplyDoubleDouble(log2Sum, ln2Words()) : log2Sum,
    rowSum: weighed.divisor ?? weighed.ofKeys,
  };
}

/**
 * A function that gives rows of a problem as their exponents.
 * @throws RequestError when the problem's shapes do not fit together
 */
export function exponentsOf(problem: Problem): (place: RowPlace) => ExponentRow {
  const { heads } = problemShape(problem);
  const rowOf = exponentRows(problem);
  return ({ batch, head, row }) => rowOf(batch * heads + head, row);
}

/**
 * Attention of one row of queries without any rounding but that of double-double: some 1e-29 of Σ p|v| / Σ p, and of an
 * LSE absolutely, more where a softcap is large (1e-30 of it), for values of V of magnitudes from 2^-800 to 2^900. For one row; `exponentsOf` keeps the heads that it has decoded.
 *
 * @param factor stands for scale · log2 e, its default: the weight of a key is 2^(factor · score / scale), score = scale · q·k
 * with all that the problem's law makes of it, and that of the sink likewise. The tanh of a softcap is that of the exact score.
 * @throws RequestError when the problem's shapes do not fit together
 */
export function exactAttentionRow(
  problem: Problem,
  place: RowPlace,
  factor: DoubleDouble | null = null,
): ExactRow {
  return exactRowOf(exponentsOf(problem)(place), factorRatio(problem, factor));
}
