import type { ProblemFeatures } from './features.js';

type Name = keyof ProblemFeatures;
type Feature<One extends Name> = NonNullable<ProblemFeatures[One]>;

/**
 * A function for each feature, with none left out: where a feature is added, whatever goes through the features of a problem
 * does not compile until it says what becomes of it.
 */
export type FeatureReaders<Result> = {
  readonly [One in Name]-?: (feature: Feature<One>) => Result;
};

/** What becomes of each feature; undefined leaves it out. */
export type FeatureChanges = {
  readonly [One in Name]-?: (feature: Feature<One>) => Feature<One> | undefined;
};

/** Every feature, or undefined in its place. */
export type EveryFeature = { readonly [One in Name]-?: Feature<One> | undefined };

/** What the readers make of the features that a problem has, in the order of the readers. */
export function readFeatures<Result>(
  features: ProblemFeatures,
  readers: FeatureReaders<Result>,
): Result[] {
  return (Object.keys(readers) as Name[]).flatMap((name) => {
    const feature = features[name];
    return feature === undefined ? [] : [readers[name](feature as never)];
  });
}

/** Features without those that are undefined. */
export function presentFeatures(all: EveryFeature): ProblemFeatures {
  return Object.fromEntries(Object.entries(all).filter(([, feature]) => feature !== undefined));
}

/** The changed features of a problem. */
export function changeFeatures(
  features: ProblemFeatures,
  changes: FeatureChanges,
): ProblemFeatures {
  const changed = (Object.keys(changes) as Name[]).map((name) => {
    const feature = features[name];
    return [name, feature === undefined ? undefined : changes[name](feature as never)] as const;
  });
  return presentFeatures(Object.fromEntries(changed) as EveryFeature);
}

/** Keeps a feature as it is. */
export const keepFeature = <Kept>(feature: Kept): Kept => feature;

/** Leaves a feature out. */
export const dropFeature = (): undefined => undefined;
