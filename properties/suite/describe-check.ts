import { laws, type LawCase } from '../laws/index.js';
import { describeCase } from '../problems/index.js';
import type { LawFailure, LawResult } from './law-progress.js';
import { groupByKind, type ViolationGroup } from './violation-kind.js';

/** The results of the laws of a check. */
interface LawResults {
  readonly laws: readonly LawResult[];
}

/** A law that is violated. */
type Violated = LawResult & { readonly failure: LawFailure };

/** The violations of a check by their cause, starting with the one that most laws have in common. */
export function groupFailures({ laws: results }: LawResults): ViolationGroup<Violated>[] {
  const violated = results.filter((result): result is Violated => result.failure !== null);
  return groupByKind(violated, ({ failure }) => failure.kind);
}

/**
 * A violated law in some lines: its statement, the violation, and the simplest problem that shows it;
 * the empty text when the law holds.
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
    ...(failure.hint === null ? [] : [`Hint:   ${failure.hint}.`]),
    `Found:  problem ${round} of this law, regime ${regime}, ${simplified}`,
    ...(choices > 1 ? [`Choice: ${lawCase.choice} of the ${choices} forms that the law has`] : []),
    '',
    describeCase(lawCase),
  ].join('\n');
}

/** Number of elements of Q, K, V and dO: the amount of a case that there is to read. */
function caseSize({ problem: { q, k, v }, dout }: LawCase): number {
  return q.data.length + k.data.length + v.data.length + (dout?.data.length ?? 0);
}

/** Violations of one cause: the cause, the law with the smallest problem, and the statements of the others. */
function describeGroup({ title, violations }: ViolationGroup<Violated>): string {
  const bySize = [...violations].sort(
    (a, b) => caseSize(a.failure.lawCase) - caseSize(b.failure.lawCase),
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
 * Every violated law of a check, in some lines for each cause: a cause that several laws see appears once. The empty text when all hold.
 */
export function describeFailures(result: LawResults): string {
  return groupFailures(result).map(describeGroup).join('\n\n');
}

/** A law that was tried on nothing, and why. */
type Untried = Pick<LawResult, 'id' | 'status' | 'runs' | 'skipped'>;

/**
 * A message for a check in which no law was tried on anything, in one line: the reason, by the most
 * telling law, and the remedy.
 */
export function describeNothingTried({ laws }: { readonly laws: readonly Untried[] }): string {
  const untried = laws.filter(({ status }) => status === 'untried');
  const [first, ...rest] = (untried.length > 0 ? untried : [...laws]).sort(
    (a, b) => Number(b.runs > 0) - Number(a.runs > 0),
  );
  const example = first === undefined ? 'no law is left' : `${first.id}: ${first.skipped}`;
  const more = rest.length > 0 ? `; and ${rest.length} more` : '';
  return `nothing was checked: no law was tried on any problem (${example}${more}); give promises that fit the kernel (formats, dims, masks), more laws, or more time`;
}
