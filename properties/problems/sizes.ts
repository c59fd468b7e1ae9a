import { RequestError } from '../../src/request-error.js';

/** The sizes that make up a problem's shapes; q heads are kvHeads · groupSize. */
export const sizeNames = [
  'batch',
  'kvHeads',
  'groupSize',
  'queries',
  'keys',
  'qkDim',
  'vDim',
] as const;
/** One of the sizes of a problem. */
export type SizeName = (typeof sizeNames)[number];

/** One number per size of a problem. */
export type Sizes = Readonly<Record<SizeName, number>>;

/** Bounds of one size, both included. */
export interface SizeRange {
  readonly min?: number | undefined;
  readonly max?: number | undefined;
}

/** A range with both bounds given. */
export interface FullSizeRange {
  readonly min: number;
  readonly max: number;
}

/** Default range of each size, and the least that it can ever be. */
const defaults: Readonly<Record<SizeName, FullSizeRange & { readonly least: number }>> = {
  batch: { min: 1, max: 2, least: 1 },
  kvHeads: { min: 1, max: 2, least: 1 },
  groupSize: { min: 1, max: 3, least: 1 },
  queries: { min: 1, max: 129, least: 0 },
  keys: { min: 1, max: 257, least: 0 },
  qkDim: { min: 1, max: 32, least: 1 },
  vDim: { min: 1, max: 32, least: 1 },
};

/** Draws a whole number from `min` to `max`, both included. */
type NextInt = (min: number, max: number) => number;

/** Sizes at which tiled kernels go wrong. */
const tileEdges: readonly number[] = [1, 63, 64, 65, 127, 128, 129, 255, 256, 257];

/**
 * The range of one size with its defaults filled in; a bound beyond the default range moves the other
 * bound along.
 * @throws RequestError when a bound is not a whole number, is too small, or min exceeds max
 */
export function fullSizeRange(name: SizeName, range: SizeRange = {}): FullSizeRange {
  const { least, ...usual } = defaults[name];
  for (const bound of ['min', 'max'] as const) {
    const value = range[bound];
    if (value !== undefined && !(Number.isSafeInteger(value) && value >= least))
      throw new RequestError(
        `constraint ${name}.${bound} is ${value}; give a whole number from ${least}`,
      );
  }
  const min = range.min ?? Math.min(usual.min, range.max ?? usual.min);
  const max = range.max ?? Math.max(usual.max, min);
  if (min > max)
    throw new RequestError(
      `constraint ${name} has min ${min} above max ${max}; swap or widen them`,
    );
  return { min, max };
}

/**
 * A size in the range: half the time near the minimum, a quarter of the time at a tile edge where the
 * range has one, else anywhere.
 */
export function drawSize({ min, max }: FullSizeRange, nextInt: NextInt): number {
  const choice = nextInt(0, 3);
  if (choice >= 2) return nextInt(min, Math.min(max, min + 7));
  const edges = tileEdges.filter((edge) => min <= edge && edge <= max);
  if (choice === 1 && edges.length > 0) return edges[nextInt(0, edges.length - 1)];
  return nextInt(min, max);
}

/** Divisors of sizes; 1 for those left out. */
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

/** The sizes that a problem may have. */
export interface SizeChoices {
  readonly sizes: Readonly<Record<SizeName, FullSizeRange>>;
  readonly multiples: SizeMultiples;
  /** The one dimension that Q·K and V may have, ascending; null for the ranges in `sizes`. */
  readonly dims: readonly number[] | null;
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

/** batch · query heads · queries · keys · the larger head dimension: the cost of solving a problem. */
function problemElements(sizes: Sizes): number {
  const { batch, kvHeads, groupSize, queries, keys, qkDim, vDim } = sizes;
  return batch * kvHeads * groupSize * queries * keys * Math.max(qkDim, vDim);
}

/** The fewest elements that the choices allow. */
export function fewestElements({ sizes, dims }: SizeChoices): number {
  const least = Object.fromEntries(sizeNames.map((name) => [name, sizes[name].min])) as Sizes;
  return problemElements(dims === null ? least : { ...least, qkDim: dims[0], vDim: dims[0] });
}

/** The order in which sizes give way: a kernel's loops matter more than the number of times they run. */
const givingWay: readonly SizeName[] = [
  'batch',
  'kvHeads',
  'groupSize',
  'queries',
  'vDim',
  'qkDim',
  'keys',
];

/** The largest value of one size that keeps the product within the most, other sizes as they are. */
function limitOf(name: SizeName, sizes: Sizes, most: number): number {
  const perUnit = problemElements({
    ...sizes,
    ...(name === 'qkDim' || name === 'vDim' ? { qkDim: 1, vDim: 1 } : { [name]: 1 }),
  });
  return Math.floor(most / perUnit);
}

/**
 * Sizes with at most `most` elements, drawn anew where there are more and the choices allow fewer.
 * Sizes at their minimum stay, even above the most.
 */
export function withinElements(
  drawn: Sizes,
  choice: SizeChoices,
  most: number,
  nextInt: NextInt,
): Sizes {
  let sizes = drawn;
  for (const name of givingWay) {
    if (problemElements(sizes) <= most) return sizes;
    const limit = limitOf(name, sizes, most);
    if (sizes[name] <= limit) continue;
    if (choice.dims !== null && (name === 'qkDim' || name === 'vDim')) {
      const dims = choice.dims.filter((dim) => dim <= limit);
      const dim = dims.length > 0 ? dims[nextInt(0, dims.length - 1)] : choice.dims[0];
      sizes = { ...sizes, qkDim: dim, vDim: dim };
      continue;
    }
    const { min } = choice.sizes[name];
    sizes = { ...sizes, [name]: drawSize({ min, max: Math.max(min, limit) }, nextInt) };
  }
  return sizes;
}
