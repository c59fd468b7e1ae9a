import type { FunctionErrorProfile, InputRange, MeasuredProblems } from '../../../profile/index.js';
import { formatGroupedCount, formatDigits, formatPowerOfTwo } from '../../../words/index.js';
import { alignTextColumns, wrapAtSpaces } from '../../layout/index.js';

/** Number of columns of text that a profile takes. */
export const terminalWidth = 80;

/** A row with the range of inputs that were swept, if not all. */
function rangeRows({ from, to }: InputRange): string[][] {
  if (from === undefined && to === undefined) return [];
  return [['inputs', `only those from ${from ?? '-Infinity'} to ${to ?? 'Infinity'}`]];
}

/** The title, the evidence for the functions and the exact values, and the notes. */
export function headText(
  { title, range, functions, reference, notes }: FunctionErrorProfile,
  variable = 'x',
): string[] {
  const { formula, relativeError, certainty, absoluteCertainty } = reference;
  const exactness =
    relativeError === 0
      ? 'exact'
      : `in fp64, relative error below ${formatPowerOfTwo(relativeError)}`;
  const absolute =
    absoluteCertainty === null ? '' : `, ${formatDigits(absoluteCertainty, 2)} in absolute ones`;
  return [
    title,
    '',
    ...alignTextColumns(
      [
        ...functions.map(({ name, evidence }) => [name, evidence]),
        ['measured against', `${formula}, ${exactness}`],
        [
          'certainty',
          `${formatDigits(certainty, 2)} in relative errors${absolute}; in means 2^-40 of the mean magnitude more`,
        ],
        ['shares', `of fp32 numbers, each once, and of ${variable}, each number by its ulp`],
        ...rangeRows(range),
      ],
      terminalWidth,
    ),
    '',
    ...notes.flatMap((note) => [note, '']),
  ];
}

/** Width in which sentences are set. */
const columns = 100;

/** Notes, each a paragraph. */
export function notesText(notes: readonly string[]): string[] {
  return notes.flatMap((note) => [...wrapAtSpaces(note, columns), '']);
}

/** The title of a trade-off, its problems, and the evidence for the model's bits. */
export function tradeOffHeadText({
  title,
  problems,
  evidence,
}: {
  readonly title: string;
  readonly problems: MeasuredProblems;
  readonly evidence: readonly string[];
}): string[] {
  const { queries, keys, dim, seed, architecture, regimes } = problems;
  return [
    title,
    '',
    ...alignTextColumns(
      [
        [
          'problems',
          `${formatGroupedCount(queries, 'query', 'queries')} × ${formatGroupedCount(keys, 'key')}, head dimension ${dim}, seed ${seed}`,
        ],
        ['kernel', `FlashAttention-4's forward on ${architecture}, emulated bit for bit`],
        ...evidence.map((line) => ['', line]),
        ['measured against', 'exact attention; errors relative to an element are of its Σ p|v|'],
        ...regimes.map(({ name, description }) => [name, description]),
      ],
      terminalWidth,
    ),
    '',
  ];
}

/** The conclusions from the figures, a bullet each. */
export function summaryText(summary: readonly string[]): string[] {
  const indents = ['  - ', '    '] as const;
  const lines = summary.flatMap((sentence) =>
    wrapAtSpaces(sentence, columns - indents[0].length).map(
      (line, i) => `${indents[Math.min(i, 1)]}${line}`,
    ),
  );
  return ['What this says', '', ...lines, ''];
}
