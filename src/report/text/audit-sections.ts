import {
  describePlace,
  structureTests,
  type Baselines,
  type Coordinates,
  type ElementTest,
  type ErrorProfile,
  type LseTest,
  type SpreadTest,
  type StructureResult,
} from '../../audit/index.js';
import {
  formatApart,
  formatCosine,
  formatNumber,
  formatPowerOfTwo,
  formatShare,
  shareUsed,
} from '../../words/index.js';
import { plainText } from '../../words/index.js';
import type { AuditReport, JudgedReport, ReportedSource } from '../json/index.js';
import { describeReportedProblem } from '../json/index.js';
import { fromReported } from '../json/index.js';
import { testLabel, testWords, type ReportedTest } from './test-words.js';
import type { Cell, TableRow } from '../layout/index.js';

/** A table with its heading in the first cell of the first row; column 0 is left-aligned. */
export interface Section {
  readonly rows: readonly TableRow[];
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

/** What one row of the table of tests is made of. */
interface TestRow {
  readonly test: ReportedTest;
  readonly label: string;
  readonly found: number;
  /** Null for a count, of which nothing is allowed. */
  readonly allowed: number | null;
  readonly place: string;
}

/** Whether a row of the table is a reason to fail. */
function isFailing({ found, allowed }: TestRow): boolean {
  return allowed === null ? found > 0 : shareUsed(found, allowed) > 1;
}

function testCells(row: TestRow): Cell[] {
  const { label, found, allowed, place } = row;
  const texts =
    allowed === null
      ? [String(found), '0', '']
      : [formatNumber(found), formatNumber(allowed), formatShare(shareUsed(found, allowed))];
  const marked = allowed === null ? 1 : texts.length;
  return [
    `  ${label}`,
    ...texts.map((text, i): Cell =>
      isFailing(row) && i < marked ? { text, tone: 'failure' } : text,
    ),
    place,
  ];
}

/** "head 3, queries 128 to 255, keys 0 to 127"; a structure test's head counts over [batch, heads]. */
function pooledPlace(
  result: Pick<StructureResult, 'scope' | 'head' | 'firstRow' | 'rows' | 'firstKey' | 'keys'>,
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

function place(at: Coordinates | undefined | null): string {
  return at ? describePlace(at) : '';
}

/** Every test that takes part in the verdict: found, allowed, and where it is worst. */
function testRows(report: JudgedReport): TestRow[] {
  const elements = fromReported<ElementTest>(report.elements);
  const spread = fromReported<SpreadTest>(report.spread);
  const structure = fromReported<readonly StructureResult[]>(report.structure);
  const lse = fromReported<LseTest | null>(report.lse);
  const { heads } = report.problem;
  const count = (
    test: ReportedTest,
    found: number,
    at: Coordinates | undefined | null,
  ): TestRow => ({
    test,
    label: testLabel(test),
    found,
    allowed: null,
    place: place(at),
  });
  const ofElement = (test: ReportedTest, worst: ElementTest['worst']): TestRow[] =>
    worst === null
      ? []
      : [
          {
            test,
            label: testLabel(test),
            found: worst.error,
            allowed: worst.bound,
            place: describePlace(worst.at),
          },
        ];
  return [
    count('not finite', elements.nonFinite, elements.firstNonFinite),
    ...ofElement('element', elements.worst),
    ...ofElement('spread', spread.worst),
    ...spread.results.map((result): TestRow => {
      const { scope, measured, limit } = result;
      return {
        test: 'rms',
        label: testLabel('rms', scope),
        found: measured,
        allowed: limit,
        place: pooledPlace({ ...result, firstKey: null, keys: null }, heads),
      };
    }),
    ...structure.map((result): TestRow => {
      const { test, scope, statistic, threshold } = result;
      return {
        test,
        label: testLabel(test, scope),
        found: statistic,
        allowed: threshold,
        place: pooledPlace(result, heads),
      };
    }),
    ...(lse === null ? [] : [count('LSE not finite', lse.nonFinite, lse.firstNonFinite?.at)]),
    ...(lse === null || lse.worst === null
      ? []
      : [
          {
            test: 'LSE' as const,
            label: testLabel('LSE'),
            found: lse.worst.lse - lse.worst.oracle,
            allowed: lse.worst.bound,
            place: describePlace(lse.worst.at),
          },
        ]),
  ];
}

/** Rows of tests, with what each test is and its unit below the rows that it has. */
function testTable(rows: readonly TestRow[]): Section {
  return {
    rows: [
      [heading('Tests'), 'found', 'allowed', 'used', 'worst at'],
      ...rows.flatMap((row, i): TableRow[] => {
        const { unit, gloss } = testWords[row.test];
        const isLast = rows[i + 1]?.test !== row.test;
        return [testCells(row), ...(isLast ? [{ span: `${gloss}; ${unit}`, indent: 4 }] : [])];
      }),
    ],
    numberColumns: 3,
  };
}

/** Every test that takes part in the verdict: found, allowed, share used, and where it is worst. */
export function testsSection(report: JudgedReport): Section {
  return testTable(testRows(report));
}

/** How far above what is allowed a failing row is. */
function excess({ found, allowed }: TestRow): number {
  return allowed === null ? Infinity : shareUsed(found, allowed);
}

/** The tests that fail, each where it fails by most; null when none does. */
export function failedTestsSection(report: JudgedReport): Section | null {
  const worst = new Map<ReportedTest, TestRow>();
  for (const row of testRows(report).filter(isFailing)) {
    const known = worst.get(row.test);
    if (known === undefined || excess(row) > excess(known)) worst.set(row.test, row);
  }
  return worst.size === 0 ? null : testTable([...worst.values()]);
}

/** The statistical test that comes nearest to its limit; null when there is none. */
export function closestTest(
  report: JudgedReport,
): { readonly label: string; readonly share: number; readonly place: string } | null {
  return testRows(report)
    .filter(({ test }) => !['not finite', 'element', 'LSE not finite', 'LSE'].includes(test))
    .map(({ label, found, allowed, place }) => ({
      label,
      place,
      share: shareUsed(found, allowed!),
    }))
    .reduce<ReturnType<typeof closestTest>>(
      (most, row) => (most === null || row.share > most.share ? row : most),
      null,
    );
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
