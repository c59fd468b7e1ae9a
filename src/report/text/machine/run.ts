import { alignColumns, alignTextColumns } from '../../layout/index.js';
import {
  findingWeight,
  messageAlone,
  sharedMemoryLimits,
  tensorMemoryColumns,
  type Amounts,
} from '../../../machine/index.js';
import {
  type MachineRequest,
  type ClusterFinding,
  type MachineResults,
} from '../../../jobs/index.js';

/** Number of findings that are shown; the others are counted. */
const mostFindings = 20;
/** Number of places of waits that are shown. */
const mostWaits = 8;

function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

/** Amounts by name, the largest first. */
function amountRows(amounts: Amounts, most = Infinity): string[][] {
  return Object.entries(amounts)
    .sort(([, a], [, b]) => b - a)
    .slice(0, most)
    .map(([name, amount]) => [name, whole(amount)]);
}

function table(title: string, rows: readonly (readonly string[])[]): string[] {
  return rows.length === 0 ? [] : [title, ...alignColumns(rows), ''];
}

function findingLines(finding: ClusterFinding): string[] {
  const { kind, accesses, count, cluster, clusters } = finding;
  const times = count === 1 ? '' : `, ${whole(count)} times`;
  const where = clusters === 1 ? `cluster ${cluster}` : `${clusters} clusters, first ${cluster}`;
  const steps = accesses.map(({ who, site, step }) => [`  step ${whole(step)}`, who, site]);
  return [
    `  ${kind} (${where}${times}): ${messageAlone(finding)}`,
    ...(steps.length === 0 ? [] : alignTextColumns(steps)),
  ];
}

/** The findings that count, and the hints beside them. */
function weighed({ findings }: MachineResults) {
  const isHint = ({ kind }: ClusterFinding) => findingWeight(kind) === 'hint';
  return { hints: findings.filter(isHint), findings: findings.filter((one) => !isHint(one)) };
}

/** What a run says of the execution, in a sentence. */
function sentenceOf(request: MachineRequest, results: MachineResults): string {
  const { races, schedule, program } = request;
  const about = `memory model ${program.model.name}`;
  const { findings } = weighed(results);
  if (findings.length > 0) {
    const isIllegal = findings.some(({ kind }) => findingWeight(kind) === 'illegal');
    return `${findings.length} finding${findings.length === 1 ? '' : 's'} (${about}, schedule ${schedule.name}); ${isIllegal ? 'what is computed may depend on the schedule' : 'nothing illegal, but the run speaks for this schedule alone'}`;
  }
  return races
    ? `0 findings: no race, deadlock or misuse; holds for every schedule (${about})`
    : `0 findings: no deadlock or misuse in the schedule ${schedule.name} (${about}); races were not looked for, so nothing follows for other schedules`;
}

/** That a mutant changed nothing; null where it did, or where there is none. */
function unchangedClause({ mutant, program }: MachineRequest): string | null {
  return mutant !== null && !program.hasMutated()
    ? `"${mutant.site}" is nowhere in this program: the mutant changed nothing`
    : null;
}

/** The verdict of a run in a line, newline at its end. */
export function renderMachineVerdict(request: MachineRequest, results: MachineResults): string {
  const unchanged = unchangedClause(request);
  return `${sentenceOf(request, results)}${unchanged === null ? '' : `; ${unchanged}`}\n`;
}

/** The verdict of the run on the execution, in a sentence or a list. */
function verdict(request: MachineRequest, results: MachineResults): string[] {
  const { races, program } = request;
  const { hints, findings } = weighed(results);
  const hintLines =
    hints.length === 0
      ? []
      : [
          `${hints.length} hint${hints.length === 1 ? '' : 's'}, which take${hints.length === 1 ? 's' : ''} nothing from that:`,
          ...hints.slice(0, mostFindings).flatMap(findingLines),
          '',
        ];
  const clause = unchangedClause(request);
  const unchanged = clause === null ? [] : [clause, ''];
  const sentence = sentenceOf(request, results);
  if (findings.length > 0)
    return [
      sentence,
      ...findings.slice(0, mostFindings).flatMap(findingLines),
      ...(findings.length > mostFindings ? [`  and ${findings.length - mostFindings} more`] : []),
      '',
      ...hintLines,
      ...unchanged,
    ];
  if (!races) return [sentence, '', ...hintLines, ...unchanged];
  const all = program.clusters === 1 ? 'the cluster' : `all ${whole(program.clusters)} clusters`;
  return [
    sentence,
    `  Proved, not sampled: the order of events of ${all} is complete, free of races and unambiguous in every barrier's phase, so every schedule has the same events, order and bits.`,
    '',
    ...hintLines,
    ...unchanged,
  ];
}

