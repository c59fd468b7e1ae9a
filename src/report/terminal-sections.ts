import {
  describePlace,
  formatNumber,
  structureTests,
  type Baselines,
  type Coordinates,
  type ElementTest,
  type ErrorProfile,
  type LseTest,
  type SpreadTest,
  type StructureResult,
} from '../audit/index.js';
import type { AuditReport, JudgedReport, ReportedSource } from './audit-report.js';
import { plainText } from './plain-text.js';
import { fromReported } from './report-number.js';
import { describeReportedProblem } from './reported-problem-text.js';
import { formatCosine, formatPowerOfTwo, formatShare, shareUsed } from './terminal-numbers.js';
import type { Cell } from './text-table.js';

/** A table with its heading in the first cell of the first row; column 0 is left-aligned. */
export interface Section {
  readonly rows: readonly (readonly Cell[])[];
  /** Columns of numbers, from column 1 on, aligned to the right. */
  readonly numberColumns: number;
}

function heading(text: string): Cell {
  return { text, tone: 'heading' };
}

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
      `${formatNumber(worst.output)} for ${formatNumber(worst.oracle)}, ${formatNumber(worst.ulps)} ulp off, at ${describePlace(worst.at)}`,
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

/** One row of the table of tests; above its limit it is a failure. */
function testRow(label: string, found: number, allowed: number, place: string): Cell[] {
  const share = shareUsed(found, allowed);
  const cells = [formatNumber(found), formatNumber(allowed), formatShare(share)];
  return [
    `  ${label}`,
    ...cells.map((text): Cell => (share > 1 ? { text, tone: 'failure' } : text)),
    place,
  ];
}

/** A test of which nothing is allowed. */
function countRow(label: string, count: number, place: Coordinates | undefined | null): Cell[] {
  const found: Cell = count > 0 ? { text: String(count), tone: 'failure' } : '0';
  return [`  ${label}`, found, '0', '', place ? describePlace(place) : ''];
}

/** The tests against what independent roundings add up to. */
function spreadRows(spread: SpreadTest, heads: number): Cell[][] {
  const { worst, results } = spread;
  return [
    ...(worst === null
      ? []
      : [testRow('spread', worst.error, worst.bound, describePlace(worst.at))]),
    ...results.map(({ scope, measured, limit, head, firstRow, rows }) =>
      testRow(
        `rms, ${scope}`,
        measured,
        limit,
        pooledPlace({ scope, head, firstRow, rows, firstKey: null, keys: null }, heads),
      ),
    ),
  ];
}

/** "head 3, queries 128 to 255, keys 0 to 127"; a structure test's head counts over [batch, heads]. */
function pooledPlace(
  result: Omit<StructureResult, 'test' | 'statistic' | 'threshold'>,
  heads: number,
): string {
  const { scope, head, firstRow, rows, firstKey, keys } = result;
  const batch = Math.floor(head / heads);
  const pooled = {
    row: `query ${firstRow}`,
    tile: `queries ${firstRow} to ${firstRow + rows - 1}`,
    head: '',
  }[scope];
  const ofKeys = firstKey === null ? '' : `keys ${firstKey} to ${firstKey + keys! - 1}`;
  return [batch === 0 ? '' : `batch ${batch}`, `head ${head % heads}`, pooled, ofKeys]
    .filter((part) => part !== '')
    .join(', ');
}

/** Every test that takes part in the verdict: found, allowed, share used, and where it is worst. */
export function testsSection(report: JudgedReport): Section {
  const elements = fromReported<ElementTest>(report.elements);
  const structure = fromReported<readonly StructureResult[]>(report.structure);
  const lse = fromReported<LseTest | null>(report.lse);
  const { worst } = elements;
  return {
    rows: [
      [heading('Tests'), 'found', 'allowed', 'used', 'worst at'],
      countRow('not finite', elements.nonFinite, elements.firstNonFinite),
      ...(worst === null
        ? []
        : [testRow('element', worst.error, worst.bound, describePlace(worst.at))]),
      ...spreadRows(fromReported<SpreadTest>(report.spread), report.problem.heads),
      ...structure.map((result) =>
        testRow(
          `${result.test}, ${result.scope}`,
          result.statistic,
          result.threshold,
          pooledPlace(result, report.problem.heads),
        ),
      ),
      ...(lse === null ? [] : [countRow('LSE not finite', lse.nonFinite, lse.firstNonFinite?.at)]),
      ...(lse === null || lse.worst === null
        ? []
        : [
            testRow(
              'LSE',
              lse.worst.lse - lse.worst.oracle,
              lse.worst.bound,
              describePlace(lse.worst.at),
            ),
          ]),
    ],
    numberColumns: 3,
  };
}

/** What belongs to the tests in words. */
export function testNotes(report: JudgedReport): string {
  const { medianRatio } = fromReported<ElementTest>(report.elements);
  const { falseAlarmRate } = report;
  const tests = `spread, rms, ${structureTests.slice(0, -1).join(', ')} and ${structureTests.at(-1)}`;
  return `The bounds are those of ${plainText(report.arithmetic)}; the median element uses ${formatShare(medianRatio)} of its own. The ${tests} tests fail a correct kernel with probability ${falseAlarmRate} at most.`;
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
