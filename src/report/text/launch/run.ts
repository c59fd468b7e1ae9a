import { findingWeight } from '../../../machine/index.js';
import {
  dependenceClause,
  type LaunchFinding,
  type RunOutput,
  type RunResult,
} from '../../../jobs/index.js';
import { formatGrouped, formatGroupedCount, plainText } from '../../../words/index.js';
import { alignColumns, alignTextColumns } from '../../layout/index.js';
import { breakLines } from './breaks.js';
import { workLines } from './work.js';

/** Findings, and instructions, that are shown; the others are counted. */
const mostFindings = 20;
const mostInstructions = 12;

const extents = (values: readonly number[]) => values.join(' × ');
const volume = (values: readonly number[]) => values.reduce((all, one) => all * one, 1);

/** What ran. */
function headLines({ opened, run, seconds, request }: RunResult): readonly string[] {
  const { entry, grid, block, cluster } = opened.launch;
  const clusters = volume(cluster) === 1 ? '' : ` in clusters of ${extents(cluster)}`;
  const contracted = request.contract ? ', contracted' : '';
  return [
    `${plainText(entry)}: ${formatGroupedCount(volume(grid), 'CTA')} (${extents(grid)})${clusters} of ${formatGroupedCount(volume(block), 'thread')} (${extents(block)}) in ${seconds.toFixed(2)} s, arithmetic of ${run.architecture}${contracted}`,
  ];
}

function outputLine({ name, dtype, shape, recorded }: RunOutput): readonly string[] {
  const tensor = [plainText(name), `${dtype} [${shape.join(', ')}]`];
  if (recorded === null) return tensor;
  const { elements, differing, first } = recorded;
  const as = plainText(recorded.name);
  if (first === null) return [...tensor, `equals ${as} in all ${formatGrouped(elements)} elements`];
  return [
    ...tensor,
    `differs from ${as} in ${formatGrouped(differing)} of ${formatGrouped(elements)} elements, first at [${first.join(', ')}]`,
  ];
}

function findingLines(finding: LaunchFinding): readonly string[] {
  const { kind, message, accesses, count, cluster, clusters } = finding;
  const times = count === 1 ? '' : `, ${formatGrouped(count)} times`;
  const where =
    clusters === 1 ? `cluster ${cluster}` : `${formatGrouped(clusters)} clusters, first ${cluster}`;
  const steps = accesses.map(({ who, site, step }) => [
    `    step ${formatGrouped(step)}`,
    who,
    plainText(site),
  ]);
  return [
    `  ${kind} (${where}${times}): ${plainText(message)}`,
    ...(steps.length === 0 ? [] : alignTextColumns(steps)),
  ];
}

/** For which schedules a run without findings speaks, and what makes it speak for its own alone. */
function scheduleLines(run: RunResult['run']): readonly string[] {
  const { speaksForAllSchedules, dependences, cancelsLaunches } = run;
  if (speaksForAllSchedules) return ['  Every schedule has the same order, values and end.'];
  return [
    ...(dependences.length === 0
      ? []
      : [`  Speaks for this schedule alone: ${dependenceClause(dependences)}.`]),
    ...(cancelsLaunches
      ? ['  Speaks for this schedule alone: it cancels launches that have not started.']
      : []),
  ];
}

