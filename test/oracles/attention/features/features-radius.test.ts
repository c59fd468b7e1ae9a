import { afterAll, describe, expect, it } from 'vitest';
import { attentionOracle, levels } from '../../../../oracles/index.js';
import type { Problem } from '../../../../src/problem/index.js';
import { randomValues } from '../../../../properties/problems/values.js';
import { loadMpfr } from '../../mpfr.js';
import {
  featuredProblem,
  oracleFeatures,
  type FeaturedSizes,
  type OracleFeature,
} from './featured-problems.js';
import { accuracyOfAudit, everySolver } from '../oracle-levels.js';
import { assertWithinRadii, RadiusUse } from '../radius-check.js';
import { withReference } from '../reference-attention.js';
import { scaled, testSeed } from '../../../setup/effort.js';
import { turns } from '../../../setup/turns.js';
import { filledProblem, tensor } from '../../../setup/problems.js';

const inTurn = turns(import.meta.url);

const mpfr = await loadMpfr();

const uses = Object.fromEntries(Object.keys(everySolver).map((name) => [name, new RadiusUse()]));

/** Checks a problem at every level. */
function checkLevels(problem: Problem, what: string): void {
  withReference(mpfr, problem, (reference) => {
    for (const [name, solve] of Object.entries(everySolver))
      try {
        assertWithinRadii(problem, reference, solve, uses[name]);
      } catch (error) {
        throw new Error(`${name}, ${what}: ${String(error)}`);
      }
  });
}

/** Checks a drawn problem at every level. */
function crossCheck(seed: number, features: readonly OracleFeature[], sizes: FeaturedSizes): void {
  const problem = featuredProblem(randomValues(seed), features, sizes);
  checkLevels(problem, `${features.join(', ')}, seed ${seed}`);
}

const small = { queries: 3, keys: 8, heads: 2, kvHeads: 1, dim: 5, vDim: 3 };

describe('the oracle of problems with features', () => {
  inTurn.each(oracleFeatures)('is within its radii with %s alone', (feature) => {
    for (let i = 0; i < scaled(6); i++) crossCheck(testSeed + i, [feature], small);
  });

  inTurn('is within its radii with features together', () => {
    for (let i = 0; i < scaled(30); i++) {
      const random = randomValues(testSeed + 7919 * i);
      const features = oracleFeatures.filter(() => random.integer(0, 1) === 1);
      crossCheck(testSeed + i, features, small);
    }
  });

  it('is within its radii across tiles', () => {
    for (let i = 0; i < scaled(3); i++)
      crossCheck(testSeed + i, ['bias', 'alibiSlopes', 'sink', 'dropout', 'mask'], {
        queries: 3,
        keys: 150,
        heads: 1,
        kvHeads: 1,
        dim: 3,
        vDim: 2,
      });
  });

  it('is within its radii with tiles and rows that see no key', () => {
    const [queries, keys] = [4, 200];
    const random = randomValues(testSeed);
    // The second tile of 64 keys is hidden from all, the last query sees nothing, the first two tiles but one key.
    const isSeen = (query: number, key: number) =>
      (key < 64 || key >= 128) && query !== 3 && (query !== 0 || key === 63 || key > 130);
    const pairs = (value: (query: number, key: number) => number) =>
      new Uint8Array(queries * keys).map((_, at) => value(Math.floor(at / keys), at % keys));
    const shape = [queries, keys];
    const problem = filledProblem({ queries, keys, dim: 3, vDim: 2 }, random.normal, {
      mask: { shape, data: pairs((query, key) => (isSeen(query, key) ? 1 : 0)) },
      // Query 1 keeps no key.
      dropout: {
        kept: {
          shape,
          data: pairs((query) => (query !== 1 && random.integer(0, 1) === 0 ? 1 : 0)),
        },
        probability: 0.5,
      },
      bias: tensor('bf16', shape, random.normal),
      alibiSlopes: tensor('fp32', [1], () => 2 ** -5),
    });
    checkLevels(problem, 'no sink');
    for (const inLse of [true, false])
      checkLevels({ ...problem, sink: { logits: tensor('bf16', [1], () => 1), inLse } }, 'sink');
    const { quantities } = attentionOracle(problem);
    const { values, radius } = quantities.out;
    expect([...values.subarray(2, 4), ...values.subarray(6)]).toEqual([0, 0, 0, 0]);
    expect([...radius.subarray(2, 4), ...radius.subarray(6)]).toEqual([0, 0, 0, 0]);
  });

  it.each([null, 3])('holds what bias and ALiBi lose as they are added, softcap %s', (softcap) => {
    const random = randomValues(testSeed);
    for (const slope of [1, 1000, 2 ** 30]) {
      const fill = () => random.normal();
      // The query in the middle sees the keys on both sides of its diagonal, which are equally far away.
      const problem = filledProblem({ queries: 3, keys: 3, dim: 2, format: 'fp32' }, fill, {
        softcap,
        mask: { shape: [3], data: Uint8Array.of(1, 0, 1) },
        bias: tensor('fp32', [3, 3], () => 2 ** -20 * random.normal()),
        alibiSlopes: tensor('fp32', [1], () => slope * (1 + 2 ** -10)),
      });
      checkLevels(problem, `slope ${slope}`);
    }
  });

  it('stays in fp64 where biases and distances are large', () => {
    const random = randomValues(testSeed);
    const keys = 3000;
    const frame = { queries: 2, keys, dim: 2, vDim: 1, heads: 2 };
    const features: readonly Partial<Problem>[] = [
      { alibiSlopes: tensor('fp32', [2], (head) => [0.5, 2 ** 16][head]) },
      { bias: tensor('bf16', [keys], (key) => (key % 3 === 0 ? 0 : -1e4)) },
      { bias: tensor('bf16', [keys], () => -1e4) },
      { bias: tensor('fp32', [keys], () => 1e5 * random.uniform()) },
    ];
    for (const feature of features)
      for (const sink of [undefined, 0, 2e4]) {
        const logits = tensor('fp32', [2], () => sink ?? 0);
        const { level, quantities } = attentionOracle(
          filledProblem(frame, random.normal, {
            ...feature,
            ...(sink === undefined ? {} : { sink: { logits, inLse: false } }),
          }),
          { accuracy: accuracyOfAudit },
        );
        expect(new Set(level)).toEqual(new Set([levels.indexOf('fp64')]));
        const { radius, magnitude } = quantities.out;
        radius.forEach((x, at) =>
          expect(x).toBeLessThanOrEqual(2 ** -44 * magnitude[at] + 2 ** -1072),
        );
      }
  });

  afterAll(() => {
    for (const [name, use] of Object.entries(uses))
      console.info(name, JSON.stringify(use.summary()));
  });
});
