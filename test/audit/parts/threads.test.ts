import { readFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { attentionOracle, WorkingMemories } from '../../../oracles/index.js';
import { encodeFromFloat64, formats } from '../../../src/formats/index.js';
import * as jobs from '../../../src/jobs/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { filledProblem, tensor, uniformNumbers } from '../../setup/problems.js';

const frame = { heads: 2, kvHeads: 1, queries: 70, keys: 66, dim: 8 };

function requestOf(problem: Problem, threads: number, sizes = frame): jobs.AuditRequest {
  const { values } = attentionOracle(problem).quantities.out;
  const shape = [1, sizes.heads, sizes.queries, sizes.dim];
  const out = { format: 'bf16', shape, data: encodeFromFloat64(formats.bf16, values) } as const;
  return {
    problem,
    outputs: { out, lse: null },
    declared: { arithmetic: null, premises: {} },
    falseAlarmRate: 1e-9,
    techniques: true,
    measured: null,
    identify: false,
    threads,
    // Every tile of rows is a part.
    partEffort: 1,
    origin: {
      version: '0',
      problem: { path: 'problem.safetensors', sha256: '0'.repeat(64) },
      outputs: {},
      command: null,
    },
  };
}

describe('an audit on several threads', () => {
  const normal = uniformNumbers(5);
  const problem = filledProblem(frame, () => normal() * 4 - 2, {
    causal: true,
    bias: tensor('fp16', [2, 1, frame.keys], normal),
    sink: { logits: tensor('fp32', [2], normal), inLse: true },
  });
  const reportOf = async (threads: number) => {
    const { report } = await jobs.auditKernel(requestOf(problem, threads));
    return JSON.stringify({ ...report, seconds: 0, created: '' });
  };

  it('has the report of one, byte for byte', async () => {
    const one = await reportOf(1);
    expect(JSON.parse(one)).toMatchObject({ verdict: { pass: true } });
    expect(await reportOf(2)).toBe(one);
  });

  it('has it with a thread and memories that serve one audit after the other', async () => {
    // Of one part, and worth sending.
    const sizes = { ...frame, queries: 200, keys: 190 };
    const problems = [false, true, false].map((causal) =>
      filledProblem(sizes, () => normal() * 4 - 2, { causal }),
    );
    const helper = jobs.createHelperThread();
    const runner = vi.fn(helper!.runner);
    const memories = new WorkingMemories();
    try {
      for (const one of problems) {
        const request = { ...requestOf(one, 2, sizes), partEffort: undefined };
        const reports = [{}, { helper: { ...helper!, runner }, memories }].map(async (lasting) => {
          const { report } = await jobs.auditKernel(request, {}, lasting);
          return JSON.stringify({ ...report, seconds: 0, created: '' });
        });
        expect(await reports[1]).toBe(await reports[0]);
        await helper!.prepare();
      }
      expect(runner).toHaveBeenCalledTimes(problems.length);
      // The first does not wait until the thread has started.
      expect(runner.mock.results.map(({ value }) => value !== null)).toEqual([false, true, true]);
      const bad = { ...requestOf(problems[0], 2, sizes), problem: { ...problems[0], scale: NaN } };
      await expect(jobs.auditKernel(bad, {}, { helper })).rejects.toThrow(/^scale is NaN/);
    } finally {
      await helper!.close();
    }
  });

  it('tells a bad request in one line', async () => {
    const request = { ...requestOf(problem, 2), problem: { ...problem, scale: NaN } };
    await expect(jobs.auditKernel(request)).rejects.toThrow(/^scale is NaN; give a finite/);
  });

  it('has its worker among the files that are not to be left out', () => {
    const { sideEffects } = JSON.parse(readFileSync('package.json', 'utf8')) as {
      sideEffects: string[];
    };
    expect(sideEffects).toContain('./dist/src/jobs/parts/part-worker.js');
  });
});
