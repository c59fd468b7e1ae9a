/** The keys begin ≤ j < end. */
export interface KeyRange {
  readonly begin: number;
  readonly end: number;
}

/** Number of keys in some ranges. */
export function countKeys(ranges: readonly KeyRange[]): number {
  return ranges.reduce((count, { begin, end }) => count + end - begin, 0);
}

/** The range from the first key of some ranges to the end of their last; begin = end = 0 without any. */
export function spanOf(ranges: readonly KeyRange[]): KeyRange {
  return ranges.length === 0
    ? { begin: 0, end: 0 }
    : { begin: ranges[0].begin, end: ranges[ranges.length - 1].end };
}

/** The part of some ranges within begin ≤ key < end. */
export function clipRanges(
  ranges: readonly KeyRange[],
  begin: number,
  end: number,
): readonly KeyRange[] {
  return ranges
    .filter((range) => range.begin < end && begin < range.end)
    .map((range) => ({ begin: Math.max(range.begin, begin), end: Math.min(range.end, end) }));
}

/** Whether two lists of ranges are the same, range by range. */
export function areSameRanges(a: readonly KeyRange[], b: readonly KeyRange[]): boolean {
  return (
    a.length === b.length &&
    a.every(({ begin, end }, i) => begin === b[i].begin && end === b[i].end)
  );
}

/** Whether some ranges contain a key. */
export function hasKey(ranges: readonly KeyRange[], key: number): boolean {
  return ranges.some(({ begin, end }) => begin <= key && key < end);
}

/** The keys of some ranges, ascending. */
export function* keysOf(ranges: readonly KeyRange[]): Generator<number> {
  for (const { begin, end } of ranges) for (let key = begin; key < end; key++) yield key;
}

/** The keys common to two lists of ranges, each ascending and disjoint. */
export function commonRanges(a: readonly KeyRange[], b: readonly KeyRange[]): readonly KeyRange[] {
  if (a.length === 1) return clipRanges(b, a[0].begin, a[0].end);
  if (b.length === 1) return clipRanges(a, b[0].begin, b[0].end);
  const common: KeyRange[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    const begin = Math.max(a[i].begin, b[j].begin);
    const end = Math.min(a[i].end, b[j].end);
    if (begin < end) common.push({ begin, end });
    if (a[i].end < b[j].end) i++;
    else j++;
  }
  return common;
}

/** The keys of ranges in any order, as ascending ranges that neither meet nor touch. */
export function mergedRanges(ranges: readonly KeyRange[]): readonly KeyRange[] {
  const merged: { begin: number; end: number }[] = [];
  for (const { begin, end } of [...ranges].sort((a, b) => a.begin - b.begin)) {
    if (begin >= end) continue;
    const last = merged.at(-1);
    if (last !== undefined && begin <= last.end) last.end = Math.max(last.end, end);
    else merged.push({ begin, end });
  }
  return merged;
}
