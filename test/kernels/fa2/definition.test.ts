import * as fc from 'fast-check';
import { describe, expect } from 'vitest';
import {
  fa2Architectures,
  fa2Configuration,
  fa2Recipe,
  type Fa2Overrides,
} from '../../../kernels/index.js';
import { createForward } from '../../../kernels/online-softmax/forward.js';
import { attentionProblem } from '../../../properties/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { scaled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const problems = attentionProblem({
  formats: ['bf16', 'fp16'],
  softcap: false,
  specialValues: ['nan', 'infinity'],
  batch: { max: 2 },
  queries: { max: 140 },
  keys: { max: 300 },
  dims: [8, 24, 72, 136],
});

const overrides: fc.Arbitrary<Fa2Overrides> = fc.record({
  architecture: fc.constantFrom(...fa2Architectures),
  build: fc.constantFrom('pytorch' as const, 'flash-attn' as const),
  splits: fc.constantFrom(1, 1, 2, 3, 'auto' as const),
});

/** Everything that a run gives, numbers as bits. */
function results(problem: Problem, execution: 'plain' | 'webassembly', chosen: Fa2Overrides) {
  const shape = problemShape(problem);
  const recipe = fa2Recipe(problem, shape, fa2Configuration(problem, shape, chosen));
  const forward = createForward(problem, shape, recipe, { execution });
  return Array.from({ length: forward.tiles }, (_, tile) => {
    const { out, lse, rescales, counters } = forward.runTile(tile);
    return {
      out: [...out],
      lse: [...new Uint32Array(lse.buffer)],
      rescales: [...rescales],
      counters,
    };
  });
}

describe("FlashAttention-2's forward in WebAssembly", () => {
  inTurn('equals its definition, instruction by instruction', { timeout: 600_000 }, () => {
    fc.assert(
      fc.property(problems, overrides, (problem, chosen) => {
        expect(results(problem, 'webassembly', chosen)).toEqual(results(problem, 'plain', chosen));
      }),
      { numRuns: scaled(5) },
    );
  });
});
