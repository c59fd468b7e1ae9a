import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import {
  anyKernelArithmetic,
  auditAccuracy,
  elementBounds,
  judgeOutputs,
  KernelBound,
} from '../../../src/audit/index.js';
import { decodeToFloat64, formats, type FormatName } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { encode } from '../damage.js';
import { roundingKernel } from '../rounding-kernel.js';
import { judgedFa4, judgedNaive } from './judged-kernels.js';
import { configurations, expectSound } from './random-problems.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** A seeded generator of numbers that are nearly normal. */
function normals(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    let sum = -6;
    for (let i = 0; i < 12; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      sum += state / 2 ** 32;
    }
    return sum;
  };
}

interface LargeScores {
  readonly format: FormatName;
  readonly queries: number;
  readonly keys: number;
  readonly dim: number;
  /** Standard deviation of the scaled scores. */
  readonly deviation: number;
  /** Keys come in clusters that differ by this part of themselves, so that several contend. */
  readonly nearness: number;
  readonly seed: number;
  readonly causal: boolean;
}

/** Scores of a large standard deviation, with keys that are nearly equal among them. */
function largeScores(sizes: LargeScores): Problem {
  const { format, queries, keys, dim, deviation, nearness, seed, causal } = sizes;
  const normal = normals(seed);
  const side = Math.sqrt(deviation);
  const tensor = (rows: number, value: (i: number) => number) =>
    encode(
      Float64Array.from({ length: rows * dim }, (_, i) => value(i)),
      format,
      [1, rows, dim],
    );
  const centres = Float64Array.from({ length: 4 * dim }, () => side * normal());
  return {
    q: tensor(queries, () => side * normal()),
    k: tensor(keys, (i) => {
      const cluster = Math.floor(i / dim) % 8;
      const centre = cluster < 4 ? centres[cluster * dim + (i % dim)] : side * normal();
      return centre + (cluster < 4 ? nearness * side * normal() : 0);
    }),
    v: tensor(keys, () => normal()),
    scale: 1 / Math.sqrt(dim),
    causal,
    window: null,
    softcap: null,
  };
}

function problems(format: FormatName, largest: number): fc.Arbitrary<Problem> {
  return fc
    .record({
      queries: fc.integer({ min: 1, max: 24 }),
      keys: fc.integer({ min: 1, max: 200 }),
      dim: fc.integer({ min: 4, max: 48 }),
      exponent: fc.integer({ min: 6, max: Math.log2(largest) }),
      nearness: fc.constantFrom(0, 2 ** -20, 2 ** -12, 2 ** -6),
      seed: fc.nat({ max: 2 ** 31 - 1 }),
      causal: fc.boolean(),
    })
    .map(({ exponent, ...rest }) => largeScores({ ...rest, format, deviation: 2 ** exponent }));
}

describe.each([
  ['bf16', 2 ** 30],
  ['fp16', 2 ** 12],
] as const)('%s scores of a standard deviation up to %d', (format, largest) => {
  inTurn(
    "keep FlashAttention-4's forward within its bounds, and any kernel's",
    () => {
      const all = problems(format, largest);
      expectSound('soundness-large-scores', 0.1, all, configurations, judgedFa4);
    },
    7_200_000,
  );

  inTurn(
    'keep textbook attention within its bounds',
    () => {
      const models = fc.constantFrom('naive-fp32' as const, 'naive-input' as const);
      const all = problems(format, format === 'fp16' ? 2 ** 6 : largest);
      expectSound('soundness-large-scores', 0.1, all, models, judgedNaive);
    },
    7_200_000,
  );
});

describe('large scores are judged', () => {
  inTurn.each([1e4, 2.3e4, 2 ** 19])('of a standard deviation of %d', (deviation) => {
    const problem = largeScores({
      format: 'bf16',
      queries: 48,
      keys: 96,
      dim: 48,
      nearness: 0,
      seed: 3,
      causal: false,
      deviation,
    });
    const correct = roundingKernel(problem, { outputFormat: 'bf16', lag: () => 0, tile: 32 });
    const judged = judgeOutputs(problem, correct);
    expect(judged.verdict.findings).toEqual([]);
    expect(judged.outputs.out.elements.unbounded).toBe(0);
    expect(judged.outputs.lse!.numbers.unbounded).toBe(0);
    const { out, lse } = correct;
    const values = { ...problem.v, shape: out.shape, data: problem.v.data.slice(0, 48 * 48) };
    const seven = encode(new Float64Array(48).fill(7), 'fp32', lse!.shape);
    const wrongOut = judgeOutputs(problem, { out: values, lse }, { diagnose: false });
    expect(wrongOut.outputs.out.elements.outside).toBeGreaterThan(0.8 * values.data.length);
    const wrongLse = judgeOutputs(problem, { out, lse: seven }, { diagnose: false });
    expect(wrongLse.outputs.lse!.numbers.outside).toBe(48);
  });

  it('by no more than the range of the values', () => {
    const problem = largeScores({
      format: 'bf16',
      queries: 64,
      keys: 96,
      dim: 32,
      seed: 5,
      causal: true,
      deviation: 2 ** 22,
      nearness: 2 ** -12,
    });
    const reference = attentionOracle(problem, { accuracy: auditAccuracy('fp32') });
    const arithmetic = anyKernelArithmetic(problem, 'fp32');
    const premises = new KernelBound(problem, reference, 'fp32');
    const {
      quantities: {
        out: { total },
      },
    } = elementBounds(problem, reference, arithmetic, premises);
    const v = decodeToFloat64(problem.v.data, formats.bf16);
    const range = (column: number) => {
      const ofColumn = v.filter((_, i) => i % 32 === column);
      return Math.max(...ofColumn) - Math.min(...ofColumn);
    };
    total.forEach((bound, i) => expect(bound).toBeLessThan(1.02 * range(i % 32) + 0.1));
    expect(total.some((bound) => bound > 0.3)).toBe(true);
  });
});
