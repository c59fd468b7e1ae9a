import { describeProblem } from '../describe-problem.js';
import { laws } from '../laws/index.js';
import type { CheckResult } from './check-kernel.js';
import type { LawResult } from './law-progress.js';

/**
 * A violated law in some lines: what the law says, what is wrong, and the simplest problem that shows
 * it; the empty text when the law holds.
 */
export function describeLawFailure({ id, failure }: LawResult): string {
  if (failure === null) return '';
  const { statement, reason, choices } = laws[id];
  const { lawCase, regime, round, shrinks } = failure;
  const simplified =
    shrinks === 0 ? 'as it was drawn' : `simplified ${shrinks === 1 ? 'once' : `${shrinks} times`}`;
  return [
    `${id}: ${failure.statement}.`,
    '',
    `Law:    ${statement}.`,
    `Reason: ${reason}`,
    ...(failure.cause === null ? [] : [`Cause:  probably that ${failure.cause}.`]),
    `Found:  problem ${round} of this law, regime ${regime}, ${simplified}`,
    ...(choices > 1 ? [`Choice: ${lawCase.choice} of the ${choices} forms that the law has`] : []),
    '',
    describeProblem(lawCase.problem),
  ].join('\n');
}

/** Every violated law of a check, each in some lines; the empty text when all hold. */
export function describeFailures({ laws: results }: CheckResult): string {
  return results
    .filter(({ failure }) => failure !== null)
    .map((result) => describeLawFailure(result))
    .join('\n\n');
}
