import { displayWidth } from '../../words/index.js';
import { wrapText } from './wrap-text.js';

/** What a cell is, for the painter; a cell without a tone is left as it is. */
export type Tone = 'heading' | 'failure' | 'success';

/** One cell of a table: a plain text, or one with a tone. */
export type Cell = string | { readonly text: string; readonly tone: Tone };

/** A text across all columns, indented by as many spaces. */
export interface SpanningRow {
  readonly span: string;
  readonly indent: number;
}

/** One row of a table: its cells, or a text across all of them. */
export type TableRow = readonly Cell[] | SpanningRow;

/** Whether a row is a text across all columns. */
export function isSpanning(row: TableRow): row is SpanningRow {
  return 'span' in row;
}

/** The rows that have cells. */
export function cellRows(rows: readonly TableRow[]): (readonly Cell[])[] {
  return rows.flatMap((row) => (isSpanning(row) ? [] : [row]));
}

/** Sets a text in the look of a tone; must not change what is visible. */
export type Painter = (tone: Tone, text: string) => string;

export interface TableOptions {
  /** Per column; what is missing is left-aligned. */
  readonly alignments: readonly ('left' | 'right')[];
  /** Terminal columns that the table may take. */
  readonly width: number;
  readonly paint: Painter;
}

const gap = '  ';

function textOf(cell: Cell): string {
  return typeof cell === 'string' ? cell : cell.text;
}

function spaces(text: string, width: number): string {
  return ' '.repeat(Math.max(0, width - displayWidth(text)));
}

/**
 * Lays out rows of plain cells in columns two spaces apart. The last column is left-aligned and wraps
 * within what the others leave; they never wrap. Cells missing at the end of a row are empty, and the
 * columns before the last are as wide as their widest cell. Spanning rows wrap within the whole width.
 */
export function layoutTable(rows: readonly TableRow[], options: TableOptions): string[] {
  const { alignments, width, paint } = options;
  const ofCells = cellRows(rows);
  const last = Math.max(...ofCells.map((row) => row.length)) - 1;
  const widths = Array.from({ length: last }, (_, column) =>
    Math.max(...ofCells.map((row) => displayWidth(textOf(row[column] ?? '')))),
  );
  const before = widths.reduce((sum, size) => sum + size + gap.length, 0);
  const painted = (cell: Cell, text: string) =>
    typeof cell === 'string' ? text : paint(cell.tone, text);
  return rows.flatMap((row) => {
    if (isSpanning(row))
      return wrapText(row.span, width - row.indent).map((line) => ' '.repeat(row.indent) + line);
    const fixed = widths.map((size, column) => {
      const cell = row[column] ?? '';
      const text = textOf(cell);
      const [left, right] =
        alignments[column] === 'right' ? [spaces(text, size), ''] : ['', spaces(text, size)];
      return left + painted(cell, text) + right + gap;
    });
    const cell = row[last] ?? '';
    return wrapText(textOf(cell), width - before).map((line, index) => {
      const start = index === 0 ? fixed.join('') : ' '.repeat(before);
      return line === '' ? start.trimEnd() : start + painted(cell, line);
    });
  });
}

/**
 * Lays out rows of cells in columns two spaces apart, indented by two and each as wide as its widest
 * cell in code points. Rows may be of different lengths.
 */
function layOut(
  rows: readonly (readonly string[])[],
  isLeft: (column: number) => boolean,
): string[] {
  const length = (text: string): number => [...text].length;
  const columns = Math.max(...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => length(row[column] ?? ''))),
  );
  const pad = (text: string, column: number): string => {
    const space = ' '.repeat(widths[column] - length(text));
    return isLeft(column) ? text + space : space + text;
  };
  return rows.map((row) => `  ${row.map(pad).join('  ')}`.trimEnd());
}

/** As `layOut`, but in parts below one another where a line would be wider than `width`. */
function layOutInParts(
  rows: readonly (readonly string[])[],
  isLeft: (column: number) => boolean,
  width: number,
): string[] {
  const lines = layOut(rows, isLeft);
  const columns = Math.max(...rows.map((row) => row.length));
  if (columns <= 2 || lines.every((line) => [...line].length <= width)) return lines;
  const upTo = (end: number) =>
    layOut(
      rows.map((row) => row.slice(0, end)),
      isLeft,
    );
  let fitting = columns - 1;
  while (fitting > 2 && upTo(fitting).some((line) => [...line].length > width)) fitting--;
  const rest = rows.map(([name = '', ...cells]) => [name, ...cells.slice(fitting - 1)]);
  return [...upTo(fitting), ...layOutInParts(rest, isLeft, width)];
}

/**
 * Rows of a name and numbers as lines: the first column left-aligned, the others right-aligned. A table
 * of more than `width` columns of text goes on below itself, with the names again before the numbers
 * that are left.
 */
export function alignColumns(
  rows: readonly (readonly string[])[],
  width = Number.POSITIVE_INFINITY,
): string[] {
  return layOutInParts(rows, (column) => column === 0, width);
}

/** Rows of texts as lines, as `alignColumns` but every column left-aligned. */
export function alignTextColumns(
  rows: readonly (readonly string[])[],
  width = Number.POSITIVE_INFINITY,
): string[] {
  return layOutInParts(rows, () => true, width);
}
