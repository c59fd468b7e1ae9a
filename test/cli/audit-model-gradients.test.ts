import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type BackwardPiece,
  kernelModel,
  type KernelModel,
  kernelModels,
} from '../../kernels/index.js';
import { writeProblem, writeSafetensors } from '../../src/io/index.js';
import { type AuditReport } from '../../src/report/json/index.js';
import { validateReport } from '../../src/report/validation/index.js';
import { normalCase } from '../audit/gradients/gradient-case.js';
import { refusal, runInProcess, runInProcessWith } from './run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const folder = mkdtempSync(join(tmpdir(), 'flashproof-model-gradients-'));
const path = (name: string) => join(folder, `${name}.safetensors`);
const { problem, dout } = normalCase({ heads: 2, kvHeads: 1, queries: 24, keys: 32, dim: 16 }, 5, {
  causal: true,
});
const { q, k, v } = problem;
const notes = { scale: String(problem.scale), causal: 'true' };
const naive = kernelModels.find(({ name }) => name === 'naive-fp32')!;

beforeAll(async () => {
  await writeSafetensors(path('training'), { q, k, v, dout }, notes);
  await writeSafetensors(path('forward'), { q, k, v, 'mine.do': dout, short: k }, notes);
  const bias = { format: 'fp32' as const, shape: [1, 1, 24, 32], data: new Float32Array(24 * 32) };
  await writeProblem(path('biased'), { ...problem, bias });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The textbook model by another name, with a setting of its backward pass and other gradients. */
function changed(
  change: (made: BackwardPiece) => BackwardPiece,
  seen: unknown[] = [],
): KernelModel {
  const { prepare, ...rest } = naive.backward!;
  return {
    ...naive,
    name: 'mine',
    backward: {
      ...rest,
      settings: [{ key: 'order', description: 'of additions' }],
      arithmetic: (posed) => rest.arithmetic(posed, new Map()),
      prepare: (posed, inputs, settings) => {
        seen.push(settings.get('order'));
        const prepared = prepare(posed, inputs, new Map());
        return { ...prepared, run: (piece) => change(prepared.run(piece)) };
      },
    },
  };
}

const audited = (name: string, model: string) =>
  ['audit', path(name), '--kernel', model, '--threads', '1', '--no-techniques'] as const;

async function reportOf(stdout: string): Promise<AuditReport> {
  const report = JSON.parse(stdout) as AuditReport;
  await validateReport(report);
  return report;
}

describe('flashproof audit --kernel, of a problem with dO', () => {
  inTurn.each(['naive-fp32', 'naive-input'])("judges %s's own gradients", async (model) => {
    const { stdout, status } = await runInProcess(...audited('training', model), '--json', '-');
    expect(status).toBe(0);
    const report = await reportOf(stdout);
    expect(report.gradients!.gradients.map(({ name }) => name)).toEqual(['dq', 'dk', 'dv']);
    expect(report.gradients!.arithmetic).toMatch(/^the textbook kernel/);
    expect(report.inputs.command).toBe(`flashproof emulate ${model} --backward`);
    expect(report.warnings).toEqual([]);
    const sources = Object.fromEntries(report.inputs.outputs.map(({ name, path }) => [name, path]));
    expect(sources).toMatchObject({ out: null, dq: null, dk: null, dv: null });
    expect(sources.dout).toBe(path('training'));
  });

  inTurn('fails a model whose backward pass is wrong, in every form', async () => {
    const wrong = changed((made) => ({
      ...made,
      dk: made.dk.map((x) => x ^ 0x8000) as typeof made.dk,
    }));
    const files = ['json', 'xml', 'html'].map((end) => join(folder, `wrong.${end}`));
    const run = await runInProcessWith(
      { models: [wrong] },
      ...audited('training', 'mine'),
      ...['--json', files[0], '--junit', files[1], '--html', files[2]],
    );
    expect(run.status).toBe(1);
    expect(run.stdout).toMatch(/^FAIL: .*dK/);
    const report = await reportOf(readFileSync(files[0], 'utf8'));
    expect(report.verdict.findings.map(({ quantity }) => quantity)).toContain('dk');
    expect(readFileSync(files[1], 'utf8')).toContain('<failure');
    expect(readFileSync(files[2], 'utf8')).toContain('id="gradients"');
  });

  inTurn('takes dO from elsewhere, and settings of either pass', async () => {
    const seen: unknown[] = [];
    const model = changed((made) => made, seen);
    const { stdout } = await runInProcessWith(
      { models: [model] },
      ...audited('forward', 'mine'),
      ...[
        '--dout',
        ':mine.do',
        '--set',
        'order=any',
        '--json',
        '-',
        '--html',
        join(folder, 'x.html'),
      ],
    );
    expect((await reportOf(stdout)).gradients!.pass).toBe(true);
    expect(seen.length).toBeGreaterThan(0);
    expect(seen.every((order) => order === 'any')).toBe(true);
    // Without dO nobody knows of it.
    await expect(
      runInProcessWith({ models: [model] }, ...audited('forward', 'mine'), '--set', 'order=any'),
    ).rejects.toThrow(/has no setting "order"/);
  });

  it('says why gradients are not judged, and refuses where dO is named', async () => {
    const forwards = { models: [{ ...naive, name: 'forwards', backward: null }] };
    const { stdout, status } = await runInProcessWith(
      forwards,
      ...audited('training', 'forwards'),
      '--json',
      '-',
    );
    expect(status).toBe(0);
    const report = await reportOf(stdout);
    expect(report).not.toHaveProperty('gradients');
    expect(report.verdict.notes).toEqual([
      'no gradients are judged: forwards has no backward pass; choose a model that has one',
    ]);
    expect(report.warnings).toMatchObject([{ kind: 'unused-gradient', names: ['dout'] }]);
    await expect(
      runInProcessWith(forwards, ...audited('forward', 'forwards'), '--dout', ':mine.do'),
    ).rejects.toThrow(/^forwards has no backward pass; choose a model that has one$/);
    const rows = [...audited('training', 'naive-fp32'), '--rows', '8'];
    const sampled = await reportOf((await runInProcess(...rows, '--json', '-')).stdout);
    expect(sampled.verdict.notes.join()).toMatch(/no gradients are judged: every row adds/);
    expect(await refusal(...audited('forward', 'naive-fp32'), '--dout', ':short')).toMatch(
      /^dout has shape \[1, 1, 32, 16\]; give it that of the output, \[1, 2, 24, 16\]$/,
    );
    const plain = kernelModel({ ...naive, backward: { ...naive.backward!, features: [] } });
    const dO = ['--dout', `${path('training')}:dout`];
    await expect(
      runInProcessWith({ models: [plain] }, ...audited('biased', 'naive-fp32'), ...dO),
    ).rejects.toThrow(/^naive-fp32's backward takes no bias$/);
    expect(await refusal('audit', path('training'), '--exec', 'true', '--dout', ':dout')).toMatch(
      /^--dout is of gradients in files, or of --kernel; leave out --exec$/,
    );
  });
});