function rooflineLines({ roofline }: MachineResults): string[] {
  const { lines, bound, rates } = roofline;
  const rows = lines
    .filter(({ clocks }) => clocks > 0)
    .map(({ unit, amount, measure, clocks, ofTensorCore, evidence }) => [
      unit,
      `${whole(amount)} ${measure}`,
      `${whole(clocks)} clocks`,
      ...(ofTensorCore === null ? [] : [percent(ofTensorCore)]),
      ...(evidence === 'assumed' ? ['assumed rate'] : unit === bound ? ['bound'] : []),
    ]);
  return table(`Roofline, ${rates}: clocks of one SM, and in % of the tensor core's`, rows);
}

function exponentialRows({ exponentials, rescales }: MachineResults): string[][] {
  const { hardware, polynomial, factors, polynomialShare } = exponentials;
  const { bytesToRegisters, bytesToTensorMemory, finalBytes } = rescales;
  return [
    ['exp2 of scores by MUFU', whole(hardware)],
    ['exp2 of scores by polynomial on FMA', whole(polynomial), percent(polynomialShare)],
    ['exp2 for rescaling factors by MUFU', whole(factors)],
    ['votes on rescaling, warps', whole(rescales.votes)],
    ['rescales, warps', whole(rescales.rescales)],
    ['bytes of O rescaled, TMEM → registers', whole(bytesToRegisters)],
    ['bytes of O rescaled, registers → TMEM', whole(bytesToTensorMemory)],
    ['bytes of O read to be stored', whole(finalBytes)],
  ];
}

function sum(amounts: Amounts): number {
  return Object.values(amounts).reduce((total, amount) => total + amount, 0);
}

function waitLines({ counters, clocks }: MachineResults): string[] {
  const { waits, blockedWaits, waitClocks } = counters;
  const title = `Waits of warps: ${whole(sum(waits))}, of which ${whole(sum(blockedWaits))} had to wait`;
  return clocks === null
    ? table(`${title}; most often at`, amountRows(blockedWaits, mostWaits))
    : table(`${title}; clocks of all warps, most at`, amountRows(waitClocks, mostWaits));
}

/** The results of a run of the program on the machine, as text. */
export function renderMachine(request: MachineRequest, results: MachineResults): string {
  const { program, schedule } = request;
  const { ctas, clusters } = program;
  const { counters, clocks, steps } = results;
  const { mostTensorColumns, mostSharedBytes } = counters;
  const all = ctas * clusters === 1 ? 'the CTA' : `${whole(ctas * clusters)} CTAs together`;
  const time = clocks === null ? '' : `, ${whole(clocks)} clocks of the longest cluster`;
  return [
    ...verdict(request, results),
    `Counted, ${all}: ${whole(steps)} steps${time}, schedule ${schedule.name}`,
    ...alignColumns(exponentialRows(results)),
    '',
    ...table('FLOP of MMAs by accumulator', amountRows(counters.mmaFlops)),
    ...table('Bytes of shared memory', amountRows(counters.sharedBytes)),
    ...table('Bytes of tensor memory', amountRows(counters.tensorBytes)),
    ...table('Bytes of global memory', amountRows(counters.globalBytes)),
    ...waitLines(results),
    ...rooflineLines(results),
    `Occupancy of a CTA: ${mostTensorColumns} of ${tensorMemoryColumns} columns of tensor memory, ${whole(mostSharedBytes)} of ${whole(sharedMemoryLimits.sm_100)} bytes of shared memory`,
    '',
  ].join('\n');
}
