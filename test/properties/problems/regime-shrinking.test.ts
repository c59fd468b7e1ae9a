import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  attentionProblem,
  regimeNames,
  type ProblemConstraints,
  type RegimeName,
} from '../../../properties/index.js';
import { decodeProblem } from '../../../properties/problems/plain-problem.js';
import { regimes } from '../../../properties/problems/regimes/index.js';
import { usualTiling } from '../../../properties/problems/regimes/regime.js';
import { decodeToFloat64, formats } from '../../../src/formats/index.js';
import { problemShape, storedOf, visibleKeys, type Problem } from '../../../src/problem/index.js';
import { sampled, scaled, testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** What a failure shrinks to, and how many problems were looked at from the first failure on. */
function counterexample(
  constraints: ProblemConstraints,
  passes: (problem: Problem) => boolean,
  seed = 7,
) {
  let evaluations = 0;
  let failed = false;
  const details = fc.check(
    fc.property(attentionProblem(constraints), (problem) => {
      if (failed) evaluations++;
      const passed = passes(problem);
      failed ||= !passed;
      return passed;
    }),
    { seed, numRuns: 300 },
  );
  expect(details.failed).toBe(true);
  const problem = details.counterexample![0];
  return { problem, shape: problemShape(problem), evaluations };
}

const isOf = (name: RegimeName, problem: Problem) =>
  regimes[name].holds({ ...decodeProblem(problem), form: storedOf(problem)?.form }, usualTiling);

/** Regimes of lengths and features, which keep what they are made of. */
const isServed = (name: RegimeName) =>
  regimes[name].features !== undefined || regimes[name].lengths !== undefined;

const single = { batch: 1, heads: 1, kvHeads: 1, queries: 1 };

describe.each(sampled(regimeNames, 16))('shrinking %s', (name) => {
  const constraints: ProblemConstraints = {
    regimes: [name],
    queries: { max: 6 },
    vDim: { max: 6 },
    maximumElements: 2 ** 15,
    features: regimes[name].features ?? [],
  };

  inTurn('never leaves the regime, whatever is accepted', () => {
    let candidates = 0;
    let strangers = 0;
    // Every second one is accepted, or every sixteenth: near the beginning and near the end.
    for (const every of [2, 16])
      for (let run = 0; run < scaled(1); run++) {
        const seed = testSeed + run;
        let step = 0;
        const check = fc.property(attentionProblem(constraints), (problem) => {
          candidates++;
          if (!isOf(name, problem)) strangers++;
          return step++ % every > 0 || step > 300;
        });
        fc.check(check, { seed, numRuns: 1 });
      }
    expect(candidates).toBeGreaterThan(40);
    expect(strangers).toBe(0);
  });

  it('ends with one query and one channel of V when everything fails', () => {
    if (isServed(name)) return;
    const { shape, evaluations } = counterexample(constraints, () => false);
    expect(shape).toMatchObject({ ...single, vDim: 1 });
    expect(shape.keys).toBeLessThanOrEqual(name === 'long-tail' ? 129 : 2 + 127 * +isTiled(name));
    expect(evaluations).toBeLessThan(250);
  });
});

const isTiled = (name: RegimeName): boolean => regimes[name].tiled ?? false;

describe('a failure that needs', () => {
  it('more than 128 keys and a causal mask: 129 keys, one query, one dimension', () => {
    const { problem, shape, evaluations } = counterexample(
      { regimes: ['normal'], queries: { max: 400 }, keys: { max: 700 } },
      (given) => !(problemShape(given).keys > 128 && given.causal),
    );
    expect(shape).toMatchObject({ ...single, keys: 129, qkDim: 1, vDim: 1 });
    expect(problem).toMatchObject({ causal: true, window: null, softcap: null, scale: 1 });
    expect(evaluations).toBeLessThan(120);
  });

  it.each([1, 2, 3, 4, 5])(
    'two tiles of keys, one row, and a score above 3 in the second: that, seed %i',
    (seed) => {
      const { problem, shape, evaluations } = counterexample(
        { regimes: ['normal'], formats: ['fp32'], scales: ['default'], queries: { max: 300 } },
        (given) => {
          const { keys, qkDim, heads, kvHeads } = problemShape(given);
          if (heads !== kvHeads * problemShape(given).groupSize) return true;
          const [q, k] = [given.q.data, given.k.data] as Float32Array[];
          // Row 0 of the first head against any key from the second tile on.
          for (let key = 128; key < keys; key++) {
            let score = 0;
            for (let c = 0; c < qkDim; c++) score += q![c] * k![key * qkDim + c];
            if (score * given.scale > 3) return false;
          }
          return true;
        },
        seed,
      );
      expect(shape).toMatchObject({ ...single, keys: 129, vDim: 1 });
      // Two products may be needed where each alone is too small.
      expect(shape.qkDim).toBeLessThanOrEqual(2);
      expect(evaluations).toBeLessThan(500);
      expect(problem.v.data.every((x) => x === 0)).toBe(true);
      const simple = (problem.k.data as Float32Array).filter((x) => x !== 0);
      expect(simple.length).toBeLessThanOrEqual(shape.qkDim);
    },
  );

  it('a row that sees nothing of the last block: one row less than all keys of it', () => {
    const { problem, shape } = counterexample({ regimes: ['normal'] }, (given) => {
      const { queries, keys } = problemShape(given);
      const last = Math.floor((keys - 1) / 128) * 128;
      return !Array.from({ length: queries }, (_, row) =>
        visibleKeys(given, problemShape(given), row),
      ).some(({ begin, end }) => begin < end && end <= last);
    });
    expect(shape).toMatchObject({ batch: 1, heads: 1, qkDim: 1, vDim: 1, keys: 129 });
    expect(shape.queries).toBeLessThanOrEqual(2);
    expect(problem.causal || problem.window !== null).toBe(true);
  });

  it('dimensions of a list: the least of them', () => {
    const { shape } = counterexample(
      { dims: [64, 16, 24, 40], queries: { max: 9 } },
      (given) => problemShape(given).vDim < 20,
    );
    expect(shape).toMatchObject({ qkDim: 24, vDim: 24 });
  });
});

describe('a counterexample stays what it was drawn as', () => {
  it('a row sum that V = 1 shows: V is 1 in the end', () => {
    const { problem } = counterexample({ regimes: ['ones'], formats: ['bf16'] }, () => false);
    expect([...decodeToFloat64(problem.v.data, formats.bf16)]).toEqual([1]);
  });

  it('one key for all: equal keys, of one dimension', () => {
    const { shape, problem } = counterexample(
      { regimes: ['constant-keys'], formats: ['fp32'] },
      ({ k }) => k.data.length < 3 || (k.data as Float32Array).some((x) => x === 0),
    );
    expect(shape).toMatchObject({ ...single, keys: 3, qkDim: 1 });
    expect([...(problem.k.data as Float32Array)]).toEqual([1, 1, 1]);
  });

  it('steps: two blocks, one row, and few dimensions', () => {
    for (const name of ['steps-below', 'steps-above'] as const) {
      const { shape, evaluations } = counterexample({ regimes: [name] }, () => false);
      expect(shape).toMatchObject({ ...single, keys: 129, vDim: 1 });
      expect(shape.qkDim).toBeLessThanOrEqual(3);
      expect(evaluations).toBeLessThan(250);
    }
  });

  it('negative scores: one query, one key, and a score of −40 or less', () => {
    const { shape, problem } = counterexample({ regimes: ['negative-scores'] }, () => false);
    expect(shape).toMatchObject({ ...single, keys: 1, qkDim: 1 });
    const { values, scale } = decodeProblem(problem);
    expect(values.q[0] * values.k[0] * scale).toBeLessThanOrEqual(-40);
  });

  it('but examples, and problems that special values took out of it, become anything', () => {
    const [example] = fc.sample(attentionProblem({ regimes: ['ones'] }), { seed: 1, numRuns: 1 });
    const details = fc.check(
      fc.property(attentionProblem({ regimes: ['ones'] }), (_given: Problem) => false),
      { numRuns: 1, examples: [[example!]] },
    );
    expect(decodeProblem(details.counterexample![0]).values.v).toEqual(Float64Array.of(0));
    const { problem } = counterexample(
      { regimes: ['ones'], formats: ['fp32'], specialValues: ['nan'] },
      ({ v }) => (v.data as Float32Array).every((x) => !Number.isNaN(x)),
    );
    expect(problem.v.data).toEqual(Float32Array.of(NaN));
  });
});
