import * as fc from 'fast-check';
import { placeInBrackets } from '../../src/audit/index.js';
import {
  isWithinScoreLimit,
  laws,
  type AttentionKernel,
  type KernelRun,
  type LawCase,
  type LawId,
} from '../laws/index.js';
import { lawCases, type DrawnFrom } from './law-cases.js';
import type { ResolvedPromises } from './promises.js';
import { runCase, type CaseResult, type FoundCause } from './run-case.js';
import { faultKind, findKind, type ViolationKind } from './violation-kind.js';

/** Arguments of the search for a case that violates a law. */
interface CounterexampleSearch extends DrawnFrom {
  readonly law: LawId;
  /** Seed of the case, the same for the same seed. */
  readonly seed: number;
}

/** A case that violates a law, as simple as shrinking made it. */
export interface Counterexample {
  readonly lawCase: LawCase;
  /** The violation, in a sentence without its full stop. */
  readonly statement: string;
  /**
   * The cause and its place, as diagnosed by an audit of the problem as it was drawn: simple problems fit many causes.
   * Null where that finds none.
   */
  readonly cause: string | null;
  /** The premise under which that audit would let the kernel pass, in a clause; null for none. */
  readonly hint: string | null;
  /** The kind of violation: violations of several laws have one cause where their kinds agree. */
  readonly kind: ViolationKind;
  /** Every run of the kernel on the case, in order. */
  readonly runs: readonly KernelRun[];
  /** Number of simpler cases that failed as well, one after the other. */
  readonly shrinks: number;
}

type SearchResult =
  | {
      readonly status: 'held';
      /** Every run of the kernel on the case. */
      readonly runs: readonly KernelRun[];
    }
  | { readonly status: 'unsupported'; readonly reason: string }
  | {
      readonly status: 'violated';
      readonly counterexample: Counterexample;
      /** Every run of the kernel on the case as it was drawn, up to its failure. */
      readonly runs: readonly KernelRun[];
      /** The case as it was drawn. */
      readonly drawn: LawCase;
    };

/** Number of problems that cannot be tried after which a search gives up. */
const mostUntried = 20;

class Violation extends Error {}

/** A cause with its place, which is one of the problem that was judged: said where another one is shown. */
function causeWithPlace({ sentence, place }: FoundCause, isShown: boolean): string {
  const where = placeInBrackets(place);
  return sentence + (isShown ? where : where.replace(/\)$/, ' of the problem as it was drawn)'));
}

type Violated = CaseResult & { readonly status: 'violated' };

/**
 * Draws one case and tries the law on it; a violation is shrunk for at most `shrinkSeconds`, or not at
 * all if it took too long.
 * @throws RequestError for promises that leave no problem
 */
export async function findCounterexample(
  { law, seed, ...drawnFrom }: CounterexampleSearch,
  kernel: AttentionKernel,
  promises: ResolvedPromises,
  shrinkSeconds: number,
): Promise<SearchResult> {
  // What the kernel declines says more than what the law has no use for.
  const refusal = { declined: '', inapplicable: '' };
  const refuse = (kind: keyof typeof refusal, reason: string): void => {
    refusal[kind] = reason;
    fc.pre(false);
  };
  let heldRuns: readonly KernelRun[] = [];
  const fault: { error?: unknown } = {};
  const found: { first?: Violated & { readonly lawCase: LawCase }; until: number } = {
    until: Infinity,
  };
  const attempt = async (lawCase: LawCase, diagnose: boolean): Promise<CaseResult> =>
    runCase(law, lawCase, kernel, promises, { diagnose });
  const property = fc.asyncProperty(lawCases(laws[law], promises, drawnFrom), async (lawCase) => {
    if (!isWithinScoreLimit(lawCase.problem, promises.scoreLimit))
      refuse('inapplicable', 'scores beyond the promised limit');
    // Shrinking has its time, the first case has all that it takes.
    if (performance.now() >= found.until) throw new fc.PreconditionFailure(true);
    let result: CaseResult;
    try {
      result = await attempt(lawCase, false);
    } catch (error) {
      // Not the kernel's doing: a defect of this suite, to be seen as such.
      fault.error ??= error;
      return;
    }
    if (result.status === 'unsupported') refuse('declined', result.reason);
    if (result.status === 'inapplicable') refuse('inapplicable', result.reason);
    if (result.status === 'held') heldRuns = result.runs;
    if (result.status === 'violated') {
      if (found.first !== undefined && result.isSlow) return;
      found.first ??= { ...result, lawCase };
      found.until = Math.min(
        found.until,
        performance.now() + (result.isSlow ? 0 : shrinkSeconds * 1000),
      );
      throw new Violation(result.statement);
    }
  });
  const details = await fc.check(property, {
    seed,
    numRuns: 1,
    maxSkipsPerRun: mostUntried,
  });
  if (fault.error !== undefined) throw fault.error;
  if (!details.failed) return { status: 'held', runs: heldRuns };
  const lawCase = details.counterexample?.[0];
  const { first } = found;
  if (lawCase === undefined || first === undefined)
    return { status: 'unsupported', reason: refusal.declined || refusal.inapplicable };
  const shrinks = details.numShrinks;
  const drawn = first.lawCase;
  const violated = (
    { statement, runs }: Pick<Counterexample, 'statement' | 'runs'>,
    kind: ViolationKind,
    { cause, hint }: Pick<Counterexample, 'cause' | 'hint'>,
  ): SearchResult => ({
    status: 'violated',
    runs: first.runs,
    drawn,
    counterexample: { statement, runs, kind, cause, hint, lawCase, shrinks },
  });
  if (first.isSlow) return violated(first, faultKind(first.statement), { cause: null, hint: null });
  const diagnosed = await attempt(drawn, true);
  const { diagnosis, hint, fitting } =
    diagnosed.status === 'violated' ? diagnosed : { diagnosis: null, hint: null, fitting: [] };
  const told = {
    cause: diagnosis === null ? null : causeWithPlace(diagnosis, drawn === lawCase),
    hint,
  };
  const result = drawn === lawCase ? diagnosed : await attempt(lawCase, false);
  if (result.status !== 'violated') {
    const again =
      'the same problem passed when it was tried again: the kernel is not deterministic';
    const kind = { id: 'not-deterministic', title: again, equivalents: [] };
    return violated({ statement: `${first.statement}; ${again}`, runs: [] }, kind, told);
  }
  const violation = { law, lawCase, drawn, result, diagnosis, fitting };
  const kind = await findKind(violation, kernel, promises);
  return violated(result, kind, told);
}
