import { describe, expect, it } from 'vitest';
import type { FeatureChanges } from '../../src/problem/each-feature.js';
import {
  changeFeatures,
  dropFeature,
  featureNames,
  keepFeature,
  type ProblemFeatures,
  readFeatures,
} from '../../src/problem/index.js';

const kept = {
  mask: keepFeature,
  bias: keepFeature,
  alibiSlopes: keepFeature,
  sink: keepFeature,
  segments: keepFeature,
  prefix: keepFeature,
  blockMask: keepFeature,
  keyLists: keepFeature,
  dropout: keepFeature,
  sequences: keepFeature,
  keyRanges: keepFeature,
  rows: keepFeature,
} as const satisfies FeatureChanges;
const names = Object.keys(kept) as (keyof ProblemFeatures)[];

/** Some features; their elements do not matter here. */
const features: ProblemFeatures = {
  prefix: 0,
  sequences: [],
  keyRanges: [],
  mask: { shape: [1], data: Uint8Array.of(1) },
};

describe('what goes through the features of a problem', () => {
  it('knows every feature that has a name', () => {
    expect([...names, 'scales'].sort()).toEqual(Object.keys(featureNames).sort());
  });

  it('does not compile where a feature is forgotten', () => {
    const { rows, ...others } = kept;
    // @ts-expect-error: it does not say what becomes of a sample of rows
    const changes: FeatureChanges = others;
    expect({ ...changes, rows }).toEqual(kept);
  });

  it('leaves features as they are, but for those that are changed or left out', () => {
    expect(changeFeatures(features, kept)).toEqual(features);
    expect(changeFeatures({}, kept)).toEqual({});
    for (const name of names) {
      const others = Object.fromEntries(Object.entries(features).filter(([one]) => one !== name));
      expect(changeFeatures(features, { ...kept, [name]: dropFeature })).toEqual(others);
    }
    expect(changeFeatures(features, { ...kept, prefix: (prefix) => prefix + 3 })).toEqual({
      ...features,
      prefix: 3,
    });
  });

  it('reads those that are there, in the order of the readers', () => {
    const told = Object.fromEntries(names.map((name) => [name, () => name])) as {
      [Name in keyof ProblemFeatures]-?: () => string;
    };
    expect(readFeatures(features, told)).toEqual(['mask', 'prefix', 'sequences', 'keyRanges']);
  });
});
