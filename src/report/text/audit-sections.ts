import {
  describePlace,
  type Baselines,
  type ErrorProfile,
  type NumberTest,
  type SequenceUsage,
} from '../../audit/index.js';
import {
  formatApart,
  formatCosine,
  formatCount,
  formatNumber,
  formatPowerOfTwo,
  formatShare,
  plainText,
} from '../../words/index.js';
import {
  describeReportedProblem,
  fromReported,
  mainOutput,
  missingQuantities,
  numbersOf,
  quantityLabel,
  vectorsOf,
  type AuditReport,
  type JudgedReport,
  type ReportedSource,
  type ReportedVectors,
} from '../json/index.js';
import { heading, type Cell, type Section } from '../layout/index.js';

/** Number of digits of a SHA-256 that are shown. */
const shownDigits = 12;

/** The sizes and settings of the problem, in the words of one sentence. */
export function problemSection({ problem }: Pick<AuditReport, 'problem'>): Section {
  return { rows: [[heading('Problem'), describeReportedProblem(problem)]], numberColumns: 0 };
}

/** Maximum number of sequences that are listed. */
const listedSequences = 20;

/** The packed sequences, those that use most of their bounds first; no rows without packed sequences. */
export function sequencesSection({ sequences = [] }: JudgedReport): Section {
  const usages = [...fromReported<readonly SequenceUsage[]>(sequences)].sort(
    (a, b) => b.worstRatio - a.worstRatio,
  );
  const rows = usages
    .slice(0, listedSequences)
    .map(({ sequence, queries, keys, worstRatio, outside }) => [
      `  sequence ${sequence}`,
      String(queries),
      String(keys),
      formatShare(worstRatio),
      outside === 0 ? '' : `${formatCount(outside, 'element')} outside`,
    ]);
  const more = usages.length - listedSequences;
  return {
    rows:
      rows.length === 0
        ? []
        : [
            [heading('Sequences'), 'queries', 'keys', 'worst of bound', ''],
            ...rows,
            ...(more > 0 ? [[`  ${more} more`]] : []),
          ],
    numberColumns: 3,
  };
}

const quantiles = [
  ['median', 'p50'],
  ['90 %', 'p90'],
  ['99 %', 'p99'],
  ['99.9 %', 'p999'],
] as const;

/** Members of an output that describe its error. */
type ReportedError = Pick<
  ReportedVectors,
  'name' | 'label' | 'prose' | 'unit' | 'magnitude' | 'format' | 'error'
>;

/** The error of an output in three units: its own, ulps of its format, and relative to its magnitude. */
export function errorSection(output: ReportedError): Section {
  const { absolute, ulps, relative } = fromReported<ErrorProfile>(output.error);
  const { name, label, unit, magnitude, format } = output;
  const numbers = (...values: readonly number[]) => values.map(formatNumber);
  return {
    rows: [
      [
        heading(name === 'out' ? 'Error' : `Error of ${label}`),
        unit,
        `ulp of ${format}`,
        `of ${magnitude}`,
        '',
      ],
      ['  largest', ...numbers(absolute.max, ulps.max, relative.max)],
      ['  rms', ...numbers(absolute.rms, ulps.rms, relative.rms)],
      ['  mean', ...numbers(absolute.mean)],
      ...quantiles.map(([label, key]) => [
        `  ${label}`,
        ...numbers(absolute.percentiles[key], ulps.percentiles[key]),
      ]),
    ],
    numberColumns: 3,
  };
}

/** Remarks on the error of an output: the worst element, values that are not finite. */
export function errorNotesSection(output: ReportedError): Section {
  const { worst, nonFinite, slope } = fromReported<ErrorProfile>(output.error);
  const rows: Cell[][] = [];
  if (worst !== null)
    rows.push([
      '  worst',
      `${formatApart(worst.output, worst.oracle).join(' for ')}, ${formatNumber(worst.ulps)} ulp off, at ${describePlace(worst.at)}`,
    ]);
  if (slope !== null) rows.push(['  slope', `${slope.toFixed(6)} on the oracle`]);
  if (nonFinite.output + nonFinite.oracle > 0)
    rows.push([
      '  special',
      `NaN or infinite: ${nonFinite.output} in ${output.prose}, ${nonFinite.oracle} in the oracle`,
    ]);
  return { rows, numberColumns: 0 };
}

