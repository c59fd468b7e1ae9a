import {
  groupTitle,
  sourceText,
  type FindingGroup,
  type LaunchAccess,
  type RunOutput,
  type RunResult,
  type RunVerdict,
} from '../../../jobs/index.js';
import { findingWeight, messageAlone } from '../../../machine/index.js';
import { formatGrouped, formatGroupedCount, formatShare, plainText } from '../../../words/index.js';
import { alignColumns, alignTextColumns } from '../../layout/index.js';
import { breakLines } from './breaks.js';

/** Number of places of waits that are shown. */
const mostWaits = 6;

const sum = (amounts: Readonly<Record<string, number>>) =>
  Object.values(amounts).reduce((all, one) => all + one, 0);

/** Amounts by name, the largest first. */
const rowsOf = (amounts: Readonly<Record<string, number>>, most = Infinity) =>
  Object.entries(amounts)
    .sort(([, a], [, b]) => b - a)
    .slice(0, most)
    .map(([name, amount]) => [name, formatGrouped(amount)]);

function table(title: string, rows: readonly (readonly string[])[]): readonly string[] {
  return rows.length === 0 ? [] : [title, ...alignColumns(rows), ''];
}

/** The work of the units of an SM, and the time that it takes them at full rate. */
function rooflineLines({ run }: RunResult): readonly string[] {
  const { lines, unratedFlops } = run.work;
  const most = lines.reduce((clocks, one) => Math.max(clocks, one.clocks), 0);
  const rows = lines.map(({ unit, amount, measure, clocks }) => [
    unit,
    `${formatGrouped(amount)} ${measure}`,
    `${formatGrouped(Math.ceil(clocks))} clocks`,
    formatShare(clocks / most),
  ]);
  const rest =
    unratedFlops === 0 ? [] : [['MMAs without a rate', `${formatGrouped(unratedFlops)} FLOP`]];
  return table(`Roofline, ${run.architecture}: clocks of one SM, in % of the busiest unit's`, [
    ...rows,
    ...rest,
  ]);
}

/** A run's counts of units, memories and waits. */
function workLines(result: RunResult): readonly string[] {
  const { counters } = result.run;
  const { waits, blockedWaits, instructions } = counters;
  const parted = instructions.diverge ?? 0;
  return [
    ...rooflineLines(result),
    ...table('Bytes of global memory', rowsOf(counters.globalBytes)),
    ...table('Bytes of shared memory', rowsOf(counters.sharedBytes)),
    ...table('Bytes of tensor memory', rowsOf(counters.tensorBytes)),
    ...(sum(waits) === 0
      ? []
      : table(
          `Waits of warps: ${formatGrouped(sum(waits))}, of which ${formatGrouped(sum(blockedWaits))} had to wait; most often at`,
          rowsOf(blockedWaits, mostWaits),
        )),
    ...(parted === 0 ? [] : [`Lanes of a warp parted ${formatGrouped(parted)} times`, '']),
  ];
}

/** Number of groups of findings, of accesses of one, and of instructions that are shown; the others are counted. */
const mostGroups = 20;
const mostAccesses = 8;
const mostInstructions = 12;

const extents = (values: readonly number[]) => values.join(' × ');
const volume = (values: readonly number[]) => values.reduce((all, one) => all * one, 1);

