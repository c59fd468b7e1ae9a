import { fragmentColumns, fragmentsPerRow } from '../../../kernels/index.js';
import { decodeToFloat64, encodeFromFloat64, formats } from '../../formats/index.js';
import { type Problem, problemShape, type Tensor } from '../../problem/index.js';
import { scoreProblem } from '../../../properties/index.js';
import { lazily } from '../../reuse.js';
import type { ExponentialShare } from './exp2-shares.js';
import {
  errorRatio,
  exactAttention,
  forwardErrors,
  type ForwardErrors,
  runForward,
} from './forward-run.js';
import type { TradeOffCase, TradeOffRequest } from './trade-off-request.js';

const blockColumns = fragmentsPerRow * fragmentColumns;
const usedColumns = blockColumns - fragmentColumns;

/**
 * Magnitude of the elements of Q and, negative, of K that give a padding key its score: −2^16 as the
 * raw score, far below any other, so that its weight is exactly 0. Every input format can represent
 * it.
 */
const paddingElement = 256;

/**
 * A problem of one head with the same attention and its keys in columns 0 to 95 of each block of 128:
 * the last fragment holds padding keys of weight 0 and value 0. One channel is added to Q and K, 0 in
 * every key except these, so that no score of a key changes; sums over a block meet zeros in the
 * padding, which change no sum. The forward then acts as with blocks of 96 keys.
 *
 * Weights of the padding are 0 as long as c · 2^16 exceeds the spread of the scores, in log2, by 127.
 */
export function avoidLastFragment(problem: Problem): Problem {
  const { queries, keys, qkDim, vDim } = problemShape(problem);
  const fullBlocks = Math.max(Math.ceil(keys / usedColumns) - 1, 0);
  const padded = keys + fullBlocks * fragmentColumns;
  const decoded = ({ data, format }: Tensor): Float64Array =>
    decodeToFloat64(data, formats[format]);
  const encoded = (
    { format }: Tensor,
    rows: number,
    dim: number,
    values: Float64Array,
  ): Tensor => ({
    format,
    shape: [1, 1, rows, dim],
    data: encodeFromFloat64(formats[format], values),
  });
  const [q, k, v] = [decoded(problem.q), decoded(problem.k), decoded(problem.v)];
  const dim = qkDim + 1;
  const wideQ = new Float64Array(queries * dim);
  for (let row = 0; row < queries; row++) {
    wideQ.set(q.subarray(row * qkDim, (row + 1) * qkDim), row * dim);
    wideQ[row * dim + qkDim] = paddingElement;
  }
  const wideK = new Float64Array(padded * dim);
  const wideV = new Float64Array(padded * vDim);
  for (let column = 0, key = 0; column < padded; column++) {
    if (column % blockColumns >= usedColumns) {
      wideK[column * dim + qkDim] = -paddingElement;
      continue;
    }
    wideK.set(k.subarray(key * qkDim, (key + 1) * qkDim), column * dim);
    wideV.set(v.subarray(key * vDim, (key + 1) * vDim), column * vDim);
    key++;
  }
  return {
    ...problem,
    q: encoded(problem.q, queries, dim, wideQ),
    k: encoded(problem.k, padded, dim, wideK),
    v: encoded(problem.v, padded, vDim, wideV),
  };
}

/** The effect of a division of the exponentials on one problem. */
export interface ShareMeasure extends ExponentialShare {
  readonly errors: ForwardErrors;
  /** Errors as multiples of those with the special function unit alone; null where one is missing or both are 0. */
  readonly largestRatio: number | null;
  readonly rootMeanSquareRatio: number | null;
  readonly largestLseRatio: number | null;
}

/** The effects of the divisions on the problem of a regime in a format. */
export interface PolynomialShareCase extends TradeOffCase {
  /** The rescale threshold of the runs: FlashAttention-4's for the format. */
  readonly rescaleThreshold: number;
  /** Measurements of the divisions, in the requested order. */
  readonly shares: readonly ShareMeasure[];
}

/**
 * Measures divisions of the exponentials on the problem of a regime in a format, bit for bit, on this
 * thread.
 * @param shares the others are compared with the first
 */
export function measureShares(
  { format, regime }: TradeOffCase,
  shares: readonly ExponentialShare[],
  { architecture, queries, keys, dim, seed }: TradeOffRequest,
): PolynomialShareCase {
  const problem = scoreProblem(regime, { queries, keys, dim, format, seed });
  const spread = lazily(() => avoidLastFragment(problem));
  const reference = exactAttention(problem);
  const runs = shares.map(({ degree, pattern, avoidsLastFragment }) =>
    runForward(avoidsLastFragment ? spread() : problem, {
      architecture,
      'exp2.frequency': pattern.frequency,
      'exp2.reserve': pattern.reserve,
      'exp2.startFragment': pattern.startFragment,
      ...(degree === null ? {} : { 'exp2.degree': degree }),
    }),
  );
  const errors = runs.map((run) => forwardErrors(run, reference));
  const [baseline] = errors;
  return {
    format,
    regime,
    rescaleThreshold: Number(runs[0].settings['rescale.threshold']),
    shares: shares.map((share, i) => ({
      ...share,
      errors: errors[i],
      largestRatio: errorRatio(errors[i].largest, baseline.largest),
      rootMeanSquareRatio: errorRatio(errors[i].rootMeanSquare, baseline.rootMeanSquare),
      largestLseRatio: errorRatio(errors[i].largestLse, baseline.largestLse),
    })),
  };
}