/** What was found, or what it means that nothing was. */
function verdictLines({ findings, run, request, schedule }: RunResult): readonly string[] {
  const illegal = findings.filter(({ kind }) => findingWeight(kind) !== 'hint');
  const hints = findings.filter(({ kind }) => findingWeight(kind) === 'hint');
  const list = (some: readonly LaunchFinding[]) => [
    ...some.slice(0, mostFindings).flatMap(findingLines),
    ...(some.length > mostFindings ? [`  and ${some.length - mostFindings} more`] : []),
  ];
  const unlisted =
    run.unlisted === 0
      ? []
      : [`${formatGrouped(run.unlisted)} more findings and hints of the same kinds`];
  const hintLines = [
    ...(hints.length === 0 ? [] : [formatGroupedCount(hints.length, 'hint'), ...list(hints)]),
    ...unlisted,
  ];
  if (illegal.length > 0)
    return [
      `${formatGroupedCount(illegal.length, 'finding')} (schedule ${schedule})`,
      ...list(illegal),
      ...hintLines,
    ];
  if (!run.isComplete)
    return [
      `0 findings, but the kernel did not come to its end (schedule ${schedule})`,
      ...hintLines,
    ];
  if (!request.races)
    return [
      `0 findings: nothing illegal in the schedule ${schedule}; races were not looked for`,
      ...hintLines,
    ];
  const scope = run.areCtasCompared ? '' : ' within a cluster';
  const between = run.areCtasCompared
    ? []
    : ['  The grid is too large for the order between its clusters to be looked at.'];
  return [
    `0 findings: no race, deadlock or illegal access${scope} (schedule ${schedule})`,
    ...between,
    ...scheduleLines(run),
    ...hintLines,
  ];
}

/** What was executed, the most frequent first. */
function countLines({ run }: RunResult): readonly string[] {
  const rows = [...run.counts.byMnemonic].sort(([, a], [, b]) => b.executions - a.executions);
  const sum = rows.reduce((all, [, { executions }]) => all + executions, 0);
  const lanes = rows.reduce((all, [, count]) => all + count.lanes, 0);
  const share = sum === 0 ? '' : `, ${(lanes / sum).toFixed(1)} lanes each`;
  return [
    `Executed: ${formatGroupedCount(sum, 'warp instruction')}${share}, ${formatGroupedCount(run.steps, 'step')} of the machine`,
    ...alignColumns(
      rows
        .slice(0, mostInstructions)
        .map(([mnemonic, count]) => [mnemonic, formatGrouped(count.executions)]),
    ),
    ...(rows.length > mostInstructions ? [`  and ${rows.length - mostInstructions} others`] : []),
  ];
}

/** What an assembler may do otherwise. */
function contractionLines({ run, request }: RunResult): readonly string[] {
  const { contractions } = run;
  if (contractions.length === 0) return ['Contraction: the PTX leaves nothing open to it'];
  const pairs = formatGroupedCount(contractions.length, 'pair');
  return [
    request.contract
      ? `Contraction: ${pairs} of mul and add executed as one fma`
      : `Contraction: ${pairs} of mul and add that an assembler may contract, executed as written; --contract executes them as one`,
  ];
}

/** What was not run. */
function nextLines({ opened }: RunResult): readonly string[] {
  const { next } = opened.file;
  return next === null
    ? []
    : [
        `Next: ${plainText(next)} follows and is not run here; audit --launch and check --launch run it`,
      ];
}

/** What a run of a compiled kernel has shown, as text. */
export function renderRun(result: RunResult): string {
  return [
    ...headLines(result),
    ...alignTextColumns(result.outputs.map(outputLine)),
    '',
    ...verdictLines(result),
    '',
    ...breakLines(result),
    ...countLines(result),
    '',
    ...workLines(result),
    ...contractionLines(result),
    ...nextLines(result),
    '',
  ].join('\n');
}

/** The PTX, line by line, with how often each line was executed and by how many lanes at a time. */
export function renderLines({ opened, run }: RunResult): string {
  const { byLine } = run.counts;
  const lines = opened.ptx.split(/\r?\n/);
  const rows = lines.map((text, i) => {
    const count = byLine.get(i + 1);
    const executions = count === undefined ? '' : formatGrouped(count.executions);
    const lanes = count === undefined ? '' : (count.lanes / count.executions).toFixed(1);
    return {
      number: String(i + 1),
      executions,
      lanes,
      text: plainText(text.replaceAll('\t', '  ')),
    };
  });
  const width = (key: 'number' | 'executions' | 'lanes') =>
    rows.reduce((most, row) => Math.max(most, row[key].length), 0);
  const [numbers, executions, lanes] = [width('number'), width('executions'), width('lanes')];
  return rows
    .map((row) =>
      `${row.number.padStart(numbers)}  ${row.executions.padStart(executions)}  ${row.lanes.padStart(lanes)}  ${row.text}`.trimEnd(),
    )
    .concat('')
    .join('\n');
}
