import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { techniques } from '../../../kernels/index.js';
import { attentionOracle, WorkingMemories } from '../../../oracles/index.js';
import {
  anyKernelArithmetic,
  fa4Arithmetic,
  forEachRowsBound,
} from '../../../src/audit/bounds/index.js';
import { accumulatorLoss } from './loop-definitions.js';
import { createBoundMemory } from '../../../src/audit/bounds/memory.js';
import type { Problem } from '../../../src/problem/index.js';
import { filledProblem, pseudorandom, tensor } from '../../setup/problems.js';
import { Textbook } from '../hypotheses/textbook.js';
import { keepBounds } from './kept-bounds.js';

const names = ['mass', 'slack', 'perTile', 'floor', 'rescale'] as const;

/** Checks that two numbers are the same but for roundings in fp64. */
const near = (found: number, expected: number) => {
  if (!(Math.abs(found - expected) <= 1e-9 * Math.abs(expected))) expect(found).toBe(expected);
};

const seeds = fc.integer({ min: 1, max: 2 ** 20 });

describe('the sums with V of a row', () => {
  it('lose as much as Σ w|v| in units of the LSE says, with a sink or without', () => {
    const [heads, queries, keys, vDim] = [2, 70, 9, 3];
    const one = fc.record({
      seed: seeds,
      inLse: fc.constantFrom(null, true, false),
      size: fc.constantFrom(0, 440),
    });
    fc.assert(
      fc.property(one, ({ seed, inLse, size }) => {
        const random = pseudorandom(seed);
        const fills = { q: random, k: () => 3 * random(), v: () => 2 ** size * random() };
        const frame = { heads, queries, keys, dim: 2, vDim, format: 'fp64' } as const;
        const problem = filledProblem(frame, fills, {
          ...(inLse !== null && {
            sink: { logits: tensor('fp32', [heads], (h) => 1 - 2 * h), inLse },
          }),
        });
        const reference = attentionOracle(problem);
        const arithmetic = fa4Arithmetic(filledProblem({ ...frame, format: 'bf16' }, () => 0));
        const memory = createBoundMemory(2, vDim, keys);
        const memories = Object.assign(new WorkingMemories(), {
          lend: (_kind: string, _create: unknown, work: (lent: unknown) => unknown) => work(memory),
        }) as WorkingMemories;
        const book = new Textbook(problem);
        const scaled = size === 0 ? 1 : 2 ** -800;
        const visit = ({ firstRow, rows }: { firstRow: number; rows: number }) => {
          for (let i = 0; i < rows; i++) {
            const row = firstRow + i;
            const weights = [...book.scores(row)].map(Math.exp);
            const head = Math.floor(row / queries);
            // Weights are relative to the sum that the LSE is of.
            const sink = inLse === true ? Math.exp(1 - 2 * head) : 0;
            const total = weights.reduce((a, b) => a + b, sink);
            // All keys are one tile.
            const [mass, slack, perTile, floor, rescale] = names.map(
              (name) => memory[name].view[i],
            );
            for (let c = 0; c < vDim; c++) {
              const magnitude = weights.reduce(
                (sum, w, key) => sum + (w / total) * Math.abs(book.v(0, head, key, c)) * scaled,
                0,
              );
              const at = i * memory.vStride + c;
              near(memory.magnitude.view[at], magnitude);
              const terms = { mass, slack, perTile, floor, rescale };
              const squares = memory.squares.view[at];
              const { accumulated, rescaled } = accumulatorLoss(terms, 0, magnitude, squares);
              if (size === 0) expect(slack * perTile * magnitude).toBeGreaterThan(0);
              near(memory.accumulated.view[at], accumulated);
              near(memory.rescaled.view[at], rescaled);
            }
          }
        };
        forEachRowsBound(problem, reference, arithmetic, visit, { memories });
      }),
      { numRuns: 8 },
    );
  });
});

describe('a row whose scores are too large to be known', () => {
  const [queries, keys, dim] = [2, 5, 8];
  const dropout = {
    probability: 0.25,
    kept: { shape: [1, 1, queries, keys], data: new Uint8Array(queries * keys).fill(1) },
  };

  /** Two keys contend for the weight, by scores in the ten millions. */
  const problemOf = (seed: number, hasDropout: boolean, size: number): Problem => {
    const random = pseudorandom(seed);
    const fills = {
      q: () => 1,
      k: (i: number) => (i < 2 * dim ? 1 : random() / 2),
      v: () => size * (1.5 + random()),
    };
    return filledProblem({ queries, keys, dim, format: 'fp32' }, fills, {
      scale: 2 ** 22,
      ...(hasDropout && { dropout }),
    });
  };
  const boundsOf = (problem: Problem) => {
    const arithmetic = anyKernelArithmetic(problem, 'fp32');
    return { arithmetic, ...keepBounds(problem, attentionOracle(problem), arithmetic) };
  };

  it('has bounds that are as much larger as the values are', () => {
    fc.assert(
      fc.property(seeds, fc.boolean(), fc.constantFrom(2 ** 9, 2 ** -7), (seed, drops, size) => {
        const [ours, theirs] = [1, size].map((by) => boundsOf(problemOf(seed, drops, by)).out);
        expect([...ours.deviation].every((x) => x === 0)).toBe(true);
        for (const name of techniques)
          ours.techniques[name].forEach((x, i) => {
            if (x === 0) expect(theirs.techniques[name][i]).toBe(0);
            else expect(theirs.techniques[name][i] / (size * x), name).toBeCloseTo(1, 9);
          });
        ours.total.forEach((x, i) => expect(theirs.total[i] / (size * x)).toBeCloseTo(1, 9));
      }),
      { numRuns: 8 },
    );
  });

  it('has in each part of its bounds what the operations lose of one size', () => {
    for (const drops of [false, true]) {
      const { arithmetic, out } = boundsOf(problemOf(3, drops, 1));
      const ofDropout = arithmetic.dropout?.factor ?? 0;
      expect(ofDropout > 0).toBe(drops);
      const size = out.techniques['row-sum'].map((x) => x / (keys * arithmetic.rowSumAddition));
      size.forEach((x, i) => {
        expect(x).toBeGreaterThan(0.5);
        expect(x).toBeLessThan(2.6 * (drops ? 4 / 3 : 1));
        const loss = arithmetic.finish.normalise + ofDropout;
        expect(out.techniques.normalise[i] / (loss * x)).toBeCloseTo(1, 9);
      });
    }
  });
});
