import type { LawId } from '../../properties/index.js';
import type { CheckReport } from '../report/index.js';
import { RequestError } from '../request-error.js';

/** A law, why it was skipped, and whether it failed. */
interface TriedLaw {
  readonly id: LawId;
  readonly skipped: string | null;
  readonly failure: object | null;
}

/** @throws RequestError when no property was tried on anything that the kernel takes */
export function rejectNothingTried(laws: readonly TriedLaw[]): void {
  if (laws.some(({ skipped, failure }) => skipped === null || failure !== null)) return;
  const [first, ...rest] = new Set(laws.map(({ id, skipped }) => `${id}: ${skipped}`));
  throw new RequestError(
    `no property was tried (${first}${rest.length > 0 ? `; and ${rest.length} more` : ''}); change what is promised or asked for`,
  );
}

/**
 * The same of a report.
 * @throws RequestError unless a property was tried, the time was up or the kernel does not run
 */
export function rejectEmptyReport({ properties, outOfTime, execution }: CheckReport): void {
  if (outOfTime || execution !== null) return;
  rejectNothingTried(
    properties.map(({ name, skipped, violation }) => ({ id: name, skipped, failure: violation })),
  );
}
