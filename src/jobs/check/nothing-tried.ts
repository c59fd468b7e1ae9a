import { describeNothingTried, type CheckPlan, type LawResult } from '../../../properties/index.js';
import type { CheckReport } from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';

/** A law with what became of it. */
type TriedLaw = Pick<LawResult, 'id' | 'status' | 'runs' | 'skipped'>;

/** @throws RequestError when a plan leaves no law to try */
export function rejectEmptyPlan({ laws }: CheckPlan): void {
  if (laws.some(({ skipped }) => skipped === null)) return;
  const untried = laws.map(({ id, skipped }) => ({
    id,
    status: 'skipped' as const,
    runs: 0,
    skipped,
  }));
  throw new RequestError(describeNothingTried({ laws: untried }));
}

/** @throws RequestError when no law was tried on anything: that is neither a pass nor a failure */
export function rejectNothingTried(laws: readonly TriedLaw[]): void {
  if (laws.some(({ status }) => status === 'holds' || status === 'violated')) return;
  throw new RequestError(describeNothingTried({ laws }));
}

/**
 * The same of a report.
 * @throws RequestError unless a property was tried, or the kernel does not run, which is a failure
 */
export function rejectEmptyReport({ properties, execution }: CheckReport): void {
  if (execution !== null) return;
  rejectNothingTried(
    properties.map(({ name, result, runs, skipped }) => ({
      id: name,
      status: result,
      runs,
      skipped,
    })),
  );
}
