import { formats, type FormatName } from '../src/formats/index.js';
import { RequestError } from '../src/request-error.js';
import {
  fullSizeRange,
  sizeNames,
  type FullSizeRange,
  type SizeName,
  type SizeRange,
} from './size-range.js';
import { fewestElements } from './problem-elements.js';
import { regimeChoice, type ProblemSpace, type RegimeChoice } from './regime-choice.js';
import { regimeNames, type RegimeName } from './regimes/index.js';
import { scaleKinds, type ScaleKind } from './scale-kind.js';
import { alignedRange, alignedUp, type SizeMultiples } from './size-multiples.js';
import { resolveTiling, type Tiling } from './tiling.js';

export { scaleKinds, type ScaleKind };

/** Kinds of special values that can be planted. */
export const specialKinds = ['nan', 'infinity'] as const;
/** One of {@link specialKinds}. */
export type SpecialKind = (typeof specialKinds)[number];

/** What problems to make. What is left out is free. */
export interface ProblemConstraints {
  /** Formats of Q, K and V, which share one; default all seven. */
  readonly formats?: readonly FormatName[] | undefined;
  /** Default 1 to 2. */
  readonly batch?: SizeRange | undefined;
  /** Default 1 to 2. */
  readonly kvHeads?: SizeRange | undefined;
  /** Query heads per kv head; default 1 to 3. */
  readonly groupSize?: SizeRange | undefined;
  /** seqlen_q; default 1 to 129. A minimum of 0 is allowed. */
  readonly queries?: SizeRange | undefined;
  /** seqlen_k; default 1 to 257. A minimum of 0 is allowed. */
  readonly keys?: SizeRange | undefined;
  /** Default 1 to 32. */
  readonly qkDim?: SizeRange | undefined;
  /** Default 1 to 32. */
  readonly vDim?: SizeRange | undefined;
  /**
   * Head dimensions that there may be, alike for Q, K and V, such as 64 and 128; default any. Ranges
   * of qkDim and vDim that are given too hold as well.
   */
  readonly dims?: readonly number[] | undefined;
  /** The only numbers of query heads that share a kv head, such as 1, 4 and 8; default any. */
  readonly groupSizes?: readonly number[] | undefined;
  /** Numbers that sizes are whole multiples of, as in `{ keys: 64 }`; default 1. */
  readonly multiples?: SizeMultiples | undefined;
  /**
   * The most that batch · query heads · queries · keys · head dimension may come to. Default 2^21, or
   * the least that the sizes allow where that is more.
   */
  readonly maximumElements?: number | undefined;
  /**
   * What problems look like, and look like still when shrunken; default every regime. Those that the
   * other constraints leave no room for are not drawn.
   */
  readonly regimes?: readonly RegimeName[] | undefined;
  /** Blocks of keys and the threshold that the regimes aim at; default those of FlashAttention-4. */
  readonly tiling?: Partial<Tiling> | undefined;
  /** true: all problems are causal; false: none; default: some. */
  readonly causal?: boolean | undefined;
  /** true: all problems have a sliding window; false: none; default: some. */
  readonly window?: boolean | undefined;
  /** true: all problems have a softcap; false: none; default: some. */
  readonly softcap?: boolean | undefined;
  /** Default every kind. */
  readonly scales?: readonly ScaleKind[] | undefined;
  /**
   * Special values that may be planted in Q, K and V; default none. e4m3 has no infinity, so there
   * only NaNs are planted.
   */
  readonly specialValues?: readonly SpecialKind[] | undefined;
  /** Whether the masks may leave a query without any key; default true. */
  readonly emptyRows?: boolean | undefined;
}

/** Constraints with every default filled in. */
export interface ResolvedConstraints extends ProblemSpace {
  /** What is left of each regime that there is room for; at least one. */
  readonly choices: readonly RegimeChoice[];
  readonly maximumElements: number;
  readonly tiling: Tiling;
  readonly causal: boolean | undefined;
  readonly window: boolean | undefined;
  readonly softcap: boolean | undefined;
  readonly specialValues: readonly SpecialKind[];
  readonly emptyRows: boolean;
}

/** What keeps runs of a property around 10 ms. */
const usualElements = 2 ** 21;

function choices<T extends string>(
  name: string,
  given: readonly T[] | undefined,
  known: readonly T[],
  usual: readonly T[] = known,
): readonly T[] {
  const chosen = given ?? usual;
  for (const choice of chosen)
    if (!known.includes(choice))
      throw new RequestError(
        `constraint ${name} has ${JSON.stringify(choice)}; choose from ${known.join(', ')}`,
      );
  if (chosen.length === 0 && usual.length > 0)
    throw new RequestError(
      `constraint ${name} is empty; leave it out, or choose from ${known.join(', ')}`,
    );
  return chosen;
}

const knownConstraints: readonly string[] = [
  ...sizeNames,
  ...[
    'dims',
    'groupSizes',
    'multiples',
    'maximumElements',
    'tiling',
    'formats',
    'regimes',
    'causal',
    'window',
    'softcap',
  ],
  ...['scales', 'specialValues', 'emptyRows'],
];

/** @throws RequestError for a size that there is not, and for multiples of none */
function resolveMultiples(multiples: SizeMultiples = {}): SizeMultiples {
  for (const [name, multiple] of Object.entries(multiples)) {
    if (!sizeNames.some((known) => known === name))
      throw new RequestError(
        `constraint multiples has no size ${JSON.stringify(name)}; choose from ${sizeNames.join(', ')}`,
      );
    if (!(Number.isSafeInteger(multiple) && multiple >= 1))
      throw new RequestError(
        `constraint multiples.${name} is ${multiple}; give a whole number from 1`,
      );
  }
  return multiples;
}

