import * as fc from 'fast-check';
import {
  admittedFeatures,
  drawnAt,
  gradientsDrawnAt,
  lawIds,
  promisedConstraints,
  type Law,
  type LawCase,
  type LawId,
} from '../laws/index.js';
import {
  alignedDown,
  alignedUp,
  type ProblemConstraints,
  type RegimeName,
  type SizeName,
  type FullSizeRange,
  type SpecialKind,
  type Tiling,
} from '../problems/index.js';
import { type ResolvedPromises, promisesOf } from './promises.js';

/** Special values are planted once in this many runs of laws that admit them. */
export const specialsOneIn = 8;

/** The source of the problems of a case. */
export interface DrawnFrom {
  readonly regime: RegimeName;
  /** Special values to plant. */
  readonly specials: readonly SpecialKind[];
  /** The tiling that regimes which depend on blocks of keys aim at. */
  readonly tiling: Tiling;
  /** The aspect of the problem that is as large as in production; null for none. */
  readonly production: ProductionAspect | null;
}

/**
 * The cases of a law: problems in a regime that the promises admit, and a choice; both shrink.
 * @throws RequestError for promises that leave no problem
 */
export function lawCases(
  law: Law,
  given: ResolvedPromises,
  { regime, specials, tiling, production }: DrawnFrom,
): fc.Arbitrary<LawCase> {
  const promises = promisesOf(law, given);
  const large = production === null ? null : productionSizes(promises, production);
  const admitted = { ...promises, features: admittedFeatures(law, promises) };
  const choice = fc.noBias(fc.integer({ min: 0, max: law.choices - 1 }));
  const constraints = {
    ...promisedConstraints(admitted),
    ...law.constraints,
    regimes: [regime],
    tiling,
  };
  if (law.ofGradients === true)
    return fc
      .record({ posed: gradientsDrawnAt(constraints, large), choice })
      .map(({ posed, choice: form }) => ({ ...posed, choice: form }));
  const problem =
    law.problems?.(admitted, large) ?? drawnAt({ ...constraints, specialValues: specials }, large);
  return fc.record({ problem, choice });
}

/** Interval, in turns, at which a law is tried at a size that kernels run at; turns of special values are others. */
const productionOneIn = 8;
const firstProduction = 4;

/** Head dimensions that kernels are written for. */
const productionDims: readonly number[] = [64, 96, 128, 192, 256];
/** Query heads that share a kv head in existing models. */
const productionGroups = { min: 4, max: 8 };
/** Lengths beyond the largest tile of queries, 256. */
const longQueries = { min: 257, max: 321 };

/**
 * Groups of sizes that are as large as in production, the others small, so that a turn takes about as
 * long as others: batches and groups of heads; head dimensions; queries and blocks of keys.
 */
const aspects = ['heads', 'dims', 'lengths'] as const;
type ProductionAspect = (typeof aspects)[number];

/**
 * The aspect of a law's turn that is as large as in production; null for most turns. Laws begin with
 * different aspects, so that all of them are seen at the first such turn.
 */
export function productionAspect(law: LawId, round: number): ProductionAspect | null {
  if (round % productionOneIn !== firstProduction) return null;
  const turn = Math.floor(round / productionOneIn) + lawIds.indexOf(law);
  return aspects[turn % aspects.length];
}

type Wanted = Readonly<Partial<Record<SizeName, FullSizeRange>>>;

function wantedSizes(aspect: ProductionAspect, blockKeys: number): Wanted {
  const one = { min: 1, max: 1 };
  const few = { batch: one, kvHeads: one, groupSize: one };
  const small = { min: 1, max: 8 };
  if (aspect === 'heads')
    return {
      batch: { min: 3, max: 4 },
      kvHeads: { min: 1, max: 2 },
      groupSize: productionGroups,
      queries: { min: 1, max: 4 },
      keys: { min: 1, max: 24 },
      qkDim: small,
      vDim: small,
    };
  if (aspect === 'dims') return { ...few, queries: small, keys: { min: 1, max: blockKeys + 8 } };
  return {
    ...few,
    queries: longQueries,
    qkDim: small,
    vDim: small,
    keys: { min: Math.max(1, blockKeys - 1), max: 3 * blockKeys + 1 },
  };
}

/** Dimensions of production that are promised; all promised ones if they are listed. */
function promisedDims({ dims, sizes, multiples }: ResolvedPromises): readonly number[] {
  const isPromised = (name: 'qkDim' | 'vDim') => (dim: number) => {
    const { min = 1, max = Infinity } = sizes[name] ?? {};
    return min <= dim && dim <= max && dim % (multiples[name] ?? 1) === 0;
  };
  const candidates = dims?.filter((dim) => dim >= productionDims[0]) ?? productionDims;
  return candidates.filter(isPromised('qkDim')).filter(isPromised('vDim'));
}

/** The most elements of a problem of production; see `ProblemConstraints`. */
const productionElements = 2 ** 20;

/**
 * Constraints to draw problems by, which shrink to all promised ones: null if no size of production is
 * promised. Ranges that are not promised give way to those that are.
 */
export function productionSizes(
  promises: ResolvedPromises,
  aspect: ProductionAspect,
): ProblemConstraints | null {
  const { blockKeys, dims, sizes, multiples, groupSizes } = promises;
  const wanted = wantedSizes(aspect, blockKeys);
  const entries = Object.entries(wanted) as [SizeName, FullSizeRange][];
  const drawn = entries.flatMap(([name, range]) => {
    if (dims !== null && (name === 'qkDim' || name === 'vDim')) return [];
    if (name === 'groupSize' && !promises.groupedHeads) return [];
    const { min = name === 'queries' || name === 'keys' ? 0 : 1, max = Infinity } =
      sizes[name] ?? {};
    const clamp = (size: number) => Math.max(min, Math.min(max, size));
    const multiple = multiples[name] ?? 1;
    const least = alignedUp(clamp(range.min), multiple);
    const most = Math.max(least, alignedDown(clamp(range.max), multiple));
    // No multiple of the promised range is as large; the promise alone has a say then.
    return least > max ? [] : [[name, { min: least, max: Math.min(most, max) }] as const];
  });
  const ranges: ProblemConstraints = { ...Object.fromEntries(drawn) };
  if (aspect === 'dims') {
    const large = promisedDims(promises);
    if (large.length === 0) return null;
    return { ...ranges, dims: large, maximumElements: productionElements };
  }
  const { groupSize, ...others } = ranges;
  const isListed = groupSizes?.some(
    (size) => (groupSize?.min ?? 1) <= size && size <= (groupSize?.max ?? Infinity),
  );
  return {
    ...(isListed === false ? others : ranges),
    ...(dims === null ? {} : { dims: dims.slice(0, 1) }),
    maximumElements: productionElements,
  };
}
