import { RequestError } from '../../src/request-error.js';
import {
  arrangeResults,
  KernelAbsent,
  KernelFault,
  NotApplicable,
  UnsupportedProblem,
} from '../laws/index.js';
import {
  findSmallestChange,
  probesOf,
  type Outcome,
  type SearchResult,
} from './smallest-change.js';
import { rowChange, type FormattedResults, type RowChange } from './row-change.js';
import type { Made, Surroundings } from './scene.js';

/** Runs the kernel on a problem. @throws KernelFault, UnsupportedProblem */
export type Run = (made: Made) => Promise<FormattedResults>;

/** What changed at a value: bits, or that the kernel fails. */
export type Found =
  | {
      readonly kind: 'bits';
      readonly change: RowChange;
      /** What the kernel gave there. */
      readonly results: FormattedResults;
    }
  | { readonly kind: 'fault'; readonly fault: string };

/** Why there is no result at a value. @throws any other error */
function withoutResult(error: unknown): Outcome<Found> {
  if (error instanceof KernelFault)
    return { kind: 'changed', found: { kind: 'fault', fault: error.message } };
  const isRefused =
    error instanceof NotApplicable ||
    error instanceof UnsupportedProblem ||
    (error instanceof RequestError && !(error instanceof KernelAbsent));
  if (!isRefused) throw error;
  return { kind: 'declined', reason: error.message };
}

/** A dimension as it was tried. */
export interface TriedDimension extends SearchResult<Found> {
  /**
   * A side of the change that gave something else when it was run again, and what; null where both gave the same, or
   * nothing changed.
   */
  readonly unsteady: { readonly value: number; readonly found: Found } | null;
}

/** Tries the values of a dimension, and runs both sides of a change once more. */
export async function tryDimension(
  { values, make }: Surroundings,
  run: Run,
  every: boolean,
): Promise<TriedDimension> {
  let base: FormattedResults | null = null;
  const outcomeAt = async (
    value: number,
    expected: FormattedResults | null,
  ): Promise<Outcome<Found>> => {
    try {
      const made = make(value);
      const ran = await run(made);
      const results = { ...ran, ...arrangeResults(ran, made.rows) };
      base ??= results;
      const change = rowChange(expected ?? base, results);
      return change === null
        ? { kind: 'same' }
        : { kind: 'changed', found: { kind: 'bits', change, results } };
    } catch (error) {
      return withoutResult(error);
    }
  };
  const search = await findSmallestChange(values, every ? values : probesOf(values), (value) =>
    outcomeAt(value, base),
  );
  const { change } = search;
  if (change === null || change.from === null || change.found.kind === 'fault')
    return { ...search, unsteady: null };
  const { from, to, found } = change;
  for (const [value, before] of [
    [from, base],
    [to, found.results],
  ] as const) {
    const again = await outcomeAt(value, before);
    if (again.kind === 'changed') return { ...search, unsteady: { value, found: again.found } };
  }
  return { ...search, unsteady: null };
}
