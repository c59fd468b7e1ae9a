import { RequestError } from '../../src/request-error.js';
import type { ProblemConstraints, ProblemSpace, RegimeChoice } from './problem-constraints.js';
import { regimes, type RegimeName, type Tiling } from './regimes/index.js';
import {
  alignedDown,
  alignedUp,
  fewestElements,
  sizeNames,
  type FullSizeRange,
  type SizeName,
  type SizeRange,
} from './sizes.js';

/** The need of a regime that keeps it from being drawn, in words. */
interface UnmetNeed {
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
 * The allowed problems of a regime in a space, or the need that the space does not meet.
 * @param given the ranges of sizes as the user gave them
 */
function regimeChoice(
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
  const { features = [] } = regime;
  if (!features.every((kind) => space.features.includes(kind)))
    return { need: `features ${features.join(', ')}` };
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
  return {
    name,
    formats,
    scales,
    sizes,
    dims,
    multiples,
    groupSizes,
    features: space.features.filter((kind) => !(regime.without?.includes(kind) ?? false)),
    needs: features,
  };
}

/**
 * The allowed problems of each regime that there is room for; at least one.
 * @throws RequestError where there is room for none, with the need of each
 */
export function regimeChoices(
  names: readonly RegimeName[],
  space: ProblemSpace,
  constraints: ProblemConstraints,
  tiling: Tiling,
): readonly RegimeChoice[] {
  const { maximumElements = Infinity } = constraints;
  const needs: string[] = [];
  const left: RegimeChoice[] = [];
  for (const name of names) {
    const choice = regimeChoice(name, space, constraints, tiling);
    if ('need' in choice) needs.push(`${name} needs ${choice.need}`);
    else if (fewestElements(choice) > maximumElements)
      needs.push(`${name} needs maximumElements from ${fewestElements(choice)}`);
    else left.push(choice);
  }
  if (left.length === 0)
    throw new RequestError(
      `no regime fits the constraints: ${needs.join('; ')}; loosen one of these`,
    );
  return left;
}
