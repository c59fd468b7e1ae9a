import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  attentionProblem,
  fittingRegimes,
  regimeNames,
  type ProblemConstraints,
} from '../../../properties/index.js';
import { decodeProblem } from '../../../properties/problems/plain-problem.js';
import { regimes } from '../../../properties/problems/regimes/index.js';
import { resolveTiling } from '../../../properties/problems/regimes/regime.js';
import { plainFormats } from '../../../src/formats/index.js';
import { storedOf } from '../../../src/problem/index.js';
import { testSeed } from '../../setup/effort.js';

describe('what fits a regime', () => {
  const narrow: readonly ProblemConstraints[] = [
    { queries: { max: 0 } },
    { keys: { max: 0 } },
    { keys: { max: 1 }, qkDim: { max: 1 } },
    { keys: { max: 2 }, queries: { max: 1 }, qkDim: { max: 9 } },
    { scales: ['zero'], keys: { max: 2 } },
    { scales: ['negative'], keys: { max: 3 } },
    { scales: ['odd'], keys: { max: 20 }, tiling: { blockKeys: 5, threshold: 3 } },
  ];

  it.each(narrow)('is of it, however narrow the constraints are: %o', (constraints) => {
    const features = ['mask', 'bias', 'alibi', 'sink', 'segments', 'packed', 'paged'] as const;
    const small = { queries: { max: 3 }, qkDim: { max: 12 }, vDim: { max: 2 }, batch: { max: 1 } };
    const given = { ...small, ...constraints, features };
    const tiling = resolveTiling(constraints.tiling);
    for (const name of fittingRegimes({ ...given, regimes: regimeNames })) {
      const of = {
        ...given,
        regimes: [name],
        formats: [plainFormats[testSeed % plainFormats.length]],
      };
      for (const problem of fc.sample(attentionProblem(of), { seed: testSeed, numRuns: 2 })) {
        const plain = { ...decodeProblem(problem), form: storedOf(problem)?.form };
        expect(regimes[name].holds(plain, tiling), name).toBe(true);
      }
    }
  });
});
