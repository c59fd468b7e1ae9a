import { describe, expect, it } from 'vitest';
import { randomValues, type RandomValues } from '../../properties/problems/values.js';
import { judgeOutputs } from '../../src/audit/index.js';
import { WorkingMemories } from '../../oracles/index.js';
import { fineGroups } from '../../src/audit/structure/survey-rows.js';
import { withRowMemory } from '../../src/audit/structure/row-memory.js';
import type { Problem } from '../../src/problem/index.js';
import { testSeed } from '../setup/effort.js';
import { encode } from './damage.js';
import { roundingKernel } from './rounding-kernel.js';

/** fp32: one key of every row has a score some nats above all others, which are equal. */
function longTail(keys: number, seed: number): Problem {
  const random = randomValues(seed);
  const queries = 24;
  const above = 5 + 3 * random.uniform();
  const tensor = (rows: number, columns: number, value: (i: number) => number) =>
    encode(
      Float64Array.from({ length: rows * columns }, (_, i) => Math.fround(value(i))),
      'fp32',
      [1, rows, columns],
    );
  return {
    q: tensor(queries, 1, () => 1),
    k: tensor(keys, 1, (key) => (key === 0 ? above : 0)),
    v: tensor(keys, 16, () => 1 + 0.3 * random.normal()),
    scale: 1,
    causal: false,
    window: null,
    softcap: null,
  };
}

describe('an fp32 row sum of equal weights, added one after the other', () => {
  it.each([256, 500])('is no scaled output, though every addition errs alike: %d keys', (keys) => {
    for (const seed of [testSeed, testSeed + 1]) {
      const problem = longTail(keys, seed);
      const outputs = roundingKernel(problem, {
        outputFormat: 'fp32',
        lag: () => 0,
        tile: keys,
      });
      const { verdict } = judgeOutputs(problem, outputs, { diagnose: false });
      expect(verdict.findings, `TEST_SEED=${seed}`).toEqual([]);
    }
  });
});

describe('one query whose keys are all alike, in fp32', () => {
  /** Every key has one score and one value, so that O is that value, and what directions see are roundings alone. */
  function repeatedKey(keys: number, random: RandomValues): Problem {
    const ofValue = [random.uniform(), random.uniform()];
    const tensor = (rows: number, values: readonly number[]) =>
      encode(
        Float64Array.from({ length: rows * values.length }, (_, i) =>
          Math.fround(values[i % values.length]),
        ),
        'fp32',
        [1, rows, values.length],
      );
    const [q, k, v] = [tensor(1, [0]), tensor(keys, [1]), tensor(keys, ofValue)];
    return { q, k, v, scale: 1, causal: false, window: null, softcap: null };
  }

  it.each([3, 5, 7])('raises no alarm by the roundings of its sums: %d keys', (keys) => {
    const random = randomValues(testSeed);
    for (let draw = 0; draw < 20; draw++) {
      const problem = repeatedKey(keys, random);
      const outputs = roundingKernel(problem, { outputFormat: 'fp32', lag: () => 0, tile: keys });
      const { verdict } = judgeOutputs(problem, outputs, { diagnose: false });
      expect(verdict.findings, `TEST_SEED=${testSeed}, draw ${draw}`).toEqual([]);
    }
  });
});

describe('the errors of a row sum', () => {
  const errorsOf = (weights: readonly number[]) => {
    const rules = {
      keys: weights.length,
      groups: fineGroups('fp32'),
      smallest: 0,
      mostLost: 0,
      roundings: 1,
      places: 32,
      roundingErrors: null,
      countsEqual: true,
      factors: [],
    };
    return withRowMemory(new WorkingMemories(), rules, (memory) => {
      memory.begin(0, 1, [0, 0, 0]);
      for (let first = 0; first < weights.length; first += 64) {
        const ofTile = weights.slice(first, first + 64);
        memory.tile[0].set(ofTile);
        if (memory.keep(ofTile.length)) memory.addKept([1]);
      }
      memory.addKept([1]);
      const { drift, variance } = memory.sums(0);
      return { drift, variance };
    });
  };

  it('are as many as there are weights where all are one', () => {
    expect(errorsOf(Array<number>(500).fill(1 / 500))).toEqual({ drift: 500, variance: 0 });
  });

  it('are random where weights are, up to a few that meet by chance', () => {
    const random = randomValues(testSeed);
    const weights = Array.from({ length: 500 }, () => (2 * random.uniform()) / 500);
    const { drift, variance } = errorsOf(weights);
    expect(drift).toBe(0);
    expect(variance).toBeGreaterThanOrEqual(500);
    expect(variance).toBeLessThan(600);
  });
});