/** The multiples in a range; one that the user left open at its end reaches the first of them. */
function multiplesWithin(
  name: SizeName,
  given: SizeRange = {},
  multiple: number | undefined,
): FullSizeRange {
  const full = fullSizeRange(name, given);
  const { min, max } = alignedRange(full, multiple);
  if (min <= max) return { min, max };
  if (given.max === undefined) return { min, max: min };
  throw new RequestError(
    `constraint multiples.${name} is ${multiple}, of which none lies within ${full.min} to ${full.max}; widen ${name}`,
  );
}

/** The group sizes in the range that is given, ascending. */
function resolveGroupSizes({
  groupSizes,
  groupSize = {},
}: ProblemConstraints): readonly number[] | null {
  if (groupSizes === undefined) return null;
  for (const size of groupSizes)
    if (!(Number.isSafeInteger(size) && size >= 1))
      throw new RequestError(`constraint groupSizes has ${size}; give whole numbers from 1`);
  const { min = 1, max = Infinity } = groupSize;
  const within = [...new Set(groupSizes)].filter((size) => min <= size && size <= max);
  if (within.length === 0)
    throw new RequestError(
      'constraint groupSizes has none of the numbers that groupSize allows; widen it',
    );
  return within.sort((a, b) => a - b);
}

/** The dimensions in the ranges that are given, ascending. */
function resolveDims({ dims, ...constraints }: ProblemConstraints): readonly number[] | null {
  if (dims === undefined) return null;
  for (const dim of dims)
    if (!(Number.isSafeInteger(dim) && dim >= 1))
      throw new RequestError(`constraint dims has ${dim}; give whole numbers from 1`);
  const ranges = (['qkDim', 'vDim'] as const).map((name) => constraints[name] ?? {});
  const within = [...new Set(dims)].filter((dim) =>
    ranges.every(({ min = 1, max = Infinity }, i) => {
      const multiple = constraints.multiples?.[i === 0 ? 'qkDim' : 'vDim'] ?? 1;
      return min <= dim && dim <= max && dim % multiple === 0;
    }),
  );
  if (within.length === 0)
    throw new RequestError(
      dims.length === 0
        ? 'constraint dims is empty; leave it out, or give some head dimensions'
        : `constraint dims has none of the numbers that qkDim and vDim allow; widen them`,
    );
  return within.sort((a, b) => a - b);
}

/** What is left of each regime that there is room for. */
function resolveRegimes(
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

/**
 * The regimes that constraints leave room for, among those that they name.
 * @throws RequestError as `attentionProblem` does
 */
export function fittingRegimes(constraints: ProblemConstraints = {}): readonly RegimeName[] {
  return resolveConstraints(constraints).choices.map(({ name }) => name);
}

/**
 * Constraints with their defaults, checked.
 * @throws RequestError for an unknown constraint, format, regime or kind, an empty list, a size range
 * that holds nothing, a tiling that is none, and constraints that no problem can meet together
 */
export function resolveConstraints(constraints: ProblemConstraints): ResolvedConstraints {
  for (const name of Object.keys(constraints))
    if (!knownConstraints.includes(name))
      throw new RequestError(
        `there is no constraint ${JSON.stringify(name)}; choose from ${knownConstraints.join(', ')}`,
      );
  const known = Object.keys(formats) as FormatName[];
  const multiples = resolveMultiples(constraints.multiples);
  const groupSizes = resolveGroupSizes(constraints);
  const within = Object.fromEntries(
    sizeNames.map((name) => [name, multiplesWithin(name, constraints[name], multiples[name])]),
  ) as Record<SizeName, FullSizeRange>;
  const given =
    groupSizes === null
      ? within
      : { ...within, groupSize: { min: groupSizes[0], max: groupSizes.at(-1)! } };
  const { queries, keys } = given;
  const emptyRows = constraints.emptyRows ?? true;
  if (!emptyRows && keys.max === 0)
    throw new RequestError(
      'constraint emptyRows is false but keys.max is 0; allow empty rows, or some keys',
    );
  const fewestKeys = alignedUp(Math.max(keys.min, 1), multiples.keys);
  const sizes = emptyRows ? given : { ...given, keys: { ...keys, min: fewestKeys } };
  const { maximumElements = usualElements } = constraints;
  if (!(maximumElements >= 0))
    throw new RequestError(
      `constraint maximumElements is ${maximumElements}; give a number from 0, or leave it out`,
    );
  const tiling = resolveTiling(constraints.tiling);
  const space: ProblemSpace = {
    formats: choices('formats', constraints.formats, known),
    sizes,
    dims: resolveDims(constraints),
    multiples,
    groupSizes,
    scales: choices('scales', constraints.scales, scaleKinds),
  };
  const names = choices('regimes', constraints.regimes, regimeNames);
  const resolved: ResolvedConstraints = {
    ...space,
    choices: resolveRegimes(names, space, constraints, tiling),
    maximumElements,
    tiling,
    causal: constraints.causal,
    window: constraints.window,
    softcap: constraints.softcap,
    specialValues: choices('specialValues', constraints.specialValues, specialKinds, []),
    emptyRows,
  };
  if (!resolved.emptyRows && resolved.causal === true && queries.min > keys.max)
    throw new RequestError(
      `constraint emptyRows is false and causal true, but queries.min ${queries.min} exceeds keys.max ${keys.max}; a causal problem with more queries than keys has empty rows`,
    );
  if (
    resolved.specialValues.join() === 'infinity' &&
    resolved.formats.every((name) => formats[name].specials === 'fn')
  )
    throw new RequestError(
      `constraint specialValues asks for infinities but ${resolved.formats.join(', ')} has none; add a format that has, or ask for nan`,
    );
  return resolved;
}