/** Describes the launch that ran. */
function headLines({ opened, run, seconds, request, schedule }: RunResult): readonly string[] {
  const { entry, grid, block, cluster } = opened.launch;
  const clusters = volume(cluster) === 1 ? '' : ` in clusters of ${extents(cluster)}`;
  const contracted = request.contract ? ', contracted' : '';
  return [
    `${plainText(entry)}: ${formatGroupedCount(volume(grid), 'CTA')} (${extents(grid)})${clusters} of ${formatGroupedCount(volume(block), 'thread')} (${extents(block)}) in ${seconds.toFixed(2)} s, arithmetic of ${run.architecture}${contracted}, schedule ${schedule}`,
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

function accessLine({ step, who, site, source }: LaunchAccess): readonly string[] {
  const cells = [`    step ${formatGrouped(step)}`, who, plainText(site)];
  return source === null ? cells : [...cells, plainText(sourceText(source))];
}

/** Findings of a kind at the same lines: the message of the first, and its accesses. */
function groupLines(group: FindingGroup): readonly string[] {
  const { first, findings, clusters } = group;
  const where =
    clusters === 1
      ? `cluster ${first.cluster}`
      : `${formatGrouped(clusters)} clusters, first ${first.cluster}`;
  const which = findings === 1 ? '' : `the first of ${formatGrouped(findings)}: `;
  const { accesses } = first;
  const shown = accesses.slice(0, mostAccesses).map(accessLine);
  const more = accesses.length - shown.length;
  return [
    `${plainText(groupTitle(group))} (${where})`,
    `  ${which}${plainText(messageAlone(first))}`,
    ...(shown.length === 0 ? [] : alignTextColumns(shown)),
    ...(more > 0 ? [`    and ${formatGroupedCount(more, 'other')}`] : []),
  ];
}

function groupsLines(groups: readonly FindingGroup[]): readonly string[] {
  const more = groups.length - mostGroups;
  return [
    ...groups
      .slice(0, mostGroups)
      .flatMap((group, at) => [...(at === 0 ? [] : ['']), ...groupLines(group)]),
    ...(more > 0 ? [`and ${formatGrouped(more)} more; --json has all`] : []),
  ];
}

/**
 * Number of findings, and the findings by kinds and lines of the PTX; hints where they are requested, else their
 * number.
 */
function findingLines({ groups, run }: RunResult, withHints: boolean): readonly string[] {
  const isHint = ({ kind }: FindingGroup) => findingWeight(kind) === 'hint';
  const hints = groups.filter(isHint);
  const findings = groups.filter((group) => !isHint(group));
  const unlisted =
    run.unlisted === 0
      ? []
      : [`${formatGrouped(run.unlisted)} more findings and hints at the same lines are not kept`];
  const count = formatGroupedCount(hints.length, 'hint');
  const hintLines =
    hints.length === 0
      ? []
      : withHints
        ? [`${count}, of what is worth a look and illegal in no schedule:`, ...groupsLines(hints)]
        : [`${count}; --hints prints ${hints.length === 1 ? 'it' : 'them'}`];
  const found = findings.reduce((sum, group) => sum + group.findings, 0);
  const places =
    findings.length < found ? ` at ${formatGroupedCount(findings.length, 'place')}` : '';
  const counted = `${formatGroupedCount(found, 'finding')}${places}`;
  return [counted, ...groupsLines(findings), ...hintLines, ...unlisted, ''];
}

/** The executed instructions, the most frequent first. */
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

/** The contractions that an assembler may make. */
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

/** The part of the launch file that was not run. */
function nextLines({ opened }: RunResult): readonly string[] {
  const { next } = opened.file;
  return next === null
    ? []
    : [
        `Next: ${plainText(next)} follows and is not run here; audit --launch and check --launch run it`,
      ];
}

/**
 * The results of a run of a compiled kernel, as text: the verdict, the launch, the outputs, the findings, then
 * counts.
 *
 * @param verdict `judgeRun`'s, of the run with the schedules that were explored
 * @param withHints whether hints are printed, and not only counted
 */
export function renderRun(result: RunResult, { sentence }: RunVerdict, withHints: boolean): string {
  return [
    plainText(sentence),
    '',
    ...headLines(result),
    ...alignTextColumns(result.outputs.map(outputLine)),
    '',
    ...findingLines(result, withHints),
    ...breakLines(result),
    ...countLines(result),
    '',
    ...workLines(result),
    ...contractionLines(result),
    `Evidence for ${result.run.architecture}: ${result.evidence}`,
    ...nextLines(result),
    '',
  ].join('\n');
}

/** The number of threads that ran the clusters, and the reason for it. */
export function renderThreads({ threads, why }: Pick<RunResult, 'threads' | 'why'>): string {
  return `Threads: ${threads}, since ${why}\n`;
}

/** The PTX, line by line, with the number of executions of each line and the mean number of lanes. */
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
