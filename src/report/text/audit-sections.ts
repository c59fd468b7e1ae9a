import {
  describePlace,
  type Baselines,
  type ErrorProfile,
  type LseTest,
} from '../../audit/index.js';
import {
  formatApart,
  formatCosine,
  formatNumber,
  formatPowerOfTwo,
  plainText,
} from '../../words/index.js';
import {
  describeReportedProblem,
  fromReported,
  type AuditReport,
  type JudgedReport,
  type ReportedSource,
} from '../json/index.js';
import { heading, type Cell, type Section } from '../layout/index.js';

/** Digits of a SHA-256 that are shown. */
const shownDigits = 12;

/** The sizes and settings of the problem, in one sentence's worth of words. */
export function problemSection({ problem }: Pick<AuditReport, 'problem'>): Section {
  return { rows: [[heading('Problem'), describeReportedProblem(problem)]], numberColumns: 0 };
}

const quantiles = [
  ['median', 'p50'],
  ['90 %', 'p90'],
  ['99 %', 'p99'],
  ['99.9 %', 'p999'],
] as const;

/** The error in three units: the output's own, ulps of its format, and Σ p|v|. */
export function errorSection(report: JudgedReport): Section {
  const { absolute, ulps, relative } = fromReported<ErrorProfile>(report.error);
  const format = report.inputs.output?.format ?? 'the output';
  const numbers = (...values: readonly number[]) => values.map(formatNumber);
  return {
    rows: [
      [heading('Error'), 'output units', `ulp of ${format}`, 'of Σ p|v|', ''],
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

/** What goes with the error in words: the worst element, values that are not finite, the LSE. */
export function errorNotesSection(report: JudgedReport): Section {
  const { worst, nonFinite, slope } = fromReported<ErrorProfile>(report.error);
  const lse = fromReported<LseTest | null>(report.lse);
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
      `NaN or infinite: ${nonFinite.output} in the output, ${nonFinite.oracle} in the oracle`,
    ]);
  rows.push([
    '  LSE',
    lse === null
      ? 'not given, not judged'
      : `largest ${formatNumber(lse.max)}, rms ${formatNumber(lse.rms)}, mean ${formatNumber(lse.mean)} (natural logarithm)`,
  ]);
  return { rows, numberColumns: 0 };
}

/** What allclose, FlashAttention's rule and the cosine say. They decide nothing, so nothing is red. */
export function usualChecksSection(report: JudgedReport): Section {
  const { allclose, flashAttention, cosine } = fromReported<Baselines>(report.baselines);
  const word = (pass: boolean) => (pass ? 'pass' : 'fail');
  const { elements } = report.elements;
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

/** By which arithmetic the oracle settled its rows, and how tightly. */
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
export function inputsSection(report: AuditReport): Section {
  const { problem, output, lse, command } = report.inputs;
  const tensorRow = (label: string, source: ReportedSource | null): Cell[][] => {
    if (source === null) return [];
    const { path } = source;
    const origin =
      path === null
        ? 'from the command'
        : path === problem.path
          ? 'of the same file'
          : `of ${plainText(path)}`;
    return [
      [
        `  ${label}`,
        source.sha256.slice(0, shownDigits),
        `${source.format} ${plainText(source.tensor)} ${origin}`,
      ],
    ];
  };
  return {
    rows: [
      [heading('Inputs'), 'sha-256', ''],
      ['  problem', problem.sha256.slice(0, shownDigits), plainText(problem.path)],
      ...tensorRow('output', output),
      ...tensorRow('LSE', lse),
      ...(command === null ? [] : [['  command', '', plainText(command)]]),
    ],
    numberColumns: 0,
  };
}
