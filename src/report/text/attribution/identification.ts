import { alignColumns, wrapAtSpaces } from '../../layout/index.js';
import {
  type Candidate,
  type Identification,
  isEqualThroughout,
  type MatchMeasure,
  significantLikeness,
  type TechniqueMatch,
  type TechniqueSearch,
} from '../../../attribution/index.js';

function nameOf({ model, settings }: Candidate): string {
  return [model, ...Object.entries(settings).map(([key, value]) => `${key}=${value}`)].join(' ');
}

/** Shorter headings for narrow lines. */
const shortHeads: Readonly<Record<string, string>> = {
  combinations: 'ways',
  likeness: 'like',
  'largest difference': 'largest',
  'LSE equal': 'LSE',
  difference: 'LSE off',
};

/**
 * Rows of a name and numbers, below their headings, as a table; or, where that is wider than the
 * columns allow, the numbers of each row below its name.
 */
function fittedTable(rows: readonly (readonly string[])[], columns: number): string[] {
  const table = alignColumns(rows);
  if (table.every((line) => [...line].length <= columns)) return table;
  const [heads, ...others] = rows;
  const numbers = alignColumns([
    ['', ...heads.slice(1).map((head) => shortHeads[head] ?? head)],
    ...others.map(([, ...cells]) => ['', ...cells]),
  ]);
  return [numbers[0], ...others.flatMap(([name], i) => [`  ${name}`, numbers[i + 1]])];
}

/** Number of columns up to which sentences share a line, however wide it is. */
const proseColumns = 100;

const measureHeads = ['equal', 'of all', 'likeness', 'largest difference', 'oracle', 'rounded'];

/** The cells of a measure, as `measureHeads` names them, and those of its LSE if there is one. */
function measureCells(match: MatchMeasure): string[] {
  const correlation = (value: number | null): string => (value === null ? '-' : value.toFixed(3));
  return [
    String(match.equal),
    `${((100 * match.equal) / Math.max(match.elements, 1)).toFixed(2)} %`,
    match.likeness.toFixed(3),
    match.largestDifference.toExponential(1),
    correlation(match.correlation),
    correlation(match.correlationBeyondRounding),
    ...(match.lse === null
      ? []
      : [String(match.lse.equal), match.lse.largestDifference.toExponential(1)]),
  ];
}

/** The heads of measures, with those of the LSE where it was compared. */
function headsOf(matches: readonly MatchMeasure[]): string[] {
  const hasLse = matches.some(({ lse }) => lse !== null);
  return [...measureHeads, ...(hasLse ? ['LSE equal', 'difference'] : [])];
}

function exactText(exact: readonly string[]): string {
  return exact.length === 0 ? 'every technique emulated' : `${exact.join(', ')} exact`;
}

/** Describes the other combinations that make the same bits as the first of a class. */
function equalsText({ either, combinations }: TechniqueMatch): string[] {
  if (either.length === 0) return [];
  const names = either.join(', ');
  const isFree = combinations.length === 2 ** either.length;
  return [
    isFree
      ? `Either way the same: ${names}.`
      : `${combinations.length} choices among these are the same: ${names}.`,
  ];
}

/** The findings of a search, in sentences. */
function findings(match: TechniqueMatch): string[] {
  const text = exactText(match.combinations[0]);
  if (isEqualThroughout(match)) return [`These bits: ${text}.`, ...equalsText(match)];
  const lse = match.lse === null ? '' : `, ${match.lse.equal} of ${match.lse.rows} LSEs`;
  const isExplained = significantLikeness(match) > 0;
  return [
    isExplained
      ? 'No combination gives these bits.'
      : 'No combination gives these bits, nor explains what is misrounded better than chance.',
    `Nearest: ${text}, with ${match.equal} of ${match.elements} ` +
      `elements, ${match.equalMisrounded} of ${match.misrounded} misrounded${lse} equal.`,
    ...equalsText(match),
  ];
}

function searchLines(search: TechniqueSearch, columns: number): string[] {
  const { candidate, combinations, rows, totalRows, matches, alike } = search;
  const sample = rows === totalRows ? 'all' : `${rows} of ${totalRows}`;
  const sentences = [
    `${nameOf(candidate)} with each technique emulated or exact: ${combinations} combinations, ${sample} rows`,
    ...findings(search.nearest),
    ...alike.map(
      (other) => `The same bits: ${nameOf(other.candidate)}, ${exactText(other.exact)}.`,
    ),
  ];
  const tableRows = matches.map((match) => [
    match.combinations[0].length === 0 ? 'nothing' : match.combinations[0].join(' '),
    String(match.combinations.length),
    ...measureCells(match),
  ]);
  return [
    '',
    ...sentences.flatMap((sentence) => wrapAtSpaces(sentence, columns)),
    ...fittedTable([['exact', 'combinations', ...headsOf(matches)], ...tableRows], columns),
  ];
}

/**
 * The kernels that an output resembles, as plain text: a line for each candidate, the likeliest first, then
 * for each searched kernel the findings and a line for each class of combinations that make the same bits,
 * by the one with the fewest exact techniques. Where a table is wider than the columns allow, numbers stand
 * below names.
 * @param columns that no line but one long name exceeds; default as many as there need be
 */
export function renderIdentification(identification: Identification, columns = Infinity): string {
  const { elements, misrounded, matches, skipped, searches } = identification;
  return [
    ...wrapAtSpaces(
      `${elements} elements, ${misrounded} not correctly rounded. Likeness: of the elements that either does not ` +
        'round correctly, the share that is equal. Correlations: of the residuals from the oracle, and from the ' +
        'rounded oracle',
      Math.min(columns, proseColumns),
    ),
    ...fittedTable(
      [
        ['', ...headsOf(matches)],
        ...matches.map((match) => [nameOf(match), ...measureCells(match)]),
      ],
      columns,
    ),
    ...skipped.flatMap((candidate) =>
      wrapAtSpaces(`${nameOf(candidate)}: ${candidate.reason}`, columns - 2).map(
        (line) => `  ${line}`,
      ),
    ),
    ...searches.flatMap((search) => searchLines(search, columns)),
  ].join('\n');
}
