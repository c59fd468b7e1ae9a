import type { FormatName } from '../src/formats/index.js';
import { regimes, type RegimeName } from './regimes/index.js';
import type { ScaleKind } from './scale-kind.js';
import { alignedDown, alignedUp, type SizeChoices } from './size-multiples.js';
import { sizeNames, type FullSizeRange, type SizeName, type SizeRange } from './size-range.js';
import type { Tiling } from './tiling.js';

/** What constraints, with their defaults filled in, leave of problems. */
export interface ProblemSpace extends SizeChoices {
  readonly formats: readonly FormatName[];
  /** What Q·K and V may have as their one dimension, ascending; null for the ranges in `sizes`. */
  readonly dims: readonly number[] | null;
  readonly scales: readonly ScaleKind[];
}

/** What constraints leave of the problems of one regime. */
export interface RegimeChoice extends ProblemSpace {
  readonly name: RegimeName;
}

/** What keeps a regime from being drawn: what it needs, in words. */
export interface UnmetNeed {
  readonly need: string;
}

/** The part of a range that a regime can use; bounds that the user left open give way. */
function usableRange(
  { min, max }: FullSizeRange,
  given: SizeRange | undefined,
  needed: SizeRange,
  multiple: number | undefined,
): FullSizeRange {
  const least = alignedUp(Math.max(min, needed.min ?? min), multiple);
  const most = given?.max === undefined ? Math.max(max, least) : max;
  return { min: least, max: alignedDown(Math.min(most, needed.max ?? most), multiple) };
}

/**
 * What is left of the problems of a regime in a space, or what it needs and the space has not.
 * @param given the ranges of sizes as the user gave them
 */
export function regimeChoice(
  name: RegimeName,
  space: ProblemSpace,
  given: Readonly<Partial<Record<SizeName, SizeRange | undefined>>>,
  tiling: Tiling,
): RegimeChoice | UnmetNeed {
  const regime = regimes[name];
  const formats = space.formats.filter((format) => regime.formats?.includes(format) ?? true);
  if (formats.length === 0) return { need: `formats ${regime.formats!.join(', ')}` };
  const scales = space.scales.filter((kind) => regime.scales?.includes(kind) ?? true);
  if (scales.length === 0) return { need: `scales ${regime.scales!.join(', ')}` };
  const needed = regime.sizes?.(tiling) ?? {};
  const sizes = { ...space.sizes };
  for (const size of sizeNames) {
    sizes[size] = usableRange(
      space.sizes[size],
      given[size],
      needed[size] ?? {},
      space.multiples[size],
    );
    const { min = 0, max = Infinity } = needed[size] ?? {};
    if (sizes[size].min > sizes[size].max)
      return { need: `${size} from ${min}${max === Infinity ? '' : ` to ${max}`}` };
  }
  const { min: least = 0 } = needed.qkDim ?? {};
  const dims = space.dims?.filter((dim) => dim >= least) ?? null;
  if (dims?.length === 0) return { need: `dims from ${least}` };
  const { multiples, groupSizes } = space;
  return { name, formats, scales, sizes, dims, multiples, groupSizes };
}
