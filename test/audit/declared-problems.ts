import * as fc from 'fast-check';
import { attentionProblem } from '../../properties/problems/problem-arbitrary.js';
import { isWithinScoreLimit } from '../../properties/laws/promised-problem.js';
import type { Problem } from '../../src/problem/index.js';
import { filledProblem, sumNormalNumbers, uniformNumbers } from '../setup/problems.js';

/** Sizes of one problem of normal numbers. */
export interface NormalSizes {
  readonly heads: number;
  readonly queries: number;
  readonly keys: number;
  readonly dim: number;
}

function normalProblem(sizes: NormalSizes, seed: number): Problem {
  return filledProblem({ ...sizes, batch: null }, sumNormalNumbers(uniformNumbers(seed)));
}

/**
 * One bf16 or fp16 problem of any regime, in turn with problems of normal numbers.
 * @param scaled the largest that its scaled scores may be
 */
export function drawProblem(
  seed: number,
  turn: number,
  scaled = Infinity,
  sizes: NormalSizes | null = null,
): Problem {
  if (sizes !== null) return normalProblem(sizes, seed);
  const limit = { raw: Math.min(2 ** 15, 8 * scaled), scaled: Math.min(scaled, 2 ** 12) };
  const problems = attentionProblem({
    formats: ['bf16', 'fp16'],
    scales: ['default', 'odd'],
    queries: { max: 80 },
    keys: { max: 200 },
    softcap: false,
  });
  const drawn = fc.sample(problems, { seed: seed ^ (turn << 8), numRuns: 40 });
  const fitting = drawn.find((problem) => isWithinScoreLimit(problem, limit));
  return fitting ?? normalProblem({ heads: 1, queries: 30, keys: 90, dim: 4 }, seed);
}
