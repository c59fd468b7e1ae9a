import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  type Tensor,
} from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { definedAttention } from '../../kernels/features/index.js';
import { upTo } from '../gradients/drawn-case.js';
import { drawnProblem, tryByHand, type DefinedRun } from './law-by-hand.js';

const exponents = [1, -1, 2, -2, 3, -3, 5, -5, 9, -9, 20, -20];
/** Zeros, usual numbers, small ones whose products are steady, and some so small that a product may underflow in fp32. */
const values = [0, 1.5, -0.75, 2 ** -25, -(2 ** -75)];

const withNumbers = (tensor: Tensor, number: (x: number, at: number) => number): Tensor => ({
  ...tensor,
  data: encodeFromFloat64(formats[tensor.format], decodeTensor(tensor).map(number)),
});

/** Problems whose keys are near to all queries, or so far from them that they weigh nothing beside near ones. */
const scaled: fc.Arbitrary<Problem> = fc
  .tuple(
    drawnProblem({ masked: true }),
    fc.array(fc.boolean(), { minLength: 7, maxLength: 7 }),
    fc.array(fc.constantFrom(...values), { minLength: 11, maxLength: 11 }),
  )
  .map(([problem, far, given]) => {
    const { qkDim } = problemShape(problem);
    return {
      ...problem,
      q: withNumbers(problem.q, () => 1),
      k: withNumbers(problem.k, (x, at) => (far[Math.floor(at / qkDim) % 7] ? -400 : x)),
      v: withNumbers(problem.v, (_, at) => given[at % 11]),
    };
  });

/** Whether no product of an element with a weight, before or after the scaling, is where fp32 underflows. */
function isSteady(problem: Problem, { visible, out }: DefinedRun, at: number, factor: number) {
  const { heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = problemShape(problem);
  const [q, k, v] = [problem.q, problem.k, problem.v].map((tensor) => decodeTensor(tensor));
  const [row, column] = [Math.floor(at / vDim), at % vDim];
  const head = Math.floor(row / queries);
  const kvHead = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
  const seen = visible[row].map((key) => kvHead * keys + key);
  const scores = seen.map((key) =>
    upTo(qkDim).reduce(
      (sum, t) => sum + problem.scale * q[row * qkDim + t] * k[key * qkDim + t],
      0,
    ),
  );
  const largest = Math.max(...scores);
  const areSteady = seen.every((key, j) => {
    const weight = Math.exp(scores[j] - largest);
    const product = Math.abs(v[key * vDim + column]) * weight;
    return product === 0 || weight < 2 ** -174 || product * Math.min(1, factor) > 2 ** -60;
  });
  // Results near the subnormal numbers of their format, and 0, are not well inside its range.
  return areSteady && Math.abs(out[at]) * Math.min(1, factor) >= 2 ** -125;
}

describe('V times a power of two', () => {
  it('scales each element of O that is steady, to the bit, and of the others nothing is said', async () => {
    let [steady, open] = [0, 0];
    await fc.assert(
      fc.asyncProperty(
        scaled,
        fc.nat({ max: exponents.length - 1 }),
        fc.nat(),
        async (problem, choice, which) => {
          const factor = 2 ** exponents[choice];
          const { statement, runs } = await tryByHand('value-scaling', problem, { choice });
          expect(statement).toBeNull();
          expect(decodeTensor(runs[1].problem.v)).toEqual(
            decodeTensor(problem.v).map((x) => x * factor),
          );
          const [first] = runs;
          const at = which % first.out.length;
          for (const run of [0, 1]) {
            const change = ({ out }: DefinedRun, index: number) => {
              if (index === run) out[at] += 2 ** -20 * Math.abs(out[at]) || 2 ** -20;
            };
            const moved = await tryByHand('value-scaling', problem, { choice, change });
            // What is moved in the first run is 0 no longer.
            const isZero = first.out[at] === 0;
            const isCompared = isSteady(problem, first, at, factor);
            if (!(isZero && run === 0)) expect(moved.statement !== null).toBe(isCompared);
            if (isCompared) {
              steady++;
              expect(moved.statement).toContain(` times 2^${exponents[choice]} at first but `);
              expect(moved.statement).toMatch(/^O at .* with V times 2\^-?\d+$/);
            } else open++;
          }
          const row = Math.floor(at / problemShape(problem).vDim);
          const lse = await tryByHand('value-scaling', problem, {
            choice,
            change: (run, index) => {
              if (index === 1) run.lse[row] = 77;
            },
          });
          const { lse: usual } = definedAttention(problem);
          expect(lse.statement).toMatch(/^the LSE at .* at first but 77 with V times /);
          expect(lse.statement).toContain(` is ${usual[row]} at first`);
        },
      ),
      { numRuns: 40 },
    );
    expect(steady).toBeGreaterThan(10);
    expect(open).toBeGreaterThan(10);
  });
});
