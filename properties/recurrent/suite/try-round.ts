import * as fc from 'fast-check';
import {
  recurrentLaw,
  recurrentLawIds,
  type RecurrentCase,
  type RecurrentKernel,
  type RecurrentLawId,
} from '../laws/index.js';
import {
  narrowedTo,
  recurrentProblem,
  recurrentRegimeNames,
  type RecurrentRegimeName,
} from '../problems/index.js';
import type { ResolvedRecurrentPromises } from './promises.js';
import { runRecurrentCase, type RecurrentCaseResult } from './run-case.js';

/** A problem that violates a law, as simple as shrinking made it. */
export interface RecurrentFailure {
  readonly lawCase: RecurrentCase;
  /** The violation, in a sentence without its full stop. */
  readonly statement: string;
  readonly regime: RecurrentRegimeName;
  /** The problem's number among those of its law, from 1. */
  readonly round: number;
  /** How many simpler problems failed as well, one after the other. */
  readonly shrinks: number;
}

/** What became of a law on the problem of a round. */
export type RecurrentRoundResult =
  | { readonly status: 'tried'; readonly failure: RecurrentFailure | null }
  | { readonly status: 'unsupported'; readonly reason: string };

/** The regimes that a law can be tried in on such a kernel, or the reason that there is none. */
export function usableRegimes(
  id: RecurrentLawId,
  promises: ResolvedRecurrentPromises,
  wanted: readonly RecurrentRegimeName[],
): readonly RecurrentRegimeName[] | string {
  const { narrow, ofGradients, regimes = recurrentRegimeNames } = recurrentLaw(id);
  if (promises.laws[id] === 'none') return 'not promised';
  if (ofGradients === true && !promises.gradients) return 'gradients are not promised';
  const constraints = narrow === undefined ? promises : narrow(promises);
  if (constraints === null) return 'what it speaks of is not promised';
  const usable = regimes.filter(
    (name) => wanted.includes(name) && narrowedTo(name, constraints) !== null,
  );
  return usable.length > 0 ? usable : `it is tried in ${regimes.join(', ')} only`;
}

/** A law on its way through its rounds. */
export interface PlannedRecurrentLaw {
  readonly id: RecurrentLawId;
  readonly regimes: readonly RecurrentRegimeName[];
  readonly promises: ResolvedRecurrentPromises;
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
  { id, regimes, promises, seed }: PlannedRecurrentLaw,
  round: number,
  kernel: RecurrentKernel,
  shrinkSeconds: number,
): Promise<RecurrentRoundResult> {
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
  return { status: 'tried', failure: { lawCase, statement, regime, round, shrinks } };
}