/** The errors of the outputs that are one number a row, and the outputs that were expected and not given. */
function numberErrorsSection(report: JudgedReport): Section {
  const given = numbersOf(report).map((output): Cell[] => {
    const { max, rms, mean } = fromReported<NumberTest>(output.numbers);
    return [
      `  ${output.label}`,
      `largest ${formatNumber(max)}, rms ${formatNumber(rms)}, mean ${formatNumber(mean)} (${output.unit})`,
    ];
  });
  const missing = missingQuantities(report).map(({ label }): Cell[] => [
    `  ${label}`,
    'not given, not judged',
  ]);
  return { rows: [...given, ...missing], numberColumns: 0 };
}

/** The outputs one after the other: the error of each, and the remarks on it. */
export function errorSections(report: JudgedReport): readonly Section[] {
  const [main, ...others] = vectorsOf(report);
  const notes = [...errorNotesSection(main).rows, ...numberErrorsSection(report).rows];
  return [
    errorSection(main),
    { rows: notes, numberColumns: 0 },
    ...others.flatMap((output) => [errorSection(output), errorNotesSection(output)]),
  ];
}

/** The results of allclose, FlashAttention's rule and the cosine. They decide nothing, so nothing is red. */
export function usualChecksSection(report: JudgedReport): Section {
  const { allclose, flashAttention, cosine } = fromReported<Baselines>(report.baselines);
  const word = (pass: boolean) => (pass ? 'pass' : 'fail');
  const { elements } = mainOutput(report).elements;
  const factor = report.problem.softcap === null ? 2 : 3;
  return {
    rows: [
      [heading('Usual checks'), '', ''],
      ['  allclose 1e-2', word(allclose.pass), `${allclose.violations} of ${elements} outside`],
      [
        `  FlashAttention's ${factor}×`,
        word(flashAttention.pass),
        `${formatNumber(flashAttention.maxError)} found, ${formatNumber(flashAttention.allowance)} allowed`,
      ],
      ['  cosine ≥ 0.999', word(cosine.pass), formatCosine(cosine.similarity)],
    ],
    numberColumns: 0,
  };
}

/** The arithmetic by which the oracle settled its rows, and its tightness. */
export function oracleSection(report: JudgedReport): Section {
  const { rows, largestRadius } = fromReported<{
    readonly rows: Readonly<Record<string, number>>;
    readonly largestRadius: number;
  }>(report.oracle);
  const settled = Object.entries(rows).filter(([, count]) => count > 0);
  const levels = settled.map(([level, count]) => `${count} ${level}`).join(', ');
  return {
    rows: [
      [
        heading('Oracle'),
        `${levels === '' ? 'no' : levels} rows; radius at most ${formatPowerOfTwo(largestRadius)} of Σ p|v|`,
      ],
    ],
    numberColumns: 0,
  };
}

/** The files and the command, with the first digits of the hashes. */
export function inputsSection(report: Pick<AuditReport, 'inputs'>): Section {
  const { problem, outputs, command } = report.inputs;
  const tensorRow = (source: ReportedSource): Cell[] => {
    const { path } = source;
    const origin =
      path === null
        ? 'from the command'
        : path === problem.path
          ? 'of the same file'
          : `of ${plainText(path)}`;
    return [
      `  ${quantityLabel(source.name)}`,
      source.sha256.slice(0, shownDigits),
      `${source.format} ${plainText(source.tensor)} ${origin}`,
    ];
  };
  return {
    rows: [
      [heading('Inputs'), 'sha-256', ''],
      ['  problem', problem.sha256.slice(0, shownDigits), plainText(problem.path)],
      ...outputs.map(tensorRow),
      ...(command === null ? [] : [['  command', '', plainText(command)]]),
    ],
    numberColumns: 0,
  };
}
