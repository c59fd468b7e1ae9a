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

/** What a terminal shows of a line, unless its user has made it wider. */
const usualWidth = 80;

/** As `layOut`, but in parts below one another where the columns are too many for a terminal. */
function layOutInParts(
  rows: readonly (readonly string[])[],
  isLeft: (column: number) => boolean,
): string[] {
  const lines = layOut(rows, isLeft);
  const columns = Math.max(...rows.map((row) => row.length));
  if (columns <= 2 || lines.every((line) => [...line].length <= usualWidth)) return lines;
  const upTo = (end: number) =>
    layOut(
      rows.map((row) => row.slice(0, end)),
      isLeft,
    );
  let fitting = columns - 1;
  while (fitting > 2 && upTo(fitting).some((line) => [...line].length > usualWidth)) fitting--;
  const rest = rows.map(([name = '', ...cells]) => [name, ...cells.slice(fitting - 1)]);
  return [...upTo(fitting), ...layOutInParts(rest, isLeft)];
}

/**
 * Rows of a name and numbers as lines: the first column left-aligned, the others right-aligned. A table
 * of more than 80 columns of text goes on below itself, with the names again before the numbers that are
 * left.
 */
export function alignColumns(rows: readonly (readonly string[])[]): string[] {
  return layOutInParts(rows, (column) => column === 0);
}

/** Rows of texts as lines, as `alignColumns` but every column left-aligned. */
export function alignTextColumns(rows: readonly (readonly string[])[]): string[] {
  return layOutInParts(rows, () => true);
}
