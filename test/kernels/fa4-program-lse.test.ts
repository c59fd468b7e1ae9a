import { expect } from 'vitest';
import { prepareFa4Program } from '../../kernels/fa4/program/index.js';
import { attentionOracle } from '../../oracles/index.js';
import { countDifferences, forwardBits, randomProblem, runProgram } from './fa4-program-runs.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

// The last tile of queries is ragged, with rows of two of its warps; heads that share keys, or do not.
inTurn.each([
  ['3 heads in one CTA', { heads: 3, queries: 131, ctas: 1 }],
  ['2 heads of one group in a pair of CTAs', { heads: 2, kvHeads: 1, queries: 290, ctas: 2 }],
] as const)('the program puts the LSE of every row where it belongs: %s', (_, given) => {
  const { ctas, ...sizes } = given;
  const problem = randomProblem({ ...sizes, keys: 40, dims: [64, 64], spread: 1, seed: 5 });
  const program = prepareFa4Program(problem, {}, { ctas, clusters: 8, races: false });
  expect(runProgram(program, forwardBits(problem))).toMatchObject({
    findings: [],
    isComplete: true,
    differences: 0,
  });
  // Also where a head comes before the one that its rows beyond the last query would lie in.
  for (let cluster = program.clusters - 1; cluster >= 0; cluster--) program.run(cluster);
  expect(countDifferences(program, forwardBits(problem))).toBe(0);
  const lse = new Float32Array(program.lse.buffer);
  const exact = attentionOracle(problem).quantities.lse.values;
  expect(lse.length).toBe(sizes.heads * sizes.queries);
  exact.forEach((x, row) => expect(Math.abs(lse[row] - x), `row ${row}`).toBeLessThan(1e-3));
  // Each row has an LSE of its own: a mix-up would show.
  expect(new Set(lse).size).toBeGreaterThan(lse.length * 0.95);
});
