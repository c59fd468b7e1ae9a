import { sizeNames, type FullSizeRange, type SizeName, type Sizes } from './size-range.js';

/** Numbers that sizes are whole multiples of; 1 for those left out. */
export type SizeMultiples = Readonly<Partial<Record<SizeName, number>>>;

/** The least multiple that is no less than a number. */
export function alignedUp(size: number, multiple = 1): number {
  return Math.ceil(size / multiple) * multiple;
}

/** The largest multiple that is no more than a number. */
export function alignedDown(size: number, multiple = 1): number {
  return Math.floor(size / multiple) * multiple;
}

/**
 * The multiples within a range, as a range with multiples at both ends; its minimum exceeds its maximum
 * where there is none.
 */
export function alignedRange({ min, max }: FullSizeRange, multiple = 1): FullSizeRange {
  return { min: alignedUp(min, multiple), max: alignedDown(max, multiple) };
}

/** What sizes may be, beside their ranges. */
export interface SizeChoices {
  readonly sizes: Readonly<Record<SizeName, FullSizeRange>>;
  readonly multiples: SizeMultiples;
  /** The only numbers of query heads that share a kv head, ascending; null for any. */
  readonly groupSizes: readonly number[] | null;
}

/**
 * Sizes moved to the nearest that may be: multiples, and one of the listed groups, the next smaller where
 * there is one. The ends of the ranges are multiples.
 */
export function alignedSizes(
  sizes: Sizes,
  { sizes: ranges, multiples, groupSizes }: SizeChoices,
): Sizes {
  const entries = sizeNames.map((name) => {
    const multiple = multiples[name] ?? 1;
    if (multiple === 1) return [name, sizes[name]] as const;
    const { min, max } = ranges[name];
    const nearest = Math.round(sizes[name] / multiple) * multiple;
    return [name, Math.max(min, Math.min(max, nearest))] as const;
  });
  const aligned = Object.fromEntries(entries) as Sizes;
  if (groupSizes === null) return aligned;
  const groupSize = groupSizes.filter((size) => size <= aligned.groupSize).at(-1) ?? groupSizes[0];
  return { ...aligned, groupSize };
}
