/** Lays out rows of cells in columns two spaces apart, indented by two: the first left, others right. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const columns = Math.max(...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, c) =>
    Math.max(...rows.map((row) => [...(row[c] ?? '')].length)),
  );
  const pad = (text: string, c: number): string => {
    const space = ' '.repeat(widths[c] - [...text].length);
    return c === 0 ? text + space : space + text;
  };
  return rows.map((row) => `  ${row.map(pad).join('  ')}`.trimEnd());
}

/** As `table`, but every column to the left. */
export function listing(rows: readonly (readonly string[])[]): string[] {
  const columns = Math.max(...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, c) =>
    Math.max(...rows.map((row) => [...(row[c] ?? '')].length)),
  );
  return rows.map((row) =>
    `  ${row.map((text, c) => text + ' '.repeat(widths[c] - [...text].length)).join('  ')}`.trimEnd(),
  );
}
