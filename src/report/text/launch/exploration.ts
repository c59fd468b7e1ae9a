import type { ExploredLaunch } from '../../../jobs/index.js';
import { formatGrouped, formatGroupedCount, plainText } from '../../../words/index.js';
import { alignTextColumns } from '../../layout/index.js';

/** Number of results and findings that are shown; the others are counted. */
const mostShown = 20;

/** The schedules that the runs stand for. */
function scopeLine({ runs, isExhausted, left, mostRuns, mostPairs }: ExploredLaunch): string {
  if (isExhausted && runs === 1)
    return 'No schedule that the memory model allows has another order.';
  if (isExhausted)
    return 'They stand for all schedules that the memory model allows, but for how often warps poll: no order of what the schedule decides is left.';
  const what =
    left.length === 0
      ? `orders are left: up to ${formatGroupedCount(mostPairs, 'pair')} of steps in a run may come either way`
      : `not explored is ${left.join(', and ')}`;
  return runs >= mostRuns
    ? `They do not stand for all schedules: ${what}.`
    : `They do not stand for all schedules; ${what}.`;
}

function shown<One>(all: readonly One[], lineOf: (one: One) => readonly string[]): string[] {
  const rows = all.slice(0, mostShown).map((one) => [...lineOf(one)]);
  const rest = all.length - rows.length;
  return [
    ...alignTextColumns(rows).map((line) => `  ${line}`),
    ...(rest > 0 ? [`  and ${formatGrouped(rest)} more`] : []),
  ];
}

/** The outcome of the schedules of a kernel, for a terminal. */
export function renderExploration(explored: ExploredLaunch): string {
  const { runs, results, findings, incomplete, seconds } = explored;
  const lines = [
    `Schedules: ${formatGroupedCount(runs, 'run')} in ${seconds.toFixed(1)} s`,
    `  ${scopeLine(explored)}`,
    results.length === 1
      ? '1 result: the outputs have the same bits in all of them'
      : `${formatGrouped(results.length)} results: the outputs depend on the schedule`,
    ...(results.length === 1
      ? []
      : shown(results, ({ runs: had, schedule, value }) => [
          formatGroupedCount(had, 'run'),
          schedule,
          value.length === 0
            ? 'the usual one'
            : value
                .map(
                  ({ tensor, bytes }) =>
                    `${plainText(tensor)}: ${formatGroupedCount(bytes, 'byte')} differ`,
                )
                .join(', '),
        ])),
    ...(incomplete === null
      ? []
      : [
          `${formatGroupedCount(incomplete.runs, 'run')} did not come to ${incomplete.runs === 1 ? 'its' : 'their'} end, first ${incomplete.schedule}`,
        ]),
    findings.length === 0
      ? '0 findings in any of them'
      : `${formatGroupedCount(findings.length, 'finding')} in ${findings.length === 1 ? 'its' : 'their'} first schedules`,
    ...shown(findings, ({ runs: had, schedule, value: { kind, message } }) => [
      formatGroupedCount(had, 'run'),
      schedule,
      `${kind}: ${plainText(message)}`,
    ]),
  ];
  return `${lines.join('\n')}\n`;
}
