import { findingKinds, type FindingWeight, findingWeight } from '../../machine/index.js';
import { formatGrouped, formatGroupedCount } from '../../words/index.js';
import type { ExploredLaunch } from './explore-launch-file.js';
import {
  dependenceClause,
  type FindingGroup,
  type ProgramLine,
  sourceText,
} from './launch-findings.js';
import type { RunOutput, RunResult } from './run-launch-file.js';

/** The verdict on a run of a compiled kernel. */
export interface RunVerdict {
  /** Whether nothing is wrong: no finding except hints, an end, the recorded results, the same in every schedule that was run. */
  readonly pass: boolean;
  /** One sentence that begins with PASS or FAIL and the memory model: the findings, and the schedules for which it speaks. */
  readonly sentence: string;
}

/** "lines 16 and 17 (kernel.py:42, kernel.py:45)", with the source where it is known; '' for none. */
function linesText(lines: readonly ProgramLine[]): string {
  if (lines.length === 0) return '';
  const numbers = lines.map(({ line }) => String(line));
  const listed =
    numbers.length === 1
      ? `line ${numbers[0]}`
      : `lines ${numbers.slice(0, -1).join(', ')} and ${numbers.at(-1)}`;
  const known = lines.flatMap(({ source }) => (source === null ? [] : [sourceText(source)]));
  return known.length === 0 ? listed : `${listed} (${[...new Set(known)].join(', ')})`;
}

/** "race at lines 16 and 17, 512 times". */
export function groupTitle({ kind, lines, count }: FindingGroup): string {
  const where = linesText(lines);
  const times = count === 1 ? '' : `, ${formatGrouped(count)} times`;
  return `${kind}${where === '' ? '' : ` at ${where}`}${times}`;
}

function weighing(groups: readonly FindingGroup[], weight: FindingWeight): readonly FindingGroup[] {
  return groups.filter(({ kind }) => findingWeight(kind) === weight);
}

/** The first of some findings, with the meaning of its kind, and the number of others. */
function findingClauses(groups: readonly FindingGroup[]): readonly string[] {
  const [first, ...others] = groups;
  if (first === undefined) return [];
  const more =
    others.length === 0 ? '' : `; and ${formatGroupedCount(others.length, 'other finding')}`;
  return [`${groupTitle(first)} (${findingKinds[first.kind]})${more}`];
}

function differenceClause({ name, recorded }: RunOutput): readonly string[] {
  if (recorded === null || recorded.differing === 0) return [];
  const { differing, elements } = recorded;
  return [
    `${name} differs from ${recorded.name} in ${formatGrouped(differing)} of ${formatGroupedCount(elements, 'element')}`,
  ];
}

/** Faults that only later schedules showed. */
function explorationClauses({ results, findings, incomplete }: ExploredLaunch): readonly string[] {
  return [
    ...(results.length === 1
      ? []
      : [`the outputs depend on the schedule, with ${formatGrouped(results.length)} results`]),
    ...(findings.length === 0
      ? []
      : [`${formatGroupedCount(findings.length, 'finding')} in the schedules that were run`]),
    ...(incomplete === null
      ? []
      : [`${formatGroupedCount(incomplete.runs, 'run')} without an end among them`]),
  ];
}

/** All faults, a clause each. */
function faultClauses(
  { run, groups, outputs }: RunResult,
  explored: ExploredLaunch | null,
): readonly string[] {
  const illegal = weighing(groups, 'illegal');
  const isTold = illegal.length > 0;
  // Where all schedules have been run, it is no matter that this one speaks for itself alone.
  const ofOneSchedule = explored?.isExhausted === true ? [] : weighing(groups, 'one-schedule');
  return [
    ...findingClauses(illegal),
    ...(run.isComplete || isTold ? [] : ['the kernel does not come to its end']),
    ...outputs.flatMap(differenceClause),
    ...findingClauses(ofOneSchedule),
    ...(explored === null || isTold ? [] : explorationClauses(explored)),
  ];
}

/** The reasons that a run without faults speaks for its own schedule alone, a clause each. */
function limits({ run }: RunResult): readonly string[] {
  return [
    ...(run.dependences.length === 0 ? [] : [dependenceClause(run.dependences)]),
    ...(run.areCtasCompared
      ? []
      : ['the grid is too large for the order between its clusters to be looked at']),
    ...(run.cancelsLaunches ? ['it cancels launches that have not started'] : []),
  ];
}

/** The schedules for which a run without faults speaks. */
function scopeClause(result: RunResult, explored: ExploredLaunch | null): string {
  const { run, schedule, request } = result;
  if (!request.races) return `this says nothing of other schedules than ${schedule}`;
  if (explored !== null && !run.speaksForAllSchedules)
    return explored.isExhausted
      ? `${formatGroupedCount(explored.runs, 'run')} stand for all schedules, but for how often warps poll`
      : `${formatGroupedCount(explored.runs, 'run')} do not stand for all schedules`;
  if (run.speaksForAllSchedules) return 'every schedule has the same order, values and end';
  return `this speaks for the schedule ${schedule} alone: ${limits(result).join('; ')}`;
}

/**
 * Whether all schedules have the same outputs and end, though not all have the same order: where nothing but races that change no
 * output keeps a run from speaking for them.
 */
export function areOutputsOfAllSchedules(result: RunResult, harmless: number): boolean {
  const { run, findings } = result;
  if (run.speaksForAllSchedules) return true;
  const isLegal = findings.every(({ kind }) => findingWeight(kind) === 'hint');
  return harmless > 0 && isLegal && run.isComplete && limits(result).length === 0;
}

function harmlessClause(harmless: number): string {
  if (harmless === 0) return '';
  return harmless === 1
    ? ' but one that changes no output'
    : ` but ${formatGrouped(harmless)} that change no output`;
}

/**
 * Judges a run of a compiled kernel.
 *
 * @param explored the results of its schedules; null if they were not run
 * @param harmless the number of races that are no finding any more, since they change no output
 */
export function judgeRun(
  result: RunResult,
  explored: ExploredLaunch | null,
  harmless = 0,
): RunVerdict {
  const { request, model } = result;
  const under = `under model ${model.name}`;
  const faults = faultClauses(result, explored);
  if (faults.length > 0) return { pass: false, sentence: `FAIL ${under}: ${faults.join('; ')}.` };
  const found = request.races
    ? `no race${harmlessClause(harmless)}, deadlock or illegal access`
    : 'nothing illegal, races not looked for';
  const isAsRecorded = result.outputs.some(({ recorded }) => recorded !== null);
  const recorded = isAsRecorded ? '; the outputs equal those recorded' : '';
  const scope =
    harmless > 0 && areOutputsOfAllSchedules(result, harmless)
      ? 'every schedule has the same outputs and end'
      : scopeClause(result, explored);
  const stricter =
    !request.races || model.stricter === null ? '' : `; --model ${model.stricter} is stricter`;
  return {
    pass: true,
    sentence: `PASS ${under}: ${found}${recorded}; ${scope}${stricter}.`,
  };
}
