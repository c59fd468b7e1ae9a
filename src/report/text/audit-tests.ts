import {
  describePlace,
  structureTests,
  type Coordinates,
  type ElementTest,
  type LseTest,
  type SpreadScope,
  type SpreadTest,
  type StructureResult,
  type StructureScope,
  type StructureTest,
} from '../../audit/index.js';
import { formatNumber, formatShare, plainText, shareUsed } from '../../words/index.js';
import { fromReported, type JudgedReport } from '../json/index.js';
import { heading, type Cell, type Section, type TableRow } from '../layout/index.js';

/** The tests that take part in the verdict, in the order of the table. */
type ReportedTest =
  'not finite' | 'element' | 'spread' | 'rms' | StructureTest | 'LSE not finite' | 'LSE';

/** How the table of tests words one of them. */
interface TestWords {
  /** Of found and allowed. */
  readonly unit: string;
  /** What is compared with what, in one line. */
  readonly gloss: string;
}

/** The words of each test; a new test has a row here and nothing else in the report. */
export const testWords: Readonly<Record<ReportedTest, TestWords>> = {
  'not finite': {
    unit: 'elements',
    gloss: 'NaN or infinite where a correct kernel is not, or the reverse',
  },
  element: { unit: 'output units', gloss: 'each |error| against the worst case of its own' },
  spread: { unit: 'output units', gloss: 'each |error| against what independent roundings do' },
  rms: { unit: 'output units', gloss: 'root mean square error against what roundings do' },
  scale: { unit: 'a ratio', gloss: 'slope of the output on the oracle, less 1' },
  bias: { unit: 'output units', gloss: 'mean signed error' },
  truncation: { unit: 'half ulps', gloss: 'error away from 0; −1 where digits are cut off' },
  dispersion: { unit: 'a ratio', gloss: "root mean square of the rows' slopes" },
  'lse-mean': { unit: 'natural logarithm', gloss: 'mean error of the LSE over a head' },
  'key-tile': { unit: 'a ratio', gloss: 'share of a tile of keys lost (+) or counted twice (−)' },
  'LSE not finite': {
    unit: 'rows',
    gloss: 'NaN or infinite where a correct kernel is not, or the reverse',
  },
  LSE: { unit: 'natural logarithm', gloss: "each row's error against its worst case" },
};

/** "rms, head": a test, and over what it is pooled. */
export function testLabel(test: ReportedTest, scope?: SpreadScope | StructureScope): string {
  return scope === undefined ? test : `${test}, ${scope}`;
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
            found: lse.worst.value - lse.worst.oracle,
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
