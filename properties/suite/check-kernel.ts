import { RequestError } from '../../src/request-error.js';
import { laws, type AttentionKernel, type LawCase } from '../laws/index.js';
import { describeCase } from '../problems/index.js';
import { widenedNotes, type LawFailure, LawProgress, type LawResult } from './law-progress.js';
import { featureNotes, planCheck, type CheckPlan, type CheckScope } from './plan-check.js';
import type { KernelPromises } from './promises.js';
import { tryLaws, type CheckLimits, type TriedLaws } from './try-laws.js';
import { tryRound, type RoundResult } from './try-round.js';
import { groupByKind, type ViolationGroup } from './violation-kind.js';

interface LawResults {
  readonly laws: readonly LawResult[];
}

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
type Untried = Pick<LawResult, 'status' | 'runs' | 'skipped'> & { readonly id: string };

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

/** The laws, problems and time of a check. */
export interface CheckOptions extends CheckScope, CheckLimits {}

/** The results of all laws. */
export interface CheckResult extends TriedLaws {
  /** Other notes on the kernel, a sentence each without its full stop. */
  readonly notes: readonly string[];
}

/** Tries rounds of a plan's laws, by their ids, on a kernel. */
export function roundsOf(
  kernel: AttentionKernel,
  { laws: planned, promises }: CheckPlan,
  seed: number,
) {
  return (id: string, round: number, shrinkSeconds: number): Promise<RoundResult> => {
    const law = planned.find((one) => one.id === id)!;
    return tryRound({ planned: law, promises, seed }, round, kernel, shrinkSeconds);
  };
}

/**
 * Tries every law on random problems that the kernel promises to take. Laws take turns, so that a bug
 * that breaks many of them shows early; a failure is simplified and its law tried no more.
 * @throws RequestError for unknown laws or regimes, runs that are no positive whole number, a seed that
 * is no whole number, and promises that leave no problem
 */
export async function checkKernel(
  kernel: AttentionKernel,
  promises: KernelPromises = {},
  options: CheckOptions = {},
): Promise<CheckResult> {
  const plan = planCheck(promises, options);
  const tried = await tryLaws(
    plan.laws.map((law) => new LawProgress(law, plan.promises.laws[law.id])),
    (seed) => roundsOf(kernel, plan, seed),
    options,
  );
  const { laws: results } = tried;
  return {
    ...tried,
    notes: [
      ...widenedNotes(results.flatMap(({ widened }) => widened)),
      ...featureNotes(results, plan.promises),
    ],
  };
}

function plural(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** The number of causes of violations in words, where several have one. */
function inFindings(result: CheckResult, violated: number): string {
  const groups = groupFailures(result).length;
  return groups === violated ? '' : `, apparently by ${plural(groups, 'cause')}`;
}

/**
 * For any test runner: tries every law on random problems (see `checkKernel`), and throws an Error that
 * describes every violation, with the simplest problem that shows it, unless all laws hold.
 * @returns the result of each law, when all hold
 * @throws RequestError as `checkKernel`, and when no law was tried on any problem, so
 * that nothing was checked
 */
export async function assertAttentionKernel(
  kernel: AttentionKernel,
  promises: KernelPromises = {},
  options: CheckOptions = {},
): Promise<CheckResult> {
  const result = await checkKernel(kernel, promises, options);
  const { seed, runs, seconds } = result;
  const tried = result.laws.filter(({ status }) => status === 'holds' || status === 'violated');
  const violated = tried.filter(({ failure }) => failure !== null);
  if (violated.length > 0)
    throw new Error(
      [
        `the kernel violates ${violated.length} of ${plural(tried.length, 'law')}${inFindings(result, violated.length)} (seed ${seed}, ${plural(runs, 'run')} in ${seconds.toFixed(1)} s)`,
        describeFailures(result),
        `The option { seed: ${seed} } tries the same problems again.`,
      ].join('\n\n'),
    );
  if (!result.pass) throw new RequestError(describeNothingTried(result));
  return result;
}
