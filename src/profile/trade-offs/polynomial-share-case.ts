import { scoreProblem } from '../../../properties/index.js';
import { lazily } from '../../lazily.js';
import { avoidLastFragment } from './avoid-last-fragment.js';
import type { ExponentialShare } from './exp2-shares.js';
import {
  errorRatio,
  exactAttention,
  forwardErrors,
  type ForwardErrors,
  runForward,
} from './forward-run.js';
import type { TradeOffCase, TradeOffRequest } from './trade-off-request.js';

/** What a division of the exponentials does to one problem. */
export interface ShareMeasure extends ExponentialShare {
  readonly errors: ForwardErrors;
  /** Errors as multiples of those with the special function unit alone; null where one is missing or both are 0. */
  readonly largestRatio: number | null;
  readonly rootMeanSquareRatio: number | null;
  readonly largestLseRatio: number | null;
}

/** What the divisions do to the problem of a regime in a format. */
export interface PolynomialShareCase extends TradeOffCase {
  /** The rescale threshold of the runs: FlashAttention-4's for the format. */
  readonly rescaleThreshold: number;
  /** In the order asked for. */
  readonly shares: readonly ShareMeasure[];
}

/**
 * Measures divisions of the exponentials on the problem of a regime in a format, bit for bit, on this
 * thread.
 * @param shares the first is what the others are compared with
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
