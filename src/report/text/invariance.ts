import { formatCount, formatNumber, plainText } from '../../words/index.js';
import type {
  InvarianceReport,
  ReportedBits,
  ReportedChange,
  ReportedDimension,
} from '../json/check/index.js';
import { describeReportedProblem } from '../json/index.js';
import { type Cell, heading, wrapText } from '../layout/index.js';
import { describeKernel } from './check.js';
import { joinBlocks, paintVerdict, type RenderOptions, settingOf } from './setting.js';

const results: Readonly<Record<ReportedDimension['result'], Cell>> = {
  invariant: 'same bits',
  differs: { text: 'DIFFERS', tone: 'failure' },
  fails: { text: 'FAILS', tone: 'failure' },
  untried: 'not tried',
};

/** Ascending numbers, those that follow one another as a range. */
function describeRanges(values: readonly number[]): string {
  const ranges: [first: number, last: number][] = [];
  for (const value of values) {
    const last = ranges.at(-1);
    if (last !== undefined && last[1] === value - 1) last[1] = value;
    else ranges.push([value, value]);
  }
  return ranges.map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`)).join(', ');
}

/** The values that were tried, as in "1–17, 32–33, 64". */
function describeTried({ name, tried, valueNames }: ReportedDimension): string {
  if (name === 'determinism') return formatCount(tried.length, 'run');
  if (valueNames !== null) return tried.map((value) => valueNames[value]).join(', ');
  return describeRanges(tried);
}

function describeStep(
  { name, valueNames }: ReportedDimension,
  { from, to }: ReportedChange,
): string {
  const unit = name === 'determinism' ? 'run ' : '';
  const inWords = (value: number) => unit + (valueNames?.[value] ?? String(value));
  return from === null ? `at ${inWords(to)}` : `${inWords(from)} → ${inWords(to)}`;
}

function dimensionRows(dimensions: readonly ReportedDimension[]): Cell[][] {
  return [
    ['Dimension', 'rows', 'from → to', 'tried'].map(heading),
    ...dimensions.map((dimension): Cell[] => [
      `  ${dimension.name}`,
      results[dimension.result],
      dimension.change === null ? '' : describeStep(dimension, dimension.change),
      plainText(dimension.reason ?? describeTried(dimension)),
    ]),
  ];
}

/** How a quantity changed, as in "12 of 64 elements of O, by 2 ulps at most". */
function describeQuantity(
  what: string,
  { differing, compared, ulps }: ReportedBits['out'],
): string | null {
  if (differing === 0) return null;
  const size =
    ulps === null ? 'some not finite' : `by ${formatNumber(ulps)} ${ulps === 1 ? 'ulp' : 'ulps'}`;
  return `${differing} of ${compared} ${what}, ${size}${ulps === null || differing === 1 ? '' : ' at most'}`;
}

function describeBits({ rows, out, lse, places }: ReportedBits): string {
  const [{ sequence, head, query }] = places;
  return [
    `${rows.differing} of ${formatCount(rows.compared, 'row')}, the first at sequence ${sequence}, head ${head}, query ${query}`,
    describeQuantity('elements of O', out),
    lse === null ? null : describeQuantity('LSEs', lse),
  ]
    .filter((part) => part !== null)
    .join('; ');
}

function changeLines(
  dimensions: readonly ReportedDimension[],
  table: (rows: Cell[][]) => string[],
): string[] {
  const rows = dimensions.flatMap((dimension): Cell[][] => {
    const { name, description, change } = dimension;
    if (change === null) return [];
    const { at, bits, fault } = change;
    const where = at === null ? '' : `, with ${at.dimension} at ${at.value}`;
    const what = bits === null ? `the kernel fails: ${fault}` : describeBits(bits);
    return [
      [
        `  ${name}`,
        plainText(`${describeStep(dimension, change)} (${description}${where}): ${what}.`),
      ],
    ];
  });
  return rows.length === 0 ? [] : table([[heading('Smallest change')], ...rows]);
}

/**
 * The report of a search for changes of bits for a terminal, newline at the end: the verdict, what was tried of each
 * dimension, the smallest changes, the problem and the kernel.
 */
export function renderInvariance(report: InvarianceReport, options: RenderOptions = {}): string {
  const setting = settingOf(options);
  const { table, columns } = setting;
  const { tool, created, seconds, sequence, problem, verdict } = report;
  const lines = wrapText(plainText(verdict.sentence), columns);
  const [word] = /^[A-Z ]+/.exec(lines[0]) ?? [''];
  return joinBlocks([
    paintVerdict(lines, word, verdict.pass, setting),
    table(dimensionRows(report.dimensions)),
    changeLines(report.dimensions, table),
    [
      ...table([
        [heading('Rows'), `those of sequence ${sequence}`],
        [heading('Problem'), plainText(describeReportedProblem(problem))],
        [heading('Kernel'), plainText(describeKernel(report))],
      ]),
      `  ${tool.name} ${plainText(tool.version)}, ${created}, ${formatNumber(seconds)} s`,
    ],
  ]);
}
