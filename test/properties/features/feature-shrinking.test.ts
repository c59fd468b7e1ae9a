import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  attentionProblem,
  featureKinds,
  type FeatureKind,
  type ProblemConstraints,
} from '../../../properties/index.js';
import {
  checkProblem,
  problemFeatures,
  problemShape,
  storedOf,
  type Problem,
} from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';

/** What a failure shrinks to, and how many problems were looked at on the way. */
function counterexample(constraints: ProblemConstraints, fails: (problem: Problem) => boolean) {
  let evaluations = 0;
  const details = fc.check(
    fc.property(attentionProblem(constraints), (problem) => {
      evaluations++;
      return !fails(problem);
    }),
    { seed: testSeed, numRuns: 400 },
  );
  expect(details.failed).toBe(true);
  return { problem: details.counterexample![0], evaluations: evaluations - details.numRuns };
}

const small: ProblemConstraints = {
  regimes: ['normal'],
  formats: ['bf16', 'e4m3'],
  queries: { max: 12 },
  keys: { max: 40 },
  qkDim: { max: 4 },
  vDim: { max: 4 },
};

const single = { batch: 1, heads: 1, queries: 1, qkDim: 1, vDim: 1 };

/** What is left of a feature that a failure needs and nothing else of it. */
const plainest: Readonly<
  Partial<
    Record<
      FeatureKind,
      {
        readonly needs: (problem: Problem) => boolean;
        readonly left: (problem: Problem) => unknown;
      }
    >
  >
> = {
  mask: {
    needs: ({ mask }) => mask !== undefined,
    left: ({ mask }) => expect([...mask!.data]).toEqual([1]),
  },
  bias: {
    needs: ({ bias }) => bias !== undefined,
    left: ({ bias }) => expect([...bias!.data].map(Number)).toEqual([0]),
  },
  alibi: {
    needs: ({ alibiSlopes }) => alibiSlopes !== undefined,
    left: ({ alibiSlopes }) => expect([...alibiSlopes!.data]).toEqual([0]),
  },
  sink: {
    needs: ({ sink }) => sink !== undefined,
    left: ({ sink }) => expect([...sink!.logits.data].map(Number)).toEqual([0]),
  },
  segments: {
    needs: ({ segments }) => segments !== undefined,
    left: ({ segments }) => expect(new Set(segments!.keys.data).size).toBe(1),
  },
  prefix: {
    needs: ({ prefix = 0 }) => prefix > 3,
    left: ({ prefix }) => expect(prefix).toBeLessThan(8),
  },
  'block-mask': {
    needs: ({ blockMask }) => blockMask !== undefined,
    left: ({ blockMask }) => expect(blockMask!.counts.data.every((count) => count > 0)).toBe(true),
  },
  dropout: {
    needs: ({ dropout }) => dropout !== undefined,
    left: ({ dropout }) => {
      expect(dropout!.probability).toBe(0);
      expect([...dropout!.kept.data]).toEqual([1]);
    },
  },
  packed: {
    needs: ({ sequences = [] }) => sequences.length > 1,
    left: ({ sequences }) => expect(sequences).toHaveLength(2),
  },
  paged: {
    needs: (problem) => (storedOf(problem)?.keys.slotsPerGroup ?? 0) > 3,
    left: (problem) => expect(storedOf(problem)!.keys.slotsPerGroup).toBeLessThan(8),
  },
};

describe('a counterexample', () => {
  it.each(Object.entries(plainest))(
    'that needs %s keeps the plainest of it',
    (kind, { needs, left }) => {
      const features = [kind as FeatureKind, 'wide-groups'] as const;
      const { problem, evaluations } = counterexample({ ...small, features }, needs);
      expect(needs(problem)).toBe(true);
      expect(problemFeatures(problem)).toHaveLength(1);
      const { batch, heads, queries, qkDim, vDim } = problemShape(problem);
      if (kind !== 'packed') expect({ batch, heads, queries, qkDim, vDim }).toMatchObject(single);
      left(problem);
      expect(evaluations).toBeLessThan(300);
    },
  );

  it('loses every feature that it does not need', () => {
    const { problem } = counterexample(
      { ...small, features: featureKinds },
      (given) => problemFeatures(given).length > 0 && problemShape(given).keys > 4 && given.causal,
    );
    expect(problemFeatures(problem)).toHaveLength(1);
    const without = counterexample(
      { ...small, features: featureKinds },
      (given) => problemShape(given).keys > 4,
    );
    expect(problemFeatures(without.problem)).toEqual([]);
  });

  it('is a problem at every step, and the search ends', () => {
    for (const every of [2, 5])
      for (let run = 0; run < scaled(4); run++) {
        let step = 0;
        fc.check(
          fc.property(attentionProblem({ ...small, features: featureKinds }), (problem) => {
            checkProblem(problem);
            return step++ % every > 0 || step > 400;
          }),
          { seed: testSeed + run, numRuns: 1 },
        );
        expect(step).toBeLessThan(5000);
      }
  });
});
