import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import {
  auditAccuracy,
  judgeOutputs,
  sampleRows,
  type KernelOutputs,
} from '../../../src/audit/index.js';
import { encodeFromFloat64, formats } from '../../../src/formats/index.js';
import { auditKernel, type AuditRequest } from '../../../src/jobs/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { validateReport } from '../../../src/report/validation/index.js';
import { renderJunit } from '../../../src/report/junit/index.js';
import { renderAudit } from '../../../src/report/text/index.js';
import { testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { filledProblem, uniformNumbers } from '../../setup/problems.js';

const inTurn = turns(import.meta.url);

const [heads, queries, keys, dim] = [2, 192, 192, 8];
const rowCount = heads * queries;

const uniform = uniformNumbers(testSeed);
const normal = () => uniform() * 4 - 2;

const causal = filledProblem({ heads, queries, keys, dim }, normal, { causal: true });

const exact = attentionOracle(causal, { accuracy: auditAccuracy('bf16') }).quantities;

/** What a kernel gives that rounds the exact result once, with what is wrong with some of its rows. */
function outputsOf(change: (row: number, column: number) => number = () => 1) {
  const out = exact.out.values.map((x, i) => x * change(Math.floor(i / dim), i % dim));
  const outputs: KernelOutputs = {
    out: {
      format: 'bf16',
      shape: [1, heads, queries, dim],
      data: encodeFromFloat64(formats.bf16, out),
    },
    lse: {
      format: 'fp32',
      shape: [1, heads, queries],
      data: Float32Array.from(exact.lse.values),
    },
  };
  return outputs;
}

function request(outputs: KernelOutputs, rows: number | 'all', seed: number): AuditRequest {
  return {
    problem: causal,
    outputs,
    declared: { arithmetic: null, premises: {} },
    falseAlarmRate: 1e-9,
    techniques: false,
    measured: null,
    identify: false,
    rows: { count: rows, seed },
    origin: {
      version: '0',
      problem: { path: 'problem.safetensors', sha256: '0'.repeat(64) },
      outputs: {},
      command: null,
    },
  };
}

describe('an audit of a sample of rows', () => {
  inTurn('gives each row the bounds and errors that an audit of all rows gives it', () => {
    const outputs = outputsOf();
    const sampled = sampleRows(causal, outputs, { rows: 80, seed: testSeed })!;
    const bounds: Record<'whole' | 'part', Float64Array> = {
      whole: new Float64Array(),
      part: new Float64Array(),
    };
    const judge = (of: keyof typeof bounds, problem: Problem, given: KernelOutputs) =>
      judgeOutputs(problem, given, {
        onElements: (judged) => (bounds[of] = judged.bounds.quantities.out.total),
      });
    const whole = judge('whole', causal, outputs);
    const part = judge('part', sampled.problem, sampled.outputs);
    expect(whole.verdict.pass).toBe(true);
    expect(part.verdict.pass).toBe(true);
    const { queries: selected } = sampled.sample.selection;
    selected.forEach((query, row) => {
      const at = Math.floor(row / 40) * queries + query;
      for (let c = 0; c < dim; c++) {
        const [i, j] = [row * dim + c, at * dim + c];
        expect(part.outputs.out.values[i]).toBe(whole.outputs.out.values[j]);
        expect(part.reference.quantities.out.values[i]).toBe(
          whole.reference.quantities.out.values[j],
        );
        // A tile of rows has the blocks of keys that one of them sees, in a sample other ones.
        expect(bounds.part[i] / bounds.whole[j]).toBeCloseTo(1, 1);
      }
      expect(part.outputs.lse!.values[row]).toBe(whole.outputs.lse!.values[at]);
    });
  });

  it('says in every medium how many rows it judged, by which seed, and what it may have missed', async () => {
    const { report } = await auditKernel(request(outputsOf(), 60, 12));
    await validateReport(report);
    expect(report.problem.seqlenQ).toBe(queries);
    expect(report.sample).toMatchObject({ seed: 12, rows: 60, of: rowCount });
    expect(report.verdict.sentence).toContain('in 60 sampled rows of 384');
    const odds = report.sample!.odds.find(({ fault }) => fault === 'one row')!;
    for (const text of [renderAudit(report, { columns: 1000 }), renderJunit([report])]) {
      expect(text).toMatch(/60 of 384 rows, \d+ for their place and \d+ at random by seed 12/);
      expect(text).toContain('324 of 384 rows, which are not in the sample: a fault in 0.1 % of');
      expect(text).toContain(`in one row ${odds.seen.toPrecision(3)}`);
    }
  });

  it('says nothing of samples where all rows are judged', async () => {
    const { report } = await auditKernel(request(outputsOf(), 'all', 12));
    expect(report.sample).toBeNull();
    expect(report.verdict.sentence).not.toContain('sampled');
  });

  inTurn('fails a fault of a whole head, tile or band, at rows by their own numbers', async () => {
    const faults: Readonly<Record<string, (head: number, query: number) => boolean>> = {
      head: (head) => head === 1,
      tile: (head, query) => head === 1 && query >= 64 && query < 128,
      band: (_, query) => query % 10 === 3,
    };
    for (const [name, isFaulty] of Object.entries(faults)) {
      const outputs = outputsOf((row, column) =>
        column === 5 && isFaulty(Math.floor(row / queries), row % queries) ? 1.25 : 1,
      );
      const { audit } = await auditKernel(request(outputs, 60, testSeed));
      expect(audit.verdict.pass, name).toBe(false);
      expect(audit.verdict.sentence, name).toContain('60 sampled rows of 384');
      const { at } = audit.outputs.out.elements.worst!;
      expect(isFaulty(at.head, at.query!), `${name} at query ${at.query}`).toBe(true);
      expect(at.column).toBe(5);
      const { at: largest } = audit.outputs.out.error.worst!;
      expect(isFaulty(largest.head, largest.query!), name).toBe(true);
    }
  });

  inTurn('fails a fault in single rows exactly where one of them is in the sample', () => {
    const inner = outputsOf((row) => (row === 250 || row === 37 ? 1.5 : 1));
    for (let seed = testSeed; seed < testSeed + 6; seed++) {
      const { problem, outputs: own } = sampleRows(causal, inner, { rows: 160, seed })!;
      const isIn = [...problem.rows!.queries].some((query, i) =>
        [37, 250].includes(Math.floor(i / 80) * queries + query),
      );
      expect(judgeOutputs(problem, own, { diagnose: false }).verdict.pass).toBe(!isIn);
    }
  });

  it('refuses to identify a kernel by a sample', async () => {
    const identified = auditKernel({ ...request(outputsOf(), 60, 1), identify: true });
    await expect(identified).rejects.toThrow(/--identify compares whole outputs/);
  });
});
