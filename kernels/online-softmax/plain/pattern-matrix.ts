import type { InputPatterns } from '../units.js';

/** A matrix of bit patterns with rows of `columns`, with zeros to the right and below. */
export function padded<Patterns extends InputPatterns>(
  source: Patterns,
  columns: number,
  size: { readonly rows: number; readonly columns: number },
): Patterns {
  const target = new (source.constructor as new (length: number) => Patterns)(
    size.rows * size.columns,
  );
  for (let row = 0; row * columns < source.length; row++)
    target.set(source.subarray(row * columns, (row + 1) * columns), row * size.columns);
  return target;
}

/** The transpose of a matrix [rows × columns]. */
export function transposed<Patterns extends InputPatterns>(
  source: Patterns,
  rows: number,
  columns: number,
): Patterns {
  return source.map((_, i) => source[(i % rows) * columns + Math.floor(i / rows)]) as Patterns;
}

/** Some columns of a matrix [rows × columns]. */
export function columnsOf<Patterns extends InputPatterns>(
  source: Patterns,
  columns: number,
  share: readonly number[],
): Patterns {
  const rows = source.length / columns;
  const target = new (source.constructor as new (length: number) => Patterns)(rows * share.length);
  for (let row = 0; row < rows; row++)
    share.forEach((column, j) => (target[row * share.length + j] = source[row * columns + column]));
  return target;
}
