import { problemFeatures, type FeatureName, type Problem } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import type { SizeName, SizeRange, Sizes } from '../sizes.js';
import type { RandomValues } from '../values.js';
import { oneOf } from './feature-request.js';

/** Descriptions of the features that a kernel must support explicitly, by the names with which it declares them. */
const descriptions = {
  mask: 'a boolean mask of any shape that is broadcast to batches, heads, queries and keys',
  bias: 'numbers added to the scores, of any such shape; −∞ hides a key',
  alibi: 'ALiBi slopes, by head, or by batch and head',
  sink: 'a key without value for each head, in the LSE or not',
  segments: 'documents: queries see the keys of their own',
  prefix: 'first keys that every query sees',
  'block-mask': 'blocks of keys that blocks of queries see, as lists of their numbers',
  'key-lists': 'keys, or blocks of keys, that each query sees, as lists of their numbers',
  dropout: 'weights that are dropped after the row sum, by the mask that was drawn',
  packed: 'sequences one behind the other, of any lengths from 0',
  padded: 'sequences with as many slots each, keys also with unused ones in front',
  paged: 'keys and values in pages of any size, in any order, shared or not',
  descale: 'factors of Q, K and V in formats of 8 bits: one, by head or by blocks of rows',
  'wide-groups': '16 to 128 query heads for a kv head',
  'latent-dims': 'head dimensions of Q and V that differ: 192 and 128, 576 and 512',
} as const;

/** A feature of problems that a kernel may declare to take. */
export type FeatureKind = keyof typeof descriptions;

/** Every {@link FeatureKind}. */
export const featureKinds = Object.keys(descriptions) as FeatureKind[];

/**
 * The description of a feature, in one line.
 * @throws RequestError for an unknown one
 */
export function describeFeature(kind: FeatureKind): string {
  if (!Object.hasOwn(descriptions, kind))
    throw new RequestError(
      `no feature ${JSON.stringify(kind)}; choose from ${featureKinds.join(', ')}`,
    );
  return descriptions[kind];
}

/** The kind that a kernel must declare to take a feature; null for features that are never drawn. */
const kindOfFeature: Readonly<Record<FeatureName, FeatureKind | null>> = {
  mask: 'mask',
  bias: 'bias',
  alibiSlopes: 'alibi',
  sink: 'sink',
  segments: 'segments',
  prefix: 'prefix',
  blockMask: 'block-mask',
  keyLists: 'key-lists',
  dropout: 'dropout',
  sequences: 'packed',
  keyRanges: null,
  rows: null,
  scales: 'descale',
};

/** The kinds that a kernel must take to take a problem, including null for features that are never drawn. */
export function kindsOf(problem: Problem): (FeatureKind | null)[] {
  return problemFeatures(problem).map((name) => kindOfFeature[name]);
}

/** The kinds that a kernel takes if it takes some features. */
export function kindsTaken(features: readonly FeatureName[]): FeatureKind[] {
  return features.flatMap((name) => kindOfFeature[name] ?? []);
}

/** Whether a kernel that takes some kinds takes a problem's features; sequences in any form. */
export function takesFeatures(problem: Problem, taken: readonly FeatureKind[]): boolean {
  return kindsOf(problem).every((kind) =>
    kind === 'packed'
      ? storageKinds.some((storage) => taken.includes(storage))
      : kind !== null && taken.includes(kind),
  );
}

/** Ways in which sequences lie in memory. */
export const storageKinds: readonly FeatureKind[] = ['packed', 'padded', 'paged'];

/** Kinds of masks: those that hide keys of a problem that has no causal mask and no window. */
export const hidingKinds: readonly FeatureKind[] = [
  'mask',
  'bias',
  'segments',
  'block-mask',
  'key-lists',
  ...storageKinds,
];

/** Kinds that a problem cannot have both: each says where keys end. */
const exclusive: readonly (readonly FeatureKind[])[] = [
  ['packed', 'padded', 'paged', 'segments', 'block-mask'],
  ['wide-groups', 'latent-dims'],
  ['key-lists', 'packed'],
  ['key-lists', 'padded'],
  ['key-lists', 'paged'],
];

/** Whether a problem can have at most one of two kinds. */
export function excludeOneAnother(a: FeatureKind, b: FeatureKind): boolean {
  return a !== b && exclusive.some((kinds) => kinds.includes(a) && kinds.includes(b));
}

/** Numbers of features in a problem that may have some, one chance each. */
const featureCounts: readonly number[] = [0, 1, 1, 1, 2, 3];

/** Some of the possible kinds, which do not exclude one another, including those needed. */
export function drawKinds(
  allowed: readonly FeatureKind[],
  needed: readonly FeatureKind[],
  random: RandomValues,
): readonly FeatureKind[] {
  const chosen = [...needed];
  for (let count = oneOf(featureCounts, random); count > 0; count--) {
    const left = allowed.filter(
      (kind) => !chosen.includes(kind) && !chosen.some((other) => excludeOneAnother(kind, other)),
    );
    if (left.length > 0) chosen.push(oneOf(left, random));
  }
  return chosen;
}

/** Head dimensions of Q and K, and of V, of models with latent attention. */
const latentDims = [
  { qkDim: 192, vDim: 128 },
  { qkDim: 576, vDim: 512 },
] as const;

/** Numbers of query heads that share a kv head, as in multi-query attention. */
const wideGroups: readonly number[] = [16, 32, 64, 128];

const one = { batch: 1, kvHeads: 1 } as const;

/** The sizes that kinds ask for, few enough of the others that a run takes milliseconds. */
export function kindSizes(kinds: readonly FeatureKind[], random: RandomValues): Partial<Sizes> {
  if (kinds.includes('wide-groups'))
    return {
      ...one,
      groupSize: oneOf(wideGroups, random),
      queries: random.integer(1, 2),
      qkDim: random.integer(1, 16),
      vDim: random.integer(1, 16),
    };
  if (kinds.includes('latent-dims'))
    return {
      ...one,
      ...oneOf(latentDims, random),
      groupSize: 1,
      queries: random.integer(1, 3),
      keys: random.integer(1, 64),
    };
  return storageKinds.some((kind) => kinds.includes(kind)) ? { batch: 1 } : {};
}

/** The sizes that constraints leave free. */
interface SizeRoom {
  readonly ranges: Readonly<Partial<Record<SizeName, SizeRange | undefined>>>;
  readonly multiples: Readonly<Partial<Record<SizeName, number>>>;
  readonly groupSizes: readonly number[] | null;
}

/** Whether the sizes that a kind asks for fit the ranges as they are given: open ends are no limit. */
export function hasRoom(kind: FeatureKind, { ranges, multiples, groupSizes }: SizeRoom): boolean {
  const may = (name: SizeName, size: number) => {
    const { min = 0, max = Infinity } = ranges[name] ?? {};
    return min <= size && size <= max && size % (multiples[name] ?? 1) === 0;
  };
  if (storageKinds.includes(kind)) return may('batch', 1);
  if (kind === 'wide-groups')
    return (
      may('batch', 1) &&
      may('kvHeads', 1) &&
      wideGroups.every((size) => may('groupSize', size) && (groupSizes?.includes(size) ?? true))
    );
  if (kind === 'latent-dims')
    return (
      may('batch', 1) &&
      may('kvHeads', 1) &&
      may('groupSize', 1) &&
      latentDims.every(({ qkDim, vDim }) => may('qkDim', qkDim) && may('vDim', vDim))
    );
  return true;
}
