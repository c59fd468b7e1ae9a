import {
  recurrentLaws,
  type FoundRecurrentFailure,
  type RecurrentCheckResult,
  type RecurrentLawId,
  type RecurrentLawResult,
  type ResolvedRecurrentPromises,
} from '../../../../properties/index.js';
import { recurrentShape } from '../../../problem/index.js';
import { reportedRecurrence } from '../index.js';
import type {
  CheckReport,
  ReportedRecurrentPromises,
  ReportedViolation,
} from './check-document.js';
import {
  assembleCheckReport,
  notSaved,
  type CheckedLaw,
  type CheckProvenance,
  type SavedViolation,
} from './check-report.js';

/** The promises that are reported: plain data. */
export function reportedRecurrentPromises(
  promises: ResolvedRecurrentPromises,
): ReportedRecurrentPromises {
  const { families, formats, dims, groupSizes, packed, initialState, normalisation } = promises;
  const { infiniteGates, gradients, deterministic, chunk, declared } = promises;
  return {
    families,
    formats,
    dims,
    groupSizes,
    packed,
    initialState,
    normalisation,
    infiniteGates,
    gradients,
    deterministic,
    chunk,
    declared,
  };
}

/**
 * A violation in its reported form, which shares no data with the failure.
 * @throws RequestError when the problem's shapes do not fit together
 */
export function reportedRecurrentViolation(
  failure: FoundRecurrentFailure,
  saved: SavedViolation = notSaved,
): ReportedViolation {
  const { statement, kind, lawCase, regime, round, runsUntil, secondsUntil, shrinks } = failure;
  const { problem } = lawCase.posed;
  return {
    statement,
    cause: null,
    hint: null,
    kind: { ...kind, equivalents: [...kind.equivalents] },
    choice: lawCase.choice,
    regime,
    round,
    run: runsUntil,
    seconds: secondsUntil,
    simplifications: shrinks,
    problem: reportedRecurrence(problem, { shape: recurrentShape(problem) }),
    ...saved,
  };
}

function checkedLaw(
  { failure, ...law }: RecurrentLawResult,
  saved: ReadonlyMap<RecurrentLawId, SavedViolation>,
): CheckedLaw {
  return {
    ...law,
    violation: failure === null ? null : reportedRecurrentViolation(failure, saved.get(law.id)),
  };
}

/** As of a check of attention, without its laws. */
export interface RecurrentProvenance extends Omit<CheckProvenance, 'promises' | 'laws' | 'saved'> {
  readonly promises: ResolvedRecurrentPromises;
  readonly saved: ReadonlyMap<RecurrentLawId, SavedViolation>;
}

/**
 * The report of a check of linear attention, which shares no data with it.
 * @throws RequestError when a problem's shapes do not fit together
 */
export function createRecurrentCheckReport(
  { laws, ...result }: Omit<RecurrentCheckResult, 'pass'>,
  { promises, saved, ...provenance }: RecurrentProvenance,
): CheckReport {
  const checked = laws.map((law) => checkedLaw(law, saved));
  return assembleCheckReport(
    { ...result, laws: checked, notes: [] },
    {
      ...provenance,
      contract: 'recurrent',
      promises: reportedRecurrentPromises(promises),
      laws: recurrentLaws,
    },
  );
}
