import { describeProblem } from '../problems/index.js';
import { laws } from '../laws/index.js';
import type { CheckResult } from './check-kernel.js';
import type { LawFailure, LawResult } from './law-progress.js';
import { problemSize } from './tried-sizes.js';
import { groupByKind, type ViolationGroup } from './violation-kind.js';

/** A law that is violated. */
type Violated = LawResult & { readonly failure: LawFailure };

/** The violations of a check by their cause, those first that most laws have in common. */
export function groupFailures({
  laws: results,
}: Pick<CheckResult, 'laws'>): ViolationGroup<Violated>[] {
  const violated = results.filter((result): result is Violated => result.failure !== null);
  return groupByKind(violated, ({ failure }) => failure.kind);
}

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

/** Violations of one cause: the cause, the law with the smallest problem, and what the others say. */
function describeGroup({ title, violations }: ViolationGroup<Violated>): string {
  const bySize = [...violations].sort(
    (a, b) => problemSize(a.failure.lawCase.problem) - problemSize(b.failure.lawCase.problem),
  );
  const [simplest, ...others] = bySize;
  const details = describeLawFailure(simplest!);
  if (others.length === 0) return details;
  return [
    `${title} (seen by ${violations.length} laws).`,
    details,
    ['Seen as well by', ...others.map(({ id, failure }) => `  ${id}: ${failure.statement}.`)].join(
      '\n',
    ),
  ].join('\n\n');
}

/**
 * Every violated law of a check, in some lines for each cause: what several laws see of one cause is told
 * once. The empty text when all hold.
 */
export function describeFailures(result: Pick<CheckResult, 'laws'>): string {
  return groupFailures(result).map(describeGroup).join('\n\n');
}
