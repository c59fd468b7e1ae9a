import {
  faultKind,
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
function reportedRecurrentPromises(promises: ResolvedRecurrentPromises): ReportedRecurrentPromises {
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

/** Violations in the same words, but for numbers, have one cause. */
function reportedRecurrentViolation(
  failure: FoundRecurrentFailure,
  saved: SavedViolation,
): ReportedViolation {
  const { statement, lawCase, regime, round, runsUntil, secondsUntil, shrinks } = failure;
  const { problem } = lawCase.posed;
  return {
    statement,
    cause: null,
    hint: null,
    kind: faultKind(statement),
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
    unsupported: law.runs - law.tried,
    sizes: null,
    widened: [],
    violation:
      failure === null ? null : reportedRecurrentViolation(failure, saved.get(law.id) ?? notSaved),
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
  const runs = laws.reduce((sum, law) => sum + law.runs, 0);
  const checked = laws.map((law) => checkedLaw(law, saved));
  return assembleCheckReport(
    { ...result, laws: checked, runs, notes: [] },
    {
      ...provenance,
      contract: 'recurrent',
      promises: reportedRecurrentPromises(promises),
      laws: recurrentLaws,
    },
  );
}
