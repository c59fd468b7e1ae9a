import type { MeasuredProblems } from '../trade-offs/measured-problems.js';
import { counted } from './numbers.js';
import { alignTextColumns } from '../../align-columns.js';
import { wrapped } from './wrapped.js';
import { terminalWidth } from './terminal-width.js';

/** How wide sentences are set. */
const columns = 100;

/** Notes, each a paragraph. */
export function notesText(notes: readonly string[]): string[] {
  return notes.flatMap((note) => [...wrapped(note, columns), '']);
}

/** The title of a trade-off, what it was measured on and what the model's bits rest on. */
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
          `${counted(queries, 'query', 'queries')} × ${counted(keys, 'key')}, head dimension ${dim}, seed ${seed}`,
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

/** What the figures say, a bullet each. */
export function summaryText(summary: readonly string[]): string[] {
  const indents = ['  - ', '    '] as const;
  const lines = summary.flatMap((sentence) =>
    wrapped(sentence, columns - indents[0].length).map(
      (line, i) => `${indents[Math.min(i, 1)]}${line}`,
    ),
  );
  return ['What this says', '', ...lines, ''];
}
