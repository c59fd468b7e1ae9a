import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { featureKinds, type FeatureKind } from '../../../properties/index.js';
import {
  attentionProblem,
  describeProblem,
  type ProblemConstraints,
} from '../../../properties/index.js';
import { arrangeProblem, indices } from '../../../properties/laws/transform-problem.js';
import { decodeProblem, encodeProblem } from '../../../properties/problems/plain-problem.js';
import {
  checkProblem,
  countKeys,
  problemFeatures,
  problemMask,
  problemShape,
  scoreLaw,
  storedOf,
  type Problem,
} from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

function sample(constraints: ProblemConstraints, numRuns: number): Problem[] {
  return fc.sample(attentionProblem(constraints), { seed: testSeed, numRuns });
}

const small: ProblemConstraints = { maximumElements: 2 ** 14, qkDim: { max: 4 }, vDim: { max: 4 } };

const ofKind: Readonly<Record<FeatureKind, (problem: Problem) => boolean>> = {
  mask: ({ mask }) => mask !== undefined,
  bias: ({ bias }) => bias !== undefined,
  alibi: ({ alibiSlopes }) => alibiSlopes !== undefined,
  sink: ({ sink }) => sink !== undefined,
  segments: ({ segments }) => segments !== undefined,
  prefix: ({ prefix }) => prefix !== undefined,
  'block-mask': ({ blockMask }) => blockMask !== undefined,
  'key-lists': ({ keyLists }) => keyLists !== undefined,
  dropout: ({ dropout }) => dropout !== undefined,
  packed: ({ sequences }) => sequences !== undefined,
  padded: (problem) => storedOf(problem)?.keys.form === 'padded',
  paged: (problem) => storedOf(problem)?.keys.form === 'paged',
  descale: ({ q, k, v }) => [q, k, v].some(({ scales }) => scales !== undefined),
  'wide-groups': (problem) => problemShape(problem).groupSize >= 16,
  'latent-dims': (problem) => problemShape(problem).qkDim - problemShape(problem).vDim === 64,
};

describe('problems with features', () => {
  it('have none unless they are listed, and are then what they were', () => {
    const without = sample(small, 30);
    expect(without.flatMap((problem) => problemFeatures(problem))).toEqual([]);
    expect(sample({ ...small, features: [] }, 30).map(describeProblem)).toEqual(
      without.map(describeProblem),
    );
  });

  inTurn.each(featureKinds)('have %s where it is listed, often, and never another', (kind) => {
    const constraints: ProblemConstraints =
      kind === 'latent-dims' || kind === 'wide-groups'
        ? {}
        : { ...small, ...(kind === 'descale' ? { formats: ['e4m3'] } : {}) };
    const drawn = sample({ ...constraints, features: [kind] }, scaled(30));
    const withIt = drawn.filter(ofKind[kind]);
    expect(withIt.length).toBeGreaterThan(drawn.length / 3);
    expect(withIt.length).toBeLessThan(drawn.length);
    for (const problem of drawn) {
      checkProblem(problem);
      expect(problemFeatures(problem).length).toBeLessThanOrEqual(1);
    }
  });

  it('are problems, with several features that go together', () => {
    const drawn = sample({ ...small, features: featureKinds }, scaled(150));
    for (const problem of drawn) checkProblem(problem);
    const counts = new Set(drawn.map((problem) => problemFeatures(problem).length));
    expect(counts.size).toBeGreaterThanOrEqual(4);
    expect(drawn.every((problem) => /^attention problem/.test(describeProblem(problem)))).toBe(
      true,
    );
  });

  it('come back as they were from plain numbers', () => {
    for (const problem of sample({ ...small, features: featureKinds }, scaled(40))) {
      // How a problem is posed is no part of it.
      const { stored, ...rest } = problem;
      void stored;
      expect(encodeProblem(decodeProblem(problem))).toEqual(rest);
    }
  });

  it('leave every query a key where they must', () => {
    const drawn = sample({ ...small, features: featureKinds, emptyRows: false }, scaled(60));
    for (const problem of drawn) {
      const shape = problemShape(problem);
      const mask = problemMask(problem, shape);
      for (let head = 0; head < shape.batch * shape.heads; head++)
        for (let query = 0; query < shape.queries; query++)
          expect(mask.ranges(head, query)).not.toEqual([]);
    }
  });
});

/** What a row sees, key by key: −∞ for a hidden one, else what is added to its score. */
function rowOf(problem: Problem, head: number, query: number): number[] {
  const shape = problemShape(problem);
  const row = new Array<number>(shape.keys).fill(-Infinity);
  const added = new Float64Array(shape.keys);
  scoreLaw(problem, shape).addend?.(head, query, 0, added);
  for (const { begin, end } of problemMask(problem, shape).ranges(head, query))
    for (let key = begin; key < end; key++) row[key] = added[key];
  return row;
}

describe('arranged problems', () => {
  const places: readonly FeatureKind[] = ['alibi', 'block-mask', 'packed', 'prefix'];
  const unordered = featureKinds.filter((kind) => !places.includes(kind));
  const unmasked = { causal: false, window: false } as const;

  it('see in every row what the row saw, in the order of the keys', () => {
    let seen = 0;
    for (const problem of sample({ ...small, ...unmasked, features: unordered }, scaled(60))) {
      const { batch, heads, queries, keys } = problemShape(problem);
      const order = {
        batches: indices(batch).reverse(),
        heads: indices(heads),
        queries: indices(queries).reverse(),
        keys: indices(keys).filter((key) => key % 2 === 0),
      };
      let arranged: Problem;
      try {
        arranged = arrangeProblem(problem, order);
      } catch {
        continue;
      }
      for (let head = 0; head < batch * heads; head++)
        for (let query = 0; query < queries; query++) {
          const before = rowOf(
            problem,
            (batch - 1 - Math.floor(head / heads)) * heads + (head % heads),
            queries - 1 - query,
          );
          expect(rowOf(arranged, head, query)).toEqual(order.keys.map((key) => before[key]));
          seen += countKeys(problemMask(arranged).ranges(head, query));
        }
    }
    expect(seen).toBeGreaterThan(1000);
  });

  it('of packed sequences keep what each sequence is, with the rows that are left', () => {
    let tried = 0;
    const drawn = sample(
      { ...small, ...unmasked, features: ['packed', 'mask', 'bias'] },
      scaled(60),
    );
    for (const problem of drawn) {
      if (problem.sequences === undefined) continue;
      const { heads, queries, keys } = problemShape(problem);
      const rows = indices(queries).filter((query) => query % 3 !== 1);
      const left = indices(keys).filter((key) => key % 2 === 0);
      let arranged: Problem;
      try {
        arranged = arrangeProblem(problem, { queries: rows, keys: left });
      } catch {
        continue;
      }
      tried++;
      for (let head = 0; head < heads; head++)
        rows.forEach((query, row) =>
          expect(rowOf(arranged, head, row)).toEqual(
            left.map((key) => rowOf(problem, head, query)[key]),
          ),
        );
    }
    expect(tried).toBeGreaterThan(10);
  });

  it('decline what goes by places', () => {
    const of = (kind: FeatureKind) =>
      sample(
        { ...small, ...unmasked, queries: { min: 5 }, keys: { min: 5 }, features: [kind] },
        40,
      ).filter(ofKind[kind]);
    for (const kind of places) {
      const [problem] = of(kind).filter(({ prefix = 1 }) => prefix > 0);
      const { keys } = problemShape(problem!);
      expect(() => arrangeProblem(problem!, { keys: indices(keys).reverse() })).toThrow(
        /cannot be put in another order/,
      );
    }
  });
});
