import * as fc from 'fast-check';
import {
  recurrentLaw,
  recurrentLawIds,
  type RecurrentCase,
  type RecurrentKernel,
} from '../laws/index.js';
import { recurrentProblem, type RecurrentRegimeName } from '../problems/index.js';
import { faultKind, type RoundResult, type ViolationKind } from '../../suite/index.js';
import type { PlannedRecurrentLaw } from './plan-check.js';
import type { ResolvedRecurrentPromises } from './promises.js';
import { runRecurrentCase, type RecurrentCaseResult } from './run-case.js';

/** A problem that violates a law, as simple as shrinking made it. */
export interface RecurrentFailure {
  readonly lawCase: RecurrentCase;
  /** The violation, in a sentence without its full stop. */
  readonly statement: string;
  /** Violations in the same words, but for numbers, have one cause. */
  readonly kind: ViolationKind;
  readonly regime: RecurrentRegimeName;
  /** The problem's number among those of its law, from 1. */
  readonly round: number;
  /** How many simpler problems failed as well, one after the other. */
  readonly shrinks: number;
}

/** A law of a check. */
export interface RecurrentLawOfCheck {
  readonly planned: PlannedRecurrentLaw;
  readonly promises: ResolvedRecurrentPromises;
  /** The seed of the check. */
  readonly seed: number;
}

/** Problems that cannot be tried after which a round gives up. */
const mostUntried = 20;

class Violation extends Error {}

/**
 * Tries a law on the problem of a round, which follows from the seed, the law and the round alone, and simplifies a violation.
 * @param round from 1
 * @throws RequestError for promises that leave no problem
 */
export async function tryRecurrentRound(
  law: RecurrentLawOfCheck,
  round: number,
  kernel: RecurrentKernel,
  shrinkSeconds: number,
): Promise<RoundResult<RecurrentFailure>> {
  const start = performance.now();
  const result = await search(law, round, kernel, shrinkSeconds);
  const seconds = (performance.now() - start) / 1000;
  return result.status === 'unsupported'
    ? { ...result, seconds }
    : { ...result, seconds, sizes: null, widened: [] };
}

/** What became of a law on the problem of a round. */
type SearchResult =
  | { readonly status: 'tried'; readonly failure: RecurrentFailure | null }
  | { readonly status: 'unsupported'; readonly reason: string };

async function search(
  { planned: { id, regimes }, promises, seed }: RecurrentLawOfCheck,
  round: number,
  kernel: RecurrentKernel,
  shrinkSeconds: number,
): Promise<SearchResult> {
  const { narrow, choices, ofGradients = false } = recurrentLaw(id);
  const index = recurrentLawIds.indexOf(id);
  const regime = regimes[(round - 1 + index) % regimes.length];
  const constraints = { ...(narrow?.(promises) ?? promises), gradients: ofGradients };
  const cases = fc.record({
    posed: recurrentProblem(constraints, regime),
    choice: fc.noBias(fc.integer({ min: 0, max: choices - 1 })),
  });
  let [reason, until] = ['', Infinity];
  const fault: { error?: unknown } = {};
  const property = fc.asyncProperty(cases, async (lawCase) => {
    if (performance.now() >= until) throw new fc.PreconditionFailure(true);
    let result: RecurrentCaseResult;
    try {
      result = await runRecurrentCase(id, lawCase, kernel, promises);
    } catch (error) {
      // A defect of this suite, or an absent kernel: no violation.
      fault.error ??= error;
      return;
    }
    if (result.status === 'held') return;
    if (result.status !== 'violated') {
      reason = result.reason;
      fc.pre(false);
      return;
    }
    if (until < Infinity && result.isSlow) return;
    const seconds = result.isSlow ? 0 : shrinkSeconds;
    until = Math.min(until, performance.now() + seconds * 1000);
    throw new Violation(result.statement);
  });
  const ofRound = Math.imul(round, 0xc2b2ae35) ^ Math.imul(index + 1, 0x85ebca6b);
  const details = await fc.check(property, {
    seed: Math.imul(seed ^ ofRound, 0x9e3779b1),
    numRuns: 1,
    maxSkipsPerRun: mostUntried,
  });
  if (fault.error !== undefined) throw fault.error;
  if (!details.failed) return { status: 'tried', failure: null };
  const lawCase = details.counterexample?.[0];
  if (lawCase === undefined || until === Infinity) return { status: 'unsupported', reason };
  const { errorInstance: found, numShrinks: shrinks } = details;
  const statement = found instanceof Error ? found.message : String(found);
  const kind = faultKind(statement);
  return { status: 'tried', failure: { lawCase, statement, kind, regime, round, shrinks } };
}
