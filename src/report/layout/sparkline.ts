/** Block characters of one to eight eighths of a line (U+2581 to U+2588). */
const blocks = '▁▂▃▄▅▆▇█';

/** The mark for a value that is infinite or NaN. */
export const notFiniteMark = '×';

/**
 * Values as one line of block characters, one column each: a full block is `top`, by default the largest
 * value; a larger one is a full block too. The lowest block is any value above 0 and up to an eighth, so
 * that a single element shows; a value of 0 is a space, and so is null, which stands for no value.
 * Infinite values and NaN are ×.
 * @param values not below 0
 */
export function sparkline(values: readonly (number | null)[], top?: number): string {
  const finite = values.filter((value) => value !== null && Number.isFinite(value));
  const full = top ?? Math.max(0, ...(finite as number[]));
  return values
    .map((value) => {
      if (value === null || value === 0) return ' ';
      if (!Number.isFinite(value)) return notFiniteMark;
      const eighths = Math.ceil((value / full) * blocks.length);
      return blocks[Math.min(Math.max(eighths, 1), blocks.length) - 1];
    })
    .join('');
}

/**
 * Joins neighbours so that at most this many groups are left, all of the same size except the last:
 * each is the largest of its group; null where all are null, NaN where any is infinite or NaN.
 */
export function joinLargest(
  values: readonly (number | null)[],
  most: number,
): { readonly values: readonly (number | null)[]; readonly each: number } {
  const each = Math.max(1, Math.ceil(values.length / most));
  const joined = Array.from({ length: Math.ceil(values.length / each) }, (_, i) => {
    const group = values.slice(i * each, (i + 1) * each).filter((value) => value !== null);
    if (group.length === 0) return null;
    return group.every(Number.isFinite) ? Math.max(...group) : NaN;
  });
  return { values: joined, each };
}
