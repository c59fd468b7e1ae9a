import { featureKinds } from './features/feature-kinds.js';
import { formats, plainFormats } from '../../src/formats/index.js';
import { RequestError } from '../../src/request-error.js';
import { hasRoom } from './features/feature-kinds.js';
import {
  specialKinds,
  type ProblemConstraints,
  type ProblemSpace,
  type ResolvedConstraints,
} from './problem-constraints.js';
import { regimeChoices } from './regime-choice.js';
import {
  regimeNames,
  servedRegimeNames,
  resolveTiling,
  usualRegimeNames,
  scaleKinds,
  type RegimeName,
} from './regimes/index.js';
import {
  alignedRange,
  alignedUp,
  fullSizeRange,
  sizeNames,
  type FullSizeRange,
  type SizeMultiples,
  type SizeName,
  type SizeRange,
} from './sizes.js';

/** Product of sizes that keeps runs of a property around 10 ms. */
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
  'scales',
  'specialValues',
  'emptyRows',
  'features',
];

/** @throws RequestError for an unknown size, and for multiples of none */
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
 * that holds nothing, an invalid tiling, and constraints that no problem can meet together
 */
export function resolveConstraints(constraints: ProblemConstraints): ResolvedConstraints {
  for (const name of Object.keys(constraints))
    if (!knownConstraints.includes(name))
      throw new RequestError(
        `there is no constraint ${JSON.stringify(name)}; choose from ${knownConstraints.join(', ')}`,
      );
  const known = plainFormats;
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
    features: choices('features', constraints.features, featureKinds, []).filter((kind) =>
      hasRoom(kind, { ranges: constraints, multiples, groupSizes }),
    ),
  };
  const usual = space.features.length === 0 ? usualRegimeNames : servedRegimeNames;
  const names = choices('regimes', constraints.regimes, regimeNames, usual);
  const resolved: ResolvedConstraints = {
    ...space,
    choices: regimeChoices(names, space, constraints, tiling),
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
