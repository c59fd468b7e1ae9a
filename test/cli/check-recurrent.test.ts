import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { recurrentLawIds } from '../../properties/index.js';
import type { CheckList } from '../../src/cli/check/publish.js';
import type { CheckReport } from '../../src/report/json/check/index.js';
import { validateCheckReport } from '../../src/report/validation/index.js';
import { testSeed } from '../setup/effort.js';
import { refusal, runInProcess } from './run-in-process.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-check-recurrent-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const recurrent = ['check', '--contract', 'recurrent'];

async function reported(...options: readonly string[]) {
  const saved = ['--save-dir', join(scratch, 'failures')];
  const { status, stdout } = await runInProcess(...recurrent, ...options, ...saved, '--json', '-');
  const report = JSON.parse(stdout) as CheckReport;
  await validateCheckReport(report);
  return { status, report };
}

describe('flashproof check --contract recurrent, an emulated kernel', () => {
  it('passes one that computes linear attention, with its gradients', async () => {
    const model = 'naive-recurrent';
    const { status, report } = await reported(
      ...['--kernel', model, '--runs', '2', '--seed', String(testSeed)],
    );
    expect(report.verdict.sentence).toMatch(/^PASS: \d+ properties hold/);
    expect(status).toBe(0);
    expect(report).toMatchObject({ contract: 'recurrent', kernel: { model }, outOfTime: false });
    expect(report.properties.map(({ name }) => name)).toEqual(recurrentLawIds);
    const tried = report.properties.filter(({ result }) => result === 'holds');
    expect(tried.map(({ name }) => name)).toContain('gradients-within-bound');
  });

  it('finds a bug, and simplifies its problem', async () => {
    const { status, report } = await reported(
      ...['--kernel', 'naive-recurrent', '--variant', 'beta-missing', '--seed', '3'],
      ...['--property', 'within-bound,zero-strength', '--runs', '20'],
    );
    expect(status).toBe(1);
    expect(report.verdict.sentence).toMatch(/^FAIL: 2 of 2 properties are violated/);
    const { violation } = report.properties.find(({ name }) => name === 'zero-strength')!;
    expect(violation!.problem).toMatchObject({ lengths: [1], keyHeads: 1, valueHeads: 1 });
    expect(violation!.simplifications).toBeGreaterThan(0);
  });

  it('tries the properties and regimes that are named, the same by the same seed', async () => {
    const asked = [
      ...['--kernel', 'chunked', '--property', 'determinism', '--property', 'causality'],
      ...['--regime', 'one-token,chunk-edges', '--runs', '3', '--seed', '11'],
    ];
    const untimed = ({ created: _, seconds: __, verdict: ___, ...report }: CheckReport) => ({
      ...report,
      properties: report.properties.map(({ seconds: ____, ...property }) => property),
    });
    const [one, two] = [await reported(...asked), await reported(...asked)];
    expect(one.report.properties.map(({ name }) => name)).toEqual(['determinism', 'causality']);
    expect(untimed(one.report)).toEqual(untimed(two.report));
  });

  it('stops when the time is up, and says so', async () => {
    const { report } = await reported('--kernel', 'chunked', '--seconds', '0.05');
    expect(report.outOfTime).toBe(true);
    expect(report.verdict.sentence).toContain('the time was up');
  });

  it('writes text and JUnit XML', async () => {
    const junit = join(scratch, 'report.xml');
    const { stdout } = await runInProcess(
      ...[...recurrent, '--kernel', 'naive-recurrent', '--variant', 'decay-missing'],
      ...['--property', 'within-bound', '--runs', '30'],
      ...['--seed', '1', '--junit', junit, '--save-dir', join(scratch, 'failures')],
    );
    expect(stdout).toMatch(/^FAIL: 1 of 1 property is violated/);
    expect(stdout).toMatch(
      /^ {2}Problem +(simple-gla|gla|gated-delta|kda|retention), \d+ tokens?,/m,
    );
    const xml = readFileSync(junit, 'utf8');
    expect(xml).toContain('failures="1"');
    expect(xml).toMatch(/Problem: (simple-gla|gla|gated-delta|kda|retention), /);
  });

  it('lists properties and regimes', async () => {
    const { stdout } = await runInProcess(...recurrent, '--list', '--json', '-');
    const { properties, regimes, features } = JSON.parse(stdout) as CheckList;
    expect(properties.map(({ name }) => name)).toEqual(recurrentLawIds);
    expect(regimes.map(({ name }) => name)).toContain('steep-gates');
    expect(features).toEqual([]);
    const text = (await runInProcess(...recurrent, '--list')).stdout;
    expect(text).toContain('  token-by-token\n');
    expect(text).not.toContain('Features');
  });
});

const kernel = ['--kernel', 'chunked'];

describe('flashproof check --contract recurrent, refused in a line', () => {
  it.each([
    [
      ['--softcap'],
      /^--softcap is for attention; leave it out of a check with --contract recurrent$/,
    ],
    [['--no-window'], /^--no-window is for attention/],
    [['--as', 'fa4'], /^--as is for attention/],
    [['--shard', '1/2'], /^--shard is for attention/],
    [['--features', 'mask'], /^--features is for attention/],
    [
      ['--property', 'padding'],
      /^--property names no property "padding"; choose from within-bound/,
    ],
    [['--regime', 'normal'], /^--regime names no regime "normal"; choose from typical/],
    [['--variant', 'causal-one-more'], /^no bug of kernels of linear attention "causal-one-more"/],
    [['--formats', 'e4m3'], /^--formats names no format "e4m3"; choose from bf16, fp16, fp32$/],
    [['--promise', 'recall=bits'], /property recall can be promised as bound, none$/],
    [['--runs', '0'], /--runs/],
    [['--exec', 'true'], /^--kernel and --exec name two kernels/],
  ])('%j', async (options, message) => {
    expect(await refusal(...recurrent, ...kernel, ...options)).toMatch(message);
  });

  it('kernels of the other contract', async () => {
    expect(await refusal(...recurrent, '--kernel', 'fa4')).toMatch(
      /^no kernel model of linear attention "fa4"; there are naive-recurrent, chunked$/,
    );
    expect(await refusal('check', '--kernel', 'chunked')).toMatch(/add --contract recurrent$/);
    expect(await refusal('check', '--contract', 'softmax', ...kernel)).toMatch(
      /^--contract names no contract "softmax"; choose from attention, recurrent$/,
    );
    expect(await refusal(...recurrent)).toMatch(/^there is no kernel to check/);
    expect(existsSync(join(scratch, 'flashproof-failures'))).toBe(false);
  });
});
