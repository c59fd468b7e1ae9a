import { createCandidates } from '../candidates.js';
import type { InputRange } from '../cells.js';
import { reportCorners } from '../corners.js';
import { reportDomains } from '../error-report.js';
import { sweepErrors } from '../error-sweep.js';
import { evidenceOf, referenceReport } from './evidence.js';
import { linearPanel, logarithmicPanel, type Panel } from './panels.js';
import { plotsOf } from './plots.js';
import type { ErrorProfile, ProfileOptions } from './profile.js';
import { unitProfiles, type UnitProfile, type UnitTechnique } from './special-functions.js';

/** The profile of one instruction of the special function unit. */
export interface UnitErrorProfile extends ErrorProfile {
  readonly technique: UnitTechnique;
}

function unitPanels({ plotted }: UnitProfile, { from, to }: InputRange): Panel[] {
  const [low, high] = plotted.all;
  if (from !== undefined || to !== undefined)
    return [linearPanel('x', from ?? low, to ?? plotted.period)];
  return [
    logarithmicPanel('x', low, high),
    linearPanel(`x from 1 to ${plotted.period}`, 1, plotted.period),
  ];
}

/**
 * Profiles an instruction of the special function unit against the exact function at every fp32 input
 * of the range.
 * @throws RequestError for a range without an input that has an error
 */
export async function profileUnit(
  technique: UnitTechnique,
  options: ProfileOptions = {},
): Promise<UnitErrorProfile> {
  const unit = unitProfiles[technique];
  const { range = {}, architecture } = options;
  const { measures, reference, increasing, cells, domains } = unit;
  const panels = unitPanels(unit, range);
  const draft = {
    candidates: [unit.instruction],
    reference,
    measures,
    increasing,
    panels: panels.map(({ boundaries }) => boundaries),
  };
  const sweep = await sweepErrors(draft, cells, range, options);
  return {
    technique,
    title: unit.title,
    range,
    functions: [evidenceOf(unit.instruction, architecture)],
    reference: referenceReport(reference, unit.largestExact),
    domains: reportDomains(sweep, domains, createCandidates()),
    corners: reportCorners(sweep),
    plots: plotsOf(sweep, panels, `${measures[0].error} error in fp32`),
    notes: unit.notes,
  };
}
