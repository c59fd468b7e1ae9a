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
