import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import {
  auditOutputs,
  auditOutputsApart,
  measureApart,
  sampleRows,
  type PartSettings,
} from '../../../src/audit/index.js';
import { encodeFromFloat64, formats } from '../../../src/formats/index.js';
import {
  machineFiles,
  openTensorFile,
  problemOutline,
  writeSafetensors,
} from '../../../src/io/index.js';
import { sampleFile } from '../../../src/jobs/audit/sampled-file.js';
import { readShared, shareProblem } from '../../../src/jobs/audit/index.js';
import { testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { filledProblem, uniformNumbers } from '../../setup/problems.js';

const inTurn = turns(import.meta.url);

const frame = { heads: 4, kvHeads: 2, queries: 150, keys: 170, dim: 8 };
const uniform = uniformNumbers(testSeed);
const problem = filledProblem(frame, () => uniform() * 4 - 2, { causal: true });
const exact = attentionOracle(problem).quantities;
const request = { rows: 80, seed: 9 };

/** The exact output rounded once; that of head 2 by a factor. */
function outputsOf(factor: number) {
  const ofHead = frame.queries * frame.dim;
  const values = exact.out.values.map((x, i) => (Math.floor(i / ofHead) === 2 ? x * factor : x));
  return {
    out: {
      format: 'bf16',
      shape: [1, frame.heads, frame.queries, frame.dim],
      data: encodeFromFloat64(formats.bf16, values),
    },
    // Rows beyond the queries, as kernels pad them.
    lse: {
      format: 'fp32',
      shape: [1, frame.heads, 160],
      data: Float32Array.from({ length: frame.heads * 160 }, (_, i) =>
        i % 160 < 150 ? exact.lse.values[Math.floor(i / 160) * 150 + (i % 160)] : NaN,
      ),
    },
  } as const;
}

describe('a sample of rows of a problem in a file', () => {
  let folder = '';
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'flashproof-test-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const write = async (factor: number) => {
    const path = join(folder, `${factor}.safetensors`);
    const { q, k, v } = problem;
    await writeSafetensors(path, { q, k, v, ...outputsOf(factor) }, { causal: 'true' });
    return path;
  };

  /** What is judged with the keys in the file, and what with all in memory. */
  const both = async (factor: number) => {
    const path = await write(factor);
    const file = await openTensorFile(path);
    const outline = problemOutline(file, {})!;
    const places = { out: { file, name: 'out' }, lse: { file, name: 'lse' } };
    const sampled = (await sampleFile(file, outline, places, request))!;
    await file.close();
    const inMemory = sampleRows(problem, outputsOf(factor), request)!;
    expect(sampled.outputs).toEqual(inMemory.outputs);
    expect(sampled.problem.q).toEqual(inMemory.problem.q);
    expect(sampled.sample).toEqual(inMemory.sample);
    const source = shareProblem(sampled.problem, sampled.outputs, { path, formats: {} });
    const read = readShared(source, machineFiles);
    const start = (settings: PartSettings) => ({
      run: async (
        requests: Parameters<typeof measureApart>[0][],
        settle: (answer: ReturnType<typeof measureApart>, index: number) => void,
      ) => {
        for (const [index, one] of requests.entries())
          settle(measureApart(one, await Promise.all(one.parts.map(read)), settings, false), index);
      },
      close: async () => {},
    });
    const found = await auditOutputsApart(
      sampled.problem,
      sampled.outputs,
      { partEffort: 1 },
      { start: start as never },
      { readHead: (head) => read({ head, firstRow: 0, rows: 20 }) },
    );
    return { found, expected: auditOutputs(inMemory.problem, inMemory.outputs, { partEffort: 1 }) };
  };

  inTurn('is judged as one in memory, and no more of it is read than its parts', async () => {
    const { found, expected } = await both(1);
    expect(expected.verdict.pass).toBe(true);
    expect(found).toEqual(expected);
  });

  inTurn(
    'fails as one in memory does, for a cause that is looked for in the failing head',
    async () => {
      const { found, expected } = await both(1.125);
      const { verdict } = expected;
      expect(verdict.pass).toBe(false);
      expect(found.outputs).toEqual(expected.outputs);
      expect(found.verdict.findings).toEqual(verdict.findings);
      expect(found.verdict.diagnosis!.id).toBe(verdict.diagnosis!.id);
      expect(found.verdict.sentence).toMatch(/^FAIL: taking one head alone, .* \(head 2\)/);
    },
  );

  it('is read whole where it has more than q, k and v', async () => {
    const { q, k, v } = problem;
    const outlineOf = async (tensors: object, notes = {}) => {
      const path = join(folder, 'other.safetensors');
      await writeSafetensors(path, { q, k, v, ...tensors }, notes);
      const file = await openTensorFile(path);
      const outline = problemOutline(file, {});
      await file.close();
      return outline;
    };
    expect(await outlineOf({})).not.toBeNull();
    const bias = { format: 'fp32', shape: [150, 170], data: new Float32Array(150 * 170) };
    expect(await outlineOf({ bias })).toBeNull();
    const one = { format: 'fp32', shape: [1], data: Float32Array.of(2) };
    expect(await outlineOf({ q_descale: one })).toBeNull();
    expect(await outlineOf({}, { k_descale: '2' })).toBeNull();
    expect(await outlineOf({}, { prefix: '7' })).toBeNull();
    expect(await outlineOf({}, { layout: 'bshd' })).toBeNull();
  });
});
