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

/** Rows of a name and numbers as lines: the first column left-aligned, the others right-aligned. */
export function alignColumns(rows: readonly (readonly string[])[]): string[] {
  return layOut(rows, (column) => column === 0);
}

/** Rows of texts as lines: every column left-aligned. */
export function alignTextColumns(rows: readonly (readonly string[])[]): string[] {
  return layOut(rows, () => true);
}
