import {
  describePlace,
  inTestOrder,
  structureTests,
  type Coordinates,
  type ElementTest,
  type NumberTest,
  type SpreadTest,
  type StructureResult,
} from '../../audit/index.js';
import { formatNumber, formatShare, plainText, shareUsed } from '../../words/index.js';
import {
  fromReported,
  mainOutput,
  numbersOf,
  vectorsOf,
  type AuditReport,
  type JudgedReport,
  type ReportedNumbers,
  type ReportedVectors,
} from '../json/index.js';
import { heading, type Cell, type Section, type TableRow } from '../layout/index.js';
import { gradientTestRows } from './gradient-tests.js';
import { testLabel, testName, testWords, type TestRow } from './test-words.js';

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
  result: Pick<
    StructureResult,
    'scope' | 'head' | 'firstRow' | 'rows' | 'lastRow' | 'firstKey' | 'keys'
  >,
  heads: number,
): string {
  const { scope, head, firstRow, rows, lastRow, firstKey, keys } = result;
  const batch = Math.floor(head / heads);
  const pooled = {
    row: `query ${firstRow}`,
    tile:
      lastRow - firstRow + 1 === rows
        ? `queries ${firstRow} to ${lastRow}`
        : `${rows} sampled queries from ${firstRow} to ${lastRow}`,
    head: '',
  }[scope];
  const ofKeys = firstKey === null ? '' : `keys ${firstKey} to ${firstKey + keys! - 1}`;
  return [batch === 0 ? '' : `batch ${batch}`, `head ${head % heads}`, pooled, ofKeys]
    .filter((part) => part !== '')
    .join(', ');
}

/** The row of a test that counts elements that are wrongly NaN or infinite, or wrongly finite. */
function countRow(test: string, found: number, at: Coordinates | null): TestRow {
  const place = at === null ? '' : describePlace(at);
  return { test, isStatistical: false, label: test, found, allowed: null, place };
}

/** The element that uses most of its allowance; none where there is nothing to compare. */
function worstRow(
  test: string,
  isStatistical: boolean,
  worst: { readonly at: Coordinates; readonly error: number; readonly bound: number } | null,
): TestRow[] {
  if (worst === null) return [];
  const { at, error, bound } = worst;
  return [
    { test, isStatistical, label: test, found: error, allowed: bound, place: describePlace(at) },
  ];
}

function vectorRows(output: ReportedVectors, heads: number): TestRow[] {
  const elements = fromReported<ElementTest>(output.elements);
  const spread = fromReported<SpreadTest>(output.spread);
  const name = (test: string) => testName(output, test);
  return [
    countRow(name('not finite'), elements.nonFinite, elements.firstNonFinite),
    ...worstRow(name('element'), false, elements.worst),
    ...worstRow(name('spread'), true, spread.worst),
    ...spread.results.map((result): TestRow => ({
      test: name('rms'),
      isStatistical: true,
      label: testLabel(name('rms'), result.scope),
      found: result.measured,
      allowed: result.limit,
      place: pooledPlace({ ...result, firstKey: null, keys: null }, heads),
    })),
  ];
}

function numberRows(output: ReportedNumbers): TestRow[] {
  const { nonFinite, firstNonFinite, worst } = fromReported<NumberTest>(output.numbers);
  const name = (test: string) => testName(output, test);
  return [
    countRow(name('not finite'), nonFinite, firstNonFinite?.at ?? null),
    ...worstRow(
      name(''),
      false,
      worst && { at: worst.at, error: worst.value - worst.oracle, bound: worst.bound },
    ),
  ];
}

/** Every test that takes part in the verdict: found, allowed, and its worst place. */
function testRows(report: JudgedReport): TestRow[] {
  const { heads } = report.problem;
  const structure = report.outputs.flatMap((output) =>
    fromReported<readonly StructureResult[]>(output.structure),
  );
  return [
    ...vectorsOf(report).flatMap((output) => vectorRows(output, heads)),
    ...inTestOrder(structure).map((result): TestRow => {
      const { test, scope, statistic, threshold } = result;
      return {
        test,
        isStatistical: true,
        label: testLabel(test, scope),
        found: statistic,
        allowed: threshold,
        place: pooledPlace(result, heads),
      };
    }),
    ...numbersOf(report).flatMap(numberRows),
  ];
}

