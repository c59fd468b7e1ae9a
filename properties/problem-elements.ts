import type { RegimeChoice } from './regime-choice.js';
import { drawSize, sizeNames, type SizeName, type Sizes } from './size-range.js';

type NextInt = (min: number, max: number) => number;

/** batch · query heads · queries · keys · the larger head dimension: what a problem costs to solve. */
export function problemElements(sizes: Sizes): number {
  const { batch, kvHeads, groupSize, queries, keys, qkDim, vDim } = sizes;
  return batch * kvHeads * groupSize * queries * keys * Math.max(qkDim, vDim);
}

/** The fewest elements that a choice allows. */
export function fewestElements({ sizes, dims }: RegimeChoice): number {
  const least = Object.fromEntries(sizeNames.map((name) => [name, sizes[name].min])) as Sizes;
  return problemElements(dims === null ? least : { ...least, qkDim: dims[0], vDim: dims[0] });
}

/** The order in which sizes give way: a kernel's loops matter more than how often they are run. */
const givingWay: readonly SizeName[] = [
  ...(['batch', 'kvHeads', 'groupSize', 'queries', 'vDim', 'qkDim', 'keys'] as const),
];

/** What one size must be for all to stay within the most, other sizes as they are. */
function limitOf(name: SizeName, sizes: Sizes, most: number): number {
  const perUnit = problemElements({
    ...sizes,
    ...(name === 'qkDim' || name === 'vDim' ? { qkDim: 1, vDim: 1 } : { [name]: 1 }),
  });
  return Math.floor(most / perUnit);
}

/**
 * Sizes with at most so many elements, drawn anew where there are more and the choice allows fewer.
 * Sizes at their minimum stay, even above the most.
 */
export function withinElements(
  drawn: Sizes,
  choice: RegimeChoice,
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
