import * as fc from 'fast-check';
import { describe, expect } from 'vitest';
import { createFa4Forward, type Fa4Configuration } from '../../../kernels/index.js';
import { attentionProblem } from '../../../properties/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { scaled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const formats = ['bf16', 'fp16', 'e4m3', 'e5m2'] as const;
const small = attentionProblem({
  formats,
  softcap: false,
  specialValues: ['nan', 'infinity'],
  batch: { max: 2 },
  queries: { max: 40 },
  keys: { max: 300 },
  qkDim: { max: 40 },
  vDim: { max: 40 },
});

const wide = attentionProblem({
  formats,
  softcap: false,
  queries: { max: 3 },
  keys: { max: 140 },
  qkDim: { min: 41, max: 256 },
  vDim: { min: 41, max: 256 },
});

const configuration: fc.Arbitrary<Partial<Fa4Configuration>> = fc.record({
  architecture: fc.constantFrom('sm_90' as const, 'sm_100' as const, 'sm_103' as const),
  exp2: fc.record({
    frequency: fc.constantFrom(0, 2, 8, 10, 14, 16, 32),
    reserve: fc.integer({ min: 0, max: 8 }),
    startFragment: fc.integer({ min: 0, max: 4 }),
    degree: fc.constantFrom(1 as const, 2 as const, 3 as const, 4 as const, 5 as const),
  }),
  rescaleThreshold: fc.constantFrom(0, 1, 8, 30, Infinity),
  maxOffset: fc.constantFrom(0, 8, -3),
  lseFused: fc.boolean(),
  blockKeys: fc.constantFrom(32, 64, 128),
  outFormat: fc.constantFrom('bf16' as const, 'fp16' as const),
  splits: fc.constantFrom(1, 1, 2, 5),
});

const descale = fc.float({ min: Math.fround(2 ** -10), max: 2 ** 10, noNaN: true });
const descales = fc.record({ q: descale, k: descale, v: descale });

/** Everything that a run gives, numbers as bits. */
function results(
  problem: Problem,
  execution: 'plain' | 'webassembly',
  chosen: Partial<Fa4Configuration>,
) {
  const forward = createFa4Forward(problem, { execution, configuration: chosen });
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

describe('the forward in WebAssembly', () => {
  inTurn('equals its definition, instruction by instruction', { timeout: 600_000 }, () => {
    fc.assert(
      fc.property(fc.oneof(small, wide), configuration, descales, (problem, chosen, descale) => {
        const is8Bit = problem.q.format === 'e4m3' || problem.q.format === 'e5m2';
        const all = is8Bit ? { ...chosen, descale } : chosen;
        expect(results(problem, 'webassembly', all)).toEqual(results(problem, 'plain', all));
      }),
      { numRuns: scaled(10) },
    );
  });
});
