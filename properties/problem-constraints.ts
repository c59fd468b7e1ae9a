import { formats, type FormatName } from '../src/formats/index.js';
import { RequestError } from '../src/request-error.js';
import {
  fullSizeRange,
  sizeNames,
  type FullSizeRange,
  type SizeName,
  type SizeRange,
} from './size-range.js';
import { regimeNames, type RegimeName } from './value-regimes.js';

/**
 * Kinds of scale: `default` is 1/√(qk dim), `negative` any negative number, `zero` 0, and `odd` any
 * positive number, such as a tuned 0.3 or a scale somebody forgot to divide.
 */
export const scaleKinds = ['default', 'negative', 'zero', 'odd'] as const;
export type ScaleKind = (typeof scaleKinds)[number];

/** Kinds of special values that can be planted. */
export const specialKinds = ['nan', 'infinity'] as const;
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
  /** seqlen_k; default 1 to 129. A minimum of 0 is allowed. */
  readonly keys?: SizeRange | undefined;
  /** Default 1 to 32. */
  readonly qkDim?: SizeRange | undefined;
  /** Default 1 to 32. */
  readonly vDim?: SizeRange | undefined;
  /** What values look like before shrinking; default every regime. */
  readonly regimes?: readonly RegimeName[] | undefined;
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
export interface ResolvedConstraints {
  readonly formats: readonly FormatName[];
  readonly sizes: Readonly<Record<SizeName, FullSizeRange>>;
  readonly regimes: readonly RegimeName[];
  readonly causal: boolean | undefined;
  readonly window: boolean | undefined;
  readonly softcap: boolean | undefined;
  readonly scales: readonly ScaleKind[];
  readonly specialValues: readonly SpecialKind[];
  readonly emptyRows: boolean;
}

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
  'formats',
  'regimes',
  'causal',
  'window',
  'softcap',
  'scales',
  'specialValues',
  'emptyRows',
];

/**
 * Constraints with their defaults, checked.
 * @throws RequestError for an unknown constraint, format, regime or kind, an empty list, a size range
 * that holds nothing, and constraints that no problem can meet together
 */
export function resolveConstraints(constraints: ProblemConstraints): ResolvedConstraints {
  for (const name of Object.keys(constraints))
    if (!knownConstraints.includes(name))
      throw new RequestError(
        `there is no constraint ${JSON.stringify(name)}; choose from ${knownConstraints.join(', ')}`,
      );
  const known = Object.keys(formats) as FormatName[];
  const given = Object.fromEntries(
    sizeNames.map((name) => [name, fullSizeRange(name, constraints[name])]),
  ) as Record<SizeName, FullSizeRange>;
  const { queries, keys } = given;
  const emptyRows = constraints.emptyRows ?? true;
  if (!emptyRows && keys.max === 0)
    throw new RequestError(
      'constraint emptyRows is false but keys.max is 0; allow empty rows, or some keys',
    );
  const sizes = emptyRows ? given : { ...given, keys: { ...keys, min: Math.max(keys.min, 1) } };
  const resolved: ResolvedConstraints = {
    formats: choices('formats', constraints.formats, known),
    sizes,
    regimes: choices('regimes', constraints.regimes, regimeNames),
    causal: constraints.causal,
    window: constraints.window,
    softcap: constraints.softcap,
    scales: choices('scales', constraints.scales, scaleKinds),
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
