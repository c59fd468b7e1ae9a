import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createFa4Forward, type Fa4Configuration } from '../../../../kernels/index.js';
import { attentionOracle } from '../../../../oracles/index.js';
import { attentionProblem, regimeNames } from '../../../../properties/index.js';
import { encodeFromFloat64, formats, patternsOf } from '../../../../src/formats/index.js';
import type { Problem } from '../../../../src/problem/index.js';
import { scaled } from '../../../setup/effort.js';
import { everything, nothing, runAttributed } from './run-attributed.js';
import { turns } from '../../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** The output's bit patterns by the fast model. */
function forwardBits(problem: Problem, configuration: Partial<Fa4Configuration>): number[] {
  const forward = createFa4Forward(problem, { configuration });
  return Array.from({ length: forward.tiles }, (_, tile) => [...forward.runTile(tile).out]).flat();
}

function bitsOf(problem: Problem, values: Float64Array): number[] {
  const format = formats[problem.q.format];
  return [...patternsOf(encodeFromFloat64(format, values), format)];
}

const configurations: fc.Arbitrary<Partial<Fa4Configuration>> = fc.record({
  architecture: fc.constantFrom('sm_90', 'sm_100'),
  rescaleThreshold: fc.constantFrom(0, 1, 8, Infinity),
  maxOffset: fc.constantFrom(0, 4, -3),
  blockKeys: fc.constantFrom(32, 64, 128),
  exp2: fc.record({
    frequency: fc.constantFrom(0, 10, 16),
    reserve: fc.constant(4),
    startFragment: fc.constantFrom(0, 1),
    degree: fc.constantFrom(1, 3, 5),
  }),
});

const runs = scaled(20);

const sizes = {
  formats: ['bf16', 'fp16'],
  softcap: false,
  queries: { max: 40 },
  keys: { max: 200 },
} as const;

describe('the forward with switches', () => {
  it('with every technique emulated equals the fast model bit for bit, on any problem', () => {
    const problems = attentionProblem({ ...sizes, specialValues: ['nan', 'infinity'] });
    fc.assert(
      fc.property(problems, configurations, (problem, configuration) => {
        const [out] = runAttributed(problem, [everything], configuration).outputs;
        expect(bitsOf(problem, out)).toEqual(forwardBits(problem, configuration));
      }),
      { numRuns: runs },
    );
  });

  inTurn('with none is exact attention, on any problem whose scores fp32 holds', () => {
    const problems = attentionProblem({
      ...sizes,
      scales: ['default', 'odd'],
      // A maximum beyond 2^24, kept in fp32, is off by whole units.
      regimes: regimeNames.filter((name) => !['wide-exponents', 'near-overflow'].includes(name)),
    });
    fc.assert(
      fc.property(problems, configurations, (problem, configuration) => {
        // Without a limit a maximum may lag so far that weights overflow even fp64.
        fc.pre(configuration.rescaleThreshold !== Infinity);
        const oracle = attentionOracle(problem);
        const [out] = runAttributed(problem, [nothing], configuration).outputs;
        out.forEach((x, i) => {
          const allowance = 1e-12 * oracle.quantities.out.magnitude[i];
          expect(Math.abs(x - oracle.quantities.out.values[i])).toBeLessThanOrEqual(allowance);
        });
      }),
      { numRuns: runs },
    );
  });
});
