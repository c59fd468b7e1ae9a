/** Lays out rows of cells two spaces apart and indented by two: the first column left, others right. */
export function alignColumns(rows: readonly (readonly string[])[]): string[] {
  const columns = Math.max(...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  );
  return rows.map((row) => {
    const cells = row.map((text, column) =>
      column === 0 ? text.padEnd(widths[column]) : text.padStart(widths[column]),
    );
    return `  ${cells.join('  ')}`.trimEnd();
  });
}
