import { RequestError } from '../src/request-error.js';

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

/** What each size may be when no constraint says otherwise, and the least it can ever be. */
const defaults: Readonly<Record<SizeName, FullSizeRange & { readonly least: number }>> = {
  batch: { min: 1, max: 2, least: 1 },
  kvHeads: { min: 1, max: 2, least: 1 },
  groupSize: { min: 1, max: 3, least: 1 },
  queries: { min: 1, max: 129, least: 0 },
  keys: { min: 1, max: 257, least: 0 },
  qkDim: { min: 1, max: 32, least: 1 },
  vDim: { min: 1, max: 32, least: 1 },
};

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
 * range has one, else anywhere. `nextInt` draws a whole number between two, both included.
 */
export function drawSize(
  { min, max }: FullSizeRange,
  nextInt: (min: number, max: number) => number,
): number {
  const choice = nextInt(0, 3);
  if (choice >= 2) return nextInt(min, Math.min(max, min + 7));
  const edges = tileEdges.filter((edge) => min <= edge && edge <= max);
  if (choice === 1 && edges.length > 0) return edges[nextInt(0, edges.length - 1)];
  return nextInt(min, max);
}
