import { displayWidth } from '../../words/index.js';
import { wrapText } from './wrap-text.js';

/** The kind of a cell, for the painter; a cell without a tone is left as it is. */
export type Tone = 'heading' | 'failure' | 'success';

/** One cell of a table: a plain text, or one with a tone. */
export type Cell = string | { readonly text: string; readonly tone: Tone };

/** A text across all columns, with its indentation in spaces. */
interface SpanningRow {
  readonly span: string;
  readonly indent: number;
}

/** One row of a table: its cells, or a text across all of them. */
export type TableRow = readonly Cell[] | SpanningRow;

/** A table with its heading in the first cell of the first row; column 0 is left-aligned. */
export interface Section {
  readonly rows: readonly TableRow[];
  /** Number of columns of numbers, from column 1 on, aligned to the right. */
  readonly numberColumns: number;
}

/** A cell that heads a table or a part of it. */
export function heading(text: string): Cell {
  return { text, tone: 'heading' };
}

/** Whether a row is a text across all columns. */
export function isSpanning(row: TableRow): row is SpanningRow {
  return 'span' in row;
}

/** The rows that have cells. */
export function cellRows(rows: readonly TableRow[]): (readonly Cell[])[] {
  return rows.flatMap((row) => (isSpanning(row) ? [] : [row]));
}

/** A cell's text; the empty string for a cell that a row lacks. */
export function cellText(cell: Cell | undefined): string {
  return cell === undefined ? '' : typeof cell === 'string' ? cell : cell.text;
}

/** Sets a text in the style of a tone; must not change the visible characters. */
export type Painter = (tone: Tone, text: string) => string;

/** The side of a column on which its texts stand. */
export type Alignment = 'left' | 'right';

/** The layout of a table with a last column of prose. */
interface TableOptions {
  /** Alignments per column; missing ones are left. */
  readonly alignments: readonly Alignment[];
  /** Terminal columns that the table may take. */
  readonly width: number;
  readonly paint: Painter;
}

/** Text between two columns. */
const gap = '  ';

/** The width of each of the columns: that of its widest cell, in terminal columns. */
function columnWidths(rows: readonly (readonly Cell[])[], columns: number): number[] {
  return Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => displayWidth(cellText(row[column])))),
  );
}

/** The spaces before and after a text that pad it to a width. */
function padding(
  text: string,
  width: number,
  alignment: Alignment = 'left',
): readonly [before: string, after: string] {
  const spaces = ' '.repeat(Math.max(0, width - displayWidth(text)));
  return alignment === 'right' ? [spaces, ''] : ['', spaces];
}

/**
 * Lays out rows of texts in columns two spaces apart, each as wide as its widest cell. Rows may be of
 * different lengths; spaces at a line's end are kept.
 * @param alignmentOf by column
 */
export function layoutColumns(
  rows: readonly (readonly string[])[],
  alignmentOf: (column: number) => Alignment,
): string[] {
  const widths = columnWidths(rows, Math.max(...rows.map((row) => row.length)));
  return rows.map((row) =>
    row
      .map((text, column) => {
        const [before, after] = padding(text, widths[column], alignmentOf(column));
        return before + text + after;
      })
      .join(gap),
  );
}

/** Lays out columns indented by two; where a line would be wider than `width`, in parts below one another. */
function layoutInParts(
  rows: readonly (readonly string[])[],
  alignmentOf: (column: number) => Alignment,
  width: number,
): string[] {
  const upTo = (end: number) =>
    layoutColumns(
      rows.map((row) => row.slice(0, end)),
      alignmentOf,
    ).map((line) => `  ${line}`.trimEnd());
  const fits = (line: string) => displayWidth(line) <= width;
  const columns = Math.max(...rows.map((row) => row.length));
  const lines = upTo(columns);
  if (columns <= 2 || lines.every(fits)) return lines;
  let fitting = columns - 1;
  while (fitting > 2 && !upTo(fitting).every(fits)) fitting--;
  const rest = rows.map(([name = '', ...cells]) => [name, ...cells.slice(fitting - 1)]);
  return [...upTo(fitting), ...layoutInParts(rest, alignmentOf, width)];
}

/**
 * Rows of a name and numbers as lines, indented by two: the first column left-aligned, the others
 * right-aligned. A table of more than `width` columns of text continues below, with the names repeated
 * before the remaining numbers.
 */
export function alignColumns(
  rows: readonly (readonly string[])[],
  width = Number.POSITIVE_INFINITY,
): string[] {
  return layoutInParts(rows, (column) => (column === 0 ? 'left' : 'right'), width);
}

/** Rows of texts as lines, like `alignColumns` but with every column left-aligned. */
export function alignTextColumns(
  rows: readonly (readonly string[])[],
  width = Number.POSITIVE_INFINITY,
): string[] {
  return layoutInParts(rows, () => 'left', width);
}

/**
 * Lays out rows of plain cells in columns two spaces apart. The last column is left-aligned and wraps
 * within the remaining width; the others never wrap. Cells missing at the end of a row are empty, and
 * the columns before the last are as wide as their widest cell. Spanning rows wrap within the whole
 * width.
 */
export function layoutTable(rows: readonly TableRow[], options: TableOptions): string[] {
  const { alignments, width, paint } = options;
  const ofCells = cellRows(rows);
  const last = Math.max(...ofCells.map((row) => row.length)) - 1;
  const widths = columnWidths(ofCells, last);
  const before = widths.reduce((sum, size) => sum + size + gap.length, 0);
  const painted = (cell: Cell, text: string) =>
    typeof cell === 'string' ? text : paint(cell.tone, text);
  return rows.flatMap((row) => {
    if (isSpanning(row))
      return wrapText(row.span, width - row.indent).map((line) => ' '.repeat(row.indent) + line);
    const fixed = widths.map((size, column) => {
      const cell = row[column] ?? '';
      const text = cellText(cell);
      const [left, right] = padding(text, size, alignments[column]);
      return left + painted(cell, text) + right + gap;
    });
    const cell = row[last] ?? '';
    return wrapText(cellText(cell), width - before).map((line, index) => {
      const start = index === 0 ? fixed.join('') : ' '.repeat(before);
      return line === '' ? start.trimEnd() : start + painted(cell, line);
    });
  });
}