/** Rows of tests, with the gloss and the unit of each test below its rows. */
function testTable(rows: readonly TestRow[], { outputs }: JudgedReport): Section {
  const words = testWords(outputs);
  return {
    rows: [
      [heading('Tests'), 'found', 'allowed', 'used', 'worst at'],
      ...rows.flatMap((row, i): TableRow[] => {
        const { unit, gloss } = words[row.test];
        const isLast = rows[i + 1]?.test !== row.test;
        return [testCells(row), ...(isLast ? [{ span: `${gloss}; ${unit}`, indent: 4 }] : [])];
      }),
    ],
    numberColumns: 3,
  };
}

/** Every test that takes part in the verdict: found, allowed, share used, and its worst place. */
export function testsSection(report: JudgedReport): Section {
  return testTable(testRows(report), report);
}

/** The factor by which a failing row exceeds its allowance. */
function excess({ found, allowed }: TestRow): number {
  return allowed === null ? Infinity : shareUsed(found, allowed);
}

/** Where the other tests are, on a terminal. */
const inFull = '--full prints them';

/** Number of tests that are listed for a failure. */
const mostListed = 3;

/**
 * The tests that fail by most, each where it fails by most, and the number of others that fail; null when none does.
 * The allowance and the finding are given, without the share: a share above 1 says no more.
 * @param elsewhere where the others are, a clause
 */
export function failedTestsSection(report: AuditReport, elsewhere = inFull): Section | null {
  const ofOutputs = report.outputs === null ? [] : testRows(report);
  const rows = [...ofOutputs, ...gradientTestRows(report)];
  return failedRowsSection(rows, testWords(report.outputs ?? []), elsewhere);
}

/** The tests among some that fail by most, likewise. @param words of tests that have a gloss */
export function failedRowsSection(
  rows: readonly TestRow[],
  words: ReturnType<typeof testWords>,
  elsewhere = inFull,
): Section | null {
  const worst = new Map<string, TestRow>();
  for (const row of rows.filter(isFailing)) {
    const known = worst.get(row.test);
    if (known === undefined || excess(row) > excess(known)) worst.set(row.test, row);
  }
  if (worst.size === 0) return null;
  const failing = [...worst.values()].sort((a, b) => excess(b) - excess(a));
  const left = failing.length - mostListed;
  const more = left === 1 ? '1 more test fails' : `${left} more tests fail`;
  return {
    rows: [
      [heading('Tests'), 'found', 'allowed', 'worst at'],
      ...failing.slice(0, mostListed).flatMap((row): TableRow[] => {
        const [label, found, allowed, , place] = testCells(row);
        const known = words[row.test];
        const gloss =
          known === undefined ? [] : [{ span: `${known.gloss}; ${known.unit}`, indent: 4 }];
        return [[label, found, allowed, place], ...gloss];
      }),
      ...(left > 0 ? [{ span: `${more}; ${elsewhere}`, indent: 2 }] : []),
    ],
    numberColumns: 2,
  };
}

/** The statistical test that comes nearest to its limit; null when there is none. */
export function closestTest(
  report: JudgedReport,
): { readonly label: string; readonly share: number; readonly place: string } | null {
  return testRows(report)
    .filter(({ isStatistical }) => isStatistical)
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

/** Remarks on the tests. */
export function testNotes(report: JudgedReport): string {
  const { medianRatio } = fromReported<ElementTest>(mainOutput(report).elements);
  const { falseAlarmRate } = report;
  const tests = `spread, rms, ${structureTests.slice(0, -1).join(', ')} and ${structureTests.at(-1)}`;
  return `The bounds are those of ${plainText(report.arithmetic)}; the median element uses ${formatShare(medianRatio)} of its own. The ${tests} tests fail a correct kernel with probability ${falseAlarmRate} at most.`;
}
