import { describe, expect, it } from 'vitest';
import * as jobs from '../../../src/jobs/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { filledProblem, tensor, uniformNumbers } from '../../setup/problems.js';

const normal = uniformNumbers(7);
/** Fills numbers so that the last ones are large. */
function lastOf(all: number, large: number): () => number {
  let placed = 0;
  return () => (placed++ < all - large ? normal() : 1e6);
}

const problem: Problem = filledProblem(
  { heads: 2, kvHeads: 1, queries: 140, keys: 130, dim: 8 },
  () => normal() * 4 - 2,
  {
    causal: true,
    bias: tensor('fp16', [2, 1, 130], normal),
    // Only the last row sees the last key, so that the largest output is in no head's first part.
    v: tensor('bf16', [1, 1, 130, 8], lastOf(130 * 8, 8)),
  },
);

function requestOf(
  given: Problem,
  options: Pick<jobs.BoundRequest, 'threads' | 'partEffort'>,
): jobs.BoundRequest {
  return {
    problem: given,
    kernel: undefined,
    as: undefined,
    premise: undefined,
    noted: undefined,
    settings: () => new Map(),
    hasSettings: false,
    outputFormat: null,
    origin: { version: '0', problem: { path: 'problem.safetensors', sha256: '0'.repeat(64) } },
    ...options,
  };
}

describe('the bounds of a problem on several threads', () => {
  const documentOf = async (options: Pick<jobs.BoundRequest, 'threads' | 'partEffort'>) => {
    const told: string[] = [];
    const { report } = await jobs.boundKernel(requestOf(problem, options), (stage, done) =>
      told.push(`${stage} ${done}`),
    );
    expect(told.at(-1)).toBe('bounds 1');
    return JSON.stringify({ ...report, seconds: 0, created: '' });
  };

  it('are those of one, byte for byte, in parts and at once', async () => {
    const one = await documentOf({ threads: 1, partEffort: 1 });
    expect((JSON.parse(one) as { techniques: object }).techniques).toMatchObject({
      elements: 2 * 140 * 8,
      unbounded: 0,
    });
    expect(await documentOf({ threads: 2, partEffort: 1 })).toBe(one);
    // Rows are added up in the same order, by whatever parts they come.
    expect(await documentOf({ threads: 1 })).toBe(one);
  });

  it('tell a bad request in one line', async () => {
    const bad = requestOf({ ...problem, scale: NaN }, { threads: 2, partEffort: 1 });
    await expect(jobs.boundKernel(bad)).rejects.toThrow(/^scale is NaN; give a finite/);
  });
});
