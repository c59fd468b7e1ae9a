import { comparedTile, describePlace, type OutputDifference } from '../../audit/index.js';
import {
  formatCount,
  formatNumber,
  formatPercentage,
  formatScientific,
  formatUse,
  plainText,
} from '../../words/index.js';
import {
  fromReported,
  type ReportedComparison,
  type ReportedDifference,
  type ReportedVersion,
} from '../json/index.js';
import { heading, type Section, type TableRow } from '../layout/index.js';
import type { Setting } from './setting.js';

/** Maximum number of heads that are listed by number; more are only counted. */
const listedHeads = 8;

/** The row of a version, whose numbers are all sizes. */
function versionRow(version: ReportedVersion): TableRow {
  const { name, rms, max, ulps, boundUsed, pass } = version;
  const [a, b, c] = [rms, max, ulps].map((size) => formatNumber(Number(size)));
  const share = formatUse(Number(boundUsed));
  return [
    plainText(name),
    a,
    b,
    c,
    share,
    { text: version.status, tone: pass ? 'success' : 'failure' },
  ];
}

/** The outputs side by side, with their distances from the exact one. */
function versionsSection({ outputs }: ReportedComparison): Section {
  const head = ['Compared', 'rms error', 'largest', 'ulps', 'bound used', 'verdict'];
  return { rows: [head.map(heading), ...outputs.map(versionRow)], numberColumns: 4 };
}

/** "12.3 % of the elements, in 40 of 64 rows, 2 of 3 tiles of 64 queries, heads 0 and 3 of 8". */
function extent({
  elements,
  differing,
  rows,
  differingRows,
  tiles,
  differingTiles,
  heads,
  differingHeads,
}: OutputDifference): string {
  const list = differingHeads.join(', ');
  const ofHeads =
    differingHeads.length === heads
      ? heads === 1
        ? 'its head'
        : `all ${heads} heads`
      : differingHeads.length > listedHeads
        ? `${differingHeads.length} of ${heads} heads`
        : `${differingHeads.length === 1 ? 'head' : 'heads'} ${list} of ${heads}`;
  return `in ${formatPercentage(differing / elements)} of the elements: ${differingRows} of ${rows} rows, ${differingTiles} of ${formatCount(tiles, 'tile')} of ${comparedTile} queries, ${ofHeads}`;
}

/** "p = 3.1e-12", or a limit where it is too small for a number. */
function formatProbability(p: number): string {
  return p === 0 ? 'p < 1e-300' : p > 0.1 ? `p = ${p.toFixed(2)}` : `p = ${formatScientific(p)}`;
}

/** The output that is closer, and the evidence for it. */
function closerText(first: string, difference: ReportedDifference, significance: number): string {
  const { name, closer, adjustedPValue } = difference;
  const { closeness } = fromReported<Pick<OutputDifference, 'closeness'>>({
    closeness: difference.closeness,
  });
  const { units, firstCloser, positive, rows, rms } = closeness;
  if (units === 0) return 'both are equally close in every row';
  const [a, b] = rms.map(formatNumber);
  const counts = `${plainText(first)} is closer in ${firstCloser}, ${plainText(name)} in ${positive} of ${formatCount(units, 'independent row')}${units < rows ? ` (of ${rows})` : ''}`;
  const test = `Wilcoxon's signed-rank test, ${formatProbability(adjustedPValue)}`;
  const who =
    closer === null
      ? `neither is significantly closer (${test})`
      : `${plainText(closer)}, significantly (${test}, below ${significance})`;
  return `${who}; rms relative to Σ p|v| ${a} and ${b}; ${counts}`;
}

function differenceRows(
  first: string,
  reported: ReportedDifference,
  significance: number,
): TableRow[] {
  // Its name may read as a number, but is not examined here.
  const difference = fromReported<OutputDifference>(reported);
  const { largest, first: place, differing } = difference;
  if (differing === 0) return [['  Differ', 'nowhere: they are the same numbers']];
  return [
    ['  Closer to exact', closerText(first, reported, significance)],
    ['  Differ', extent(difference)],
    ...(place === null ? [] : [['  First difference', describePlace(place)]]),
    ...(largest === null
      ? []
      : [['  Largest', `${formatNumber(largest.difference)} at ${describePlace(largest.at)}`]]),
  ];
}

/** The differences of the other outputs from the first, with a title. */
export function differenceSections({
  outputs: [first],
  differences,
  significance,
}: ReportedComparison): readonly { readonly title: string; readonly section: Section }[] {
  return differences.map((difference) => ({
    title: plainText(`${difference.name} beside ${first.name}`),
    section: {
      rows: [
        { span: plainText(`${difference.name} beside ${first.name}`), indent: 0 },
        ...differenceRows(first.name, difference, significance),
      ],
      numberColumns: 0,
    },
  }));
}

/** The comparison as blocks of lines: the outputs side by side, then each difference; none without a comparison. */
export function comparisonBlocks(
  comparison: ReportedComparison | null,
  { section }: Pick<Setting, 'section'>,
): string[][] {
  if (comparison === null) return [];
  return [
    section(versionsSection(comparison)),
    ...differenceSections(comparison).map((one) => section(one.section)),
  ];
}
