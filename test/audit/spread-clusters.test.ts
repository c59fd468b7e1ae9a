import { describe, expect, it } from 'vitest';
import { runKernelModel } from '../../kernels/index.js';
import { randomValues } from '../../properties/problems/values.js';
import {
  fa4Arithmetic,
  judgeOutputs,
  type Judgement,
  type KernelOutputs,
} from '../../src/audit/index.js';
import type { FormatName } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import { sampled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { filledProblem } from '../setup/problems.js';
import { encode } from './damage.js';
import { roundingKernel } from './rounding-kernel.js';

const inTurn = turns(import.meta.url);

/** Eight-bit inputs come with a 16-bit output, the others with their own format. */
const outputFormats = { bf16: 'bf16', fp16: 'fp16', e4m3: 'bf16', e5m2: 'fp16' } as const;
type Format = keyof typeof outputFormats;
const formatNames = Object.keys(outputFormats) as Format[];

/** Values of V by key and column: what a row's error adds up to is the sum of its weights' errors. */
const valueKinds = {
  'all 1': () => 1,
  'one number a column': (_, column) => 1 + (column % 8) / 8,
  'of one sign': (key) => 1 + ((key * 5) % 8) / 8,
} satisfies Record<string, (key: number, column: number) => number>;
type ValueKind = keyof typeof valueKinds;

/** Scores that spread over about 2^-`halvings` nats, so that all weights are within an ulp or two. */
function clusteredProblem(
  format: Format,
  kind: ValueKind,
  halvings: number,
  { queries, keys }: { readonly queries: number; readonly keys: number },
): Problem {
  const [qkDim, vDim] = [7, 2];
  const { integer } = randomValues(halvings * 977 + keys);
  const entry = () => integer(-4, 4) / 4;
  const value = (i: number) => valueKinds[kind](Math.floor(i / vDim), i % vDim);
  return filledProblem(
    { queries, keys, dim: qkDim, vDim, format },
    { q: entry, k: entry, v: value },
    { scale: 2 ** -halvings },
  );
}

const judge = (problem: Problem, outputs: KernelOutputs, isKnown: boolean): Judgement =>
  judgeOutputs(problem, outputs, {
    diagnose: false,
    ...(isKnown ? { arithmetic: fa4Arithmetic(problem) } : {}),
  });

const sizes = [
  { queries: 24, keys: 32 },
  { queries: 8, keys: 130 },
] as const;
const spreads = [6, 9, 10];
// Every kind of values, each with one of the sizes and spreads, by TEST_SEED.
const someCases = (Object.keys(valueKinds) as ValueKind[]).flatMap((kind, place) => {
  const every = sizes.flatMap((size) => spreads.map((halvings) => ({ kind, size, halvings })));
  return sampled([...every.slice(2 * place), ...every.slice(0, 2 * place)], 1);
});

describe.each(formatNames)(
  '%s weights within an ulp or two, which round the same way',
  (format) => {
    inTurn('FlashAttention-4 raises no alarm, by its own bounds and by those of any kernel', () => {
      for (const { kind, size, halvings } of someCases) {
        const problem = clusteredProblem(format, kind, halvings, size);
        const outputs = runKernelModel('fa4', problem);
        for (const isKnown of [true, false]) {
          const { verdict } = judge(problem, outputs, isKnown);
          expect(verdict.findings, `${kind}, ${size.keys} keys, 2^-${halvings}`).toEqual([]);
        }
      }
    });

    inTurn('no kernel does that scales its weights by some other number', () => {
      const outputFormat: FormatName = outputFormats[format];
      for (const { kind, size, halvings } of someCases)
        // An eighth of a binade from case to case: somewhere weights are just off a tie.
        for (const lag of [1 / 16, (halvings * 5) / 8]) {
          const problem = clusteredProblem(format, kind, halvings, size);
          const outputs = roundingKernel(problem, { outputFormat, lag: () => lag, tile: 64 });
          const { verdict } = judge(problem, outputs, false);
          expect(verdict.findings, `${kind}, ${size.keys} keys, 2^-${halvings}, ${lag}`).toEqual(
            [],
          );
        }
    });
  },
);

// The outputs of these formats are finer than P by so much that their rounding does not hide its.
describe.each(['e4m3', 'e5m2'] as const)('of clustered %s weights', (format) => {
  it.each([6, 9])('the expected error is the one that they make, 2^-%i', (halvings) => {
    const problem = clusteredProblem(format, 'all 1', halvings, sizes[0]);
    const {
      outputs: {
        out: { spread },
      },
    } = judge(problem, runKernelModel('fa4', problem), true);
    expect(spread.measured).toBeGreaterThan(2 ** -14);
    expect(spread.expected / spread.measured).toBeGreaterThan(0.99);
    expect(spread.expected / spread.measured).toBeLessThan(1.05);
  });
});

describe('an error as large as the known roundings, of another sign or elsewhere', () => {
  it('is beyond the spread of a kernel whose arithmetic is known', () => {
    // Weights just below 1 round up to 1: O is too large, by half an ulp of e5m2 at most.
    const problem = clusteredProblem('e5m2', 'all 1', 9, sizes[0]);
    const outputs = runKernelModel('fa4', problem);
    expect(judge(problem, outputs, true).verdict.pass).toBe(true);
    const shape = outputs.out.shape;
    const moved = Float64Array.from({ length: 24 * 2 }, () => 1 + 2 ** -4);
    const out = encode(moved, 'fp16', shape);
    expect(judge(problem, { ...outputs, out }, true).verdict.pass).toBe(false);
  });
});
