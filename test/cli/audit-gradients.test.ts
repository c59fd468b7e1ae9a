import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attentionGradients, attentionOracle } from '../../oracles/index.js';
import { writeSafetensors } from '../../src/io/index.js';
import { type AuditReport } from '../../src/report/json/index.js';
import { validateReport } from '../../src/report/validation/index.js';
import { normalCase } from '../audit/gradients/gradient-case.js';
import { encode } from '../audit/damage.js';
import { normalTensor, seededRandom } from '../kernels/features/index.js';
import { refusal, runInProcess } from './run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const audit = (...args: string[]) => runInProcess('audit', ...args, '--no-techniques');

describe('an audit of a file with gradients', () => {
  const { problem, dout, exact, shapes } = normalCase(
    { heads: 2, kvHeads: 1, queries: 40, keys: 56, dim: 16 },
    7,
    { causal: true },
  );
  const { q, k, v } = problem;
  const { out, lse } = attentionOracle(problem).quantities;
  const forward = {
    out: encode(out.values, 'bf16', [1, 2, 40, 16]),
    lse: encode(lse.values, 'fp32', [1, 2, 40]),
  };
  const gradients = {
    dq: encode(exact.dq, 'bf16', shapes.dq),
    dk: encode(exact.dk, 'bf16', shapes.dk),
    dv: encode(exact.dv, 'bf16', shapes.dv),
  };
  const wrong = {
    ...gradients,
    dk: encode(
      exact.dk.map((x) => x / problem.scale),
      'bf16',
      shapes.dk,
    ),
  };
  const notes = { scale: String(problem.scale), causal: 'true' };
  let folder = '';
  const path = (name: string) => join(folder, `${name}.safetensors`);

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'flashproof-gradients-'));
    const write = (name: string, tensors: Parameters<typeof writeSafetensors>[1]) =>
      writeSafetensors(path(name), { q, k, v, ...tensors }, notes);
    await write('both', { dout, ...forward, ...gradients });
    await write('alone', { do: dout, dq: gradients.dq, dv: gradients.dv });
    await write('wrong', { dout, ...forward, ...wrong });
    await write('plain', forward);
    await write('named', { dout, ...forward, 'mine.dk': gradients.dk });
  });
  afterAll(() => rm(folder, { recursive: true }));

  inTurn('judges outputs and gradients in one report, in every form', async () => {
    const files = [
      path('report').replace('.safetensors', '.json'),
      join(folder, 'x.xml'),
      join(folder, 'x.html'),
    ];
    const { status, stdout } = await audit(
      path('both'),
      ...['--json', files[0], '--junit', files[1], '--html', files[2]],
    );
    expect(status).toBe(0);
    expect(stdout).toMatch(/^PASS: the output and the LSE stay within/);
    expect(stdout.replace(/\s+/g, ' ')).toContain(
      'dQ, dK and dV stay within what rounding explains',
    );
    expect(stdout).toMatch(/^Gradients +largest/m);
    const report = JSON.parse(await readFile(files[0], 'utf8')) as AuditReport;
    await validateReport(report);
    expect(report.warnings).toEqual([]);
    expect(report.gradients).toMatchObject({ pass: true, judged: true, findings: [] });
    expect(report.gradients!.gradients.map(({ name }) => name)).toEqual(['dq', 'dk', 'dv']);
    for (const { flashAttention } of report.gradients!.gradients) {
      expect(flashAttention).toMatchObject({ pass: true });
      expect(flashAttention!.lowPrecisionMaxError).toBeGreaterThan(0);
    }
    expect(stdout).toMatch(/^FlashAttention's rule +dQ pass, dK pass, dV pass$/m);
    expect(report.gradients!.gradients[1].elements.worst!.at).toHaveProperty('key');
    expect(report.inputs.outputs.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['out', 'lse', 'dq', 'dk', 'dv', 'dout']),
    );
    const junit = await readFile(files[1], 'utf8');
    for (const name of ['dQ element bound', 'dK spread', 'dV sums'])
      expect(junit).toContain(`<testcase name="${name}"`);
    expect(junit).not.toContain('<failure');
    expect(await readFile(files[2], 'utf8')).toContain('id="gradients"');
  });

  it('judges gradients without the output, and says what it does not judge', async () => {
    const { status, stdout } = await audit(path('alone'), '--json', '-');
    expect(status).toBe(0);
    const report = JSON.parse(stdout) as AuditReport;
    await validateReport(report);
    expect(report.outputs).toBeNull();
    expect(report.verdict.sentence).toMatch(/^PASS: dQ and dV stay within/);
    expect(report.gradients!.notJudged).toContain('dK, since none was given');
    const text = await audit(path('alone'), '--full');
    expect(text.stdout).toMatch(/^Not judged +/m);
    expect(text.stdout).toMatch(/^Tests of gradients/m);
  });

  inTurn('judges the gradients of a bias and of sinks', async () => {
    const random = seededRandom(5);
    const biased = {
      ...problem,
      causal: false,
      bias: normalTensor(random, 'bf16', [2, 1, 56], 1),
      sink: { logits: normalTensor(random, 'fp32', [2], 1), inLse: true },
    };
    const { dbias, dsink } = attentionGradients(biased, dout);
    const write = (name: string, tensors: Parameters<typeof writeSafetensors>[1]) =>
      writeSafetensors(
        path(name),
        { q, k, v, bias: biased.bias, sink: biased.sink.logits, dout, ...tensors },
        { scale: notes.scale },
      );
    const given = {
      dbias: encode(dbias!.values, 'bf16', [1, 2, 1, 56]),
      dsink: encode(dsink!.values, 'fp32', [2]),
    };
    await write('shared', given);
    const files = [join(folder, 'shared.xml'), join(folder, 'shared.html')];
    const { status, stdout } = await audit(
      path('shared'),
      ...['--json', '-', '--junit', files[0], '--html', files[1]],
    );
    expect(status).toBe(0);
    const report = JSON.parse(stdout) as AuditReport;
    await validateReport(report);
    expect(report.verdict.sentence).toMatch(/^PASS: dBias and dSink stay within/);
    expect(report.gradients!.notJudged).toContain('dQ, dK and dV, since none was given');
    expect(report.gradients!.notJudged).toContain(
      "FlashAttention's rule for dBias and dSink, which its tests do not compare",
    );
    for (const { techniques } of report.gradients!.gradients)
      expect(techniques!.techniques.length).toBeGreaterThan(5);
    const [ofBias, ofSink] = report.gradients!.gradients;
    expect(Object.keys(ofBias.elements.worst!.at).sort()).toEqual(['batch', 'head', 'key']);
    expect(Object.keys(ofSink.elements.worst!.at).sort()).toEqual(['batch', 'head']);
    const junit = await readFile(files[0], 'utf8');
    expect(junit).toContain('<testcase name="dBias sums"');
    expect(junit).toContain('there is one number of each head');
    expect(await readFile(files[1], 'utf8')).toContain('dSink');
    const fitted = await audit(path('shared'), '--gradient-premise', 'fit,ds=fp32', '--json', '-');
    const withFits = JSON.parse(fitted.stdout) as AuditReport;
    await validateReport(withFits);
    expect(report.gradients!.fits).toEqual([]);
    expect(withFits.gradients!.fits).toHaveLength(4);
    for (const sentence of withFits.gradients!.fits)
      expect(sentence).toMatch(/^(Not c|C)onsistent with a kernel with D of .* dbias .* dsink /);
    const text = await audit(path('shared'), '--full');
    expect(text.stdout).toMatch(/^ {2}dBias element .* key \d+$/m);
    // Twice the sinks' gradient, by an option.
    const doubled = encode(
      dsink!.values.map((x) => 2 * x),
      'fp32',
      [2],
    );
    await write('doubled', { dbias: given.dbias, dsink: given.dsink, 'mine.dsink': doubled });
    const failed = await audit(path('doubled'), '--dsink', ':mine.dsink', '--json', '-');
    expect(failed.status).toBe(1);
    const { verdict, gradients: judged } = JSON.parse(failed.stdout) as AuditReport;
    expect(judged!.gradients.map(({ name }) => name)).toEqual(['dsink']);
    expect(verdict.findings[0].test).toBe('dsink-bound');
    expect(await refusal('audit', path('both'), '--dsink', ':lse')).toMatch(
      /^dsink is to be judged, but the problem has no sink/,
    );
    expect(await refusal('audit', path('shared'), '--dbias', ':dsink')).toMatch(
      /^dBias has shape \[2\] but the bias has \[2, 1, 56\]/,
    );
  });

  it('judges some rows and some keys, and says so', async () => {
    const { status, stdout } = await audit(
      path('both'),
      ...['--rows', '20', '--keys', '12', '--seed', '7', '--json', '-'],
    );
    expect(status).toBe(0);
    const report = JSON.parse(stdout) as AuditReport;
    await validateReport(report);
    expect(report.sample).toMatchObject({ rows: 20, of: 80, seed: 7 });
    const { gradients: judged, samples, notJudged } = report.gradients!;
    expect(samples).toEqual({
      rows: expect.objectContaining({ seed: 7, rows: 20, of: 80 }) as object,
      keys: { seed: 7, keys: 12, of: 56, edges: 2, random: 10 },
    });
    expect(judged.map(({ elements }) => elements.elements)).toEqual([320, 192, 192]);
    expect(notJudged).toContain('dQ of 60 of 80 rows, which are not in the sample');
    const keys = await audit(path('alone'), '--keys', '12', '--full');
    expect(keys.status).toBe(0);
    const text = keys.stdout.replace(/\s+/g, ' ');
    expect(text).toContain('PASS: dV stays within');
    expect(text).toMatch(
      /dK and dV were judged of 12 of 56 keys, 2 for their place and 10 at random by seed \d+\./,
    );
    expect(text).toContain('dQ, since a sample of rows judges dQ, and one of keys dK and dV');
    expect(text).toContain("FlashAttention's rule for gradients, which is of all rows and keys");
    // All of them is no sample.
    const all = await audit(path('both'), '--rows', 'all', '--keys', 'all', '--json', '-');
    const whole = JSON.parse(all.stdout) as AuditReport;
    expect(whole.gradients!.samples).toEqual({ rows: null, keys: null });
    expect(whole.gradients!.gradients).toHaveLength(3);
  });

  it('fails a report whose gradients fail, and names the cause', async () => {
    const { status, stdout } = await audit(path('wrong'), '--json', '-');
    expect(status).toBe(1);
    const report = JSON.parse(stdout) as AuditReport;
    await validateReport(report);
    expect(report.verdict.sentence).toMatch(
      /^FAIL: the scale is missing in dK: .*; of the output: /,
    );
    expect(report.verdict.diagnosis!.id).toBe('scale-missing');
    // 8 times what it should be, which the rule sees too.
    expect(report.gradients!.gradients.map(({ flashAttention }) => flashAttention!.pass)).toEqual([
      true,
      false,
      true,
    ]);
    expect(report.verdict.findings.every(({ quantity }) => quantity === 'dk')).toBe(true);
  });

  it('judges the gradients that options name, and refuses what cannot be judged', async () => {
    const named = await audit(path('named'), '--dk', ':mine.dk', '--json', '-');
    const report = JSON.parse(named.stdout) as AuditReport;
    expect(report.gradients!.gradients.map(({ name }) => name)).toEqual(['dk']);
    // Of an output that is named the file's gradients need not be.
    const other = await audit(path('wrong'), '--output', ':out', '--json', '-');
    expect(JSON.parse(other.stdout)).not.toHaveProperty('gradients');
    for (const [name, args, message] of [
      [
        'named',
        ['--dout', ':dout'],
        /there is none to judge; give --dq, --dk, --dv, --dbias, --dsink$/,
      ],
      [
        'both',
        ['--dq', ':dk'],
        /dQ has shape \[1, 1, 56, 16\] but the problem asks for \[1, 2, 40, 16\]/,
      ],
      ['both', ['--rows', '1'], /^1 rows are fewer than the 2 heads/],
      ['both', ['--keys', '0'], /^--keys is "0"; give a whole number from 1$/],
      ['both', ['--keys', '8', '--kernel', 'naive'], /^--keys is of gradients in files/],
      ['alone', ['--dk', ':dv', '--rows', '8'], /^a sample of rows judges dQ/],
      ['plain', ['--keys', '8'], /^--keys judges dK and dV of a sample of keys, and there are no/],
      ['both', ['--exec', 'true', '--dq', ':dq'], /^--dq is of gradients in files/],
      ['alone', ['--compare', 'x=:dq'], /^--compare is about the output/],
    ] as const)
      expect(await refusal('audit', path(name), ...args)).toMatch(message);
  });
});
