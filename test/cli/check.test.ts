import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { lawIds, laws, regimeNames } from '../../properties/index.js';
import { openTensorFile, readProblem } from '../../src/io/index.js';
import { runAudit } from '../../src/cli/audit/run.js';
import { validateCheckReport } from '../../src/report/validation/index.js';
import type { AuditReport } from '../../src/report/json/audit-report.js';
import type { CheckReport } from '../../src/report/json/check/index.js';
import type { ReportedProblem } from '../../src/report/json/index.js';
import { RequestError } from '../../src/request-error.js';
import { runInProcess } from './run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-check-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
afterEach(() => void vi.unstubAllEnvs());

/** A bug that a few runs of a law or two find, of this seed with little to simplify. */
const faulty = ['--kernel', 'fa4', '--variant', 'causal-one-more'];
const narrow = ['--property', 'within-bound', '--regime', 'normal', '--runs', '6', '--seed', '13'];

/** Small problems, which are judged and simplified sooner. */
const small = ['--promises', join(scratch, 'small.json')];
const sizes = { batch: { max: 1 }, kvHeads: { max: 1 }, queries: { max: 4 }, keys: { max: 4 } };
writeFileSync(small[1], JSON.stringify({ formats: ['bf16'], dims: [4], sizes }));

async function report(...args: string[]): Promise<CheckReport> {
  const { stdout } = await runInProcess('check', ...args, '--json', '-');
  const parsed = JSON.parse(stdout) as CheckReport;
  await validateCheckReport(parsed);
  return parsed;
}

function folder(name: string): string {
  return join(scratch, name);
}

describe('flashproof check, an emulated kernel', () => {
  inTurn('passes one that keeps its promises, and says how much was tried', async () => {
    const saveDir = folder('none');
    const { status, stdout, stderr } = await runInProcess(
      'check',
      '--kernel',
      'naive-fp32',
      '--runs',
      '3',
      '--seed',
      '1',
      '--save-dir',
      saveDir,
      '--property',
      'within-bound,determinism',
      '--regime',
      'normal',
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/^PASS: 2 properties hold \(6 problems in [\d.e-]+ s, seed 1\)\.\n/);
    expect(stdout).toMatch(/\n {2}within-bound +holds +3 +bound +\d+×\d+ d[\d/]+ h/);
    expect(stdout.split('\n').every((line) => line.length <= 80)).toBe(true);
    expect(existsSync(saveDir)).toBe(false);
  });

  inTurn(
    'fails one with a bug, saves the problem, and replays it with the same words',
    async () => {
      const saveDir = folder('saved');
      const { status, stdout } = await runInProcess(
        'check',
        ...faulty,
        ...narrow,
        '--save-dir',
        saveDir,
      );
      expect(status).toBe(1);
      expect(stdout).toMatch(/^FAIL: 1 of 1 property is violated/);
      const [name, ...more] = readdirSync(saveDir);
      expect(more).toEqual([]);
      expect(name).toMatch(/^within-bound-13-\d+\.safetensors$/);
      const wrong = /Wrong {5}([^]*?)\.\n {2}(?:Cause|Law)/
        .exec(stdout)![1]
        .replaceAll(/\n\s+/g, ' ');
      const path = join(saveDir, name!);
      expect(stdout).toContain(path);

      const again = await runInProcess('check', ...faulty, '--replay', path);
      expect(again.status).toBe(1);
      expect(again.stdout).toContain(`FAIL: within-bound is violated: ${wrong}.\n`);
      const mended = await runInProcess('check', '--kernel', 'fa4', '--replay', path, '--quiet');
      expect(mended).toEqual({ status: 0, stdout: 'PASS: within-bound holds.\n', stderr: '' });
    },
  );

  inTurn('saves what flashproof audit judges alike', async () => {
    const saveDir = folder('audited');
    const found = await report(...faulty, ...narrow, ...small, '--save-dir', saveDir);
    const { saved, problem, statement } = found.properties[0].violation!;
    const file = await openTensorFile(saved!);
    const read = await readProblem(file);
    expect(file.metadata).toMatchObject({ property: 'within-bound', choice: '0', seed: '13' });
    expect(file.metadata['kernel']).toBe('--kernel fa4 --variant causal-one-more');
    await file.close();
    const { causal, scale } = problem as ReportedProblem;
    expect(read).toMatchObject({ causal, scale });
    const spy = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    const options = { techniques: false, timeout: '60', falseAlarmRate: '1e-9' };
    const status = await runAudit([saved!], { ...options, as: 'fa4', json: '-' });
    const audited = JSON.parse(String(spy.mock.calls[0][0])) as AuditReport;
    spy.mockRestore();
    expect(status).toBe(1);
    expect(audited.verdict.pass).toBe(false);
    expect(audited.verdict.findings.map((finding) => finding.statement)).toContain(statement);
  });

  inTurn('tries the same problems with the same seed', async () => {
    const found = async () => {
      const args = ['--regime', 'normal,large', '--runs', '40', '--save-dir', folder('same')];
      const { seed, properties } = await report(...faulty, ...small, ...narrow, ...args);
      const { round, regime } = properties[0].violation!;
      return { seed, round, regime };
    };
    const first = await found();
    expect(first.seed).toBe(13);
    expect(await found()).toEqual(first);
  });

  inTurn('gives the command that replays as words, with every option that matters', async () => {
    const promised = ['--no-window', '--formats', 'bf16', '--promise', 'determinism=none'];
    const found = await report(
      ...faulty,
      ...narrow,
      ...small,
      ...promised,
      '--save-dir',
      folder("it's here"),
    );
    const { replay, saved } = found.properties[0].violation!;
    expect(replay).toEqual([
      ...['flashproof', 'check', ...faulty, ...small, '--formats', 'bf16', '--no-window'],
      ...['--promise', 'determinism=none', '--replay', saved],
    ]);
    expect((await runInProcess('check', ...replay!.slice(2), '--quiet')).status).toBe(1);
  });

  inTurn('keeps the finding when it cannot be saved', async () => {
    const blocked = folder('a file');
    writeFileSync(blocked, '');
    const { status, stdout, stderr } = await runInProcess(
      'check',
      ...faulty,
      ...narrow,
      ...small,
      '--save-dir',
      join(blocked, 'below'),
    );
    expect(status).toBe(1);
    expect(stdout).toMatch(/^FAIL: /);
    expect(stdout).not.toMatch(/\n {2}(Saved|Replay)/);
    expect(stderr).toMatch(/^flashproof: not saved: [^\n]*--save-dir: [^\n]*\n$/);
  });

  inTurn('writes JUnit with a case per property, and annotations for GitHub', async () => {
    vi.stubEnv('GITHUB_ACTIONS', 'true');
    const junit = join(scratch, 'check.xml');
    const { stdout } = await runInProcess(
      'check',
      ...faulty,
      ...small,
      '--regime',
      'normal',
      '--runs',
      '6',
      '--seed',
      '13',
      '--quiet',
      '--property',
      'within-bound',
      '--property',
      'determinism',
      '--promise',
      'determinism=none',
      '--junit',
      junit,
      '--save-dir',
      folder('github'),
    );
    expect(stdout).toMatch(/^FAIL: .*\n::error title=flashproof within-bound::[^\n]+%0AReplay: /);
    const xml = readFileSync(junit, 'utf8');
    expect(xml).toMatch(/tests="2" failures="1" errors="0" skipped="1"/);
    expect(xml).toMatch(/<testcase name="determinism"[^>]*>\s*<skipped message="not promised"\/>/);
    expect(xml).toMatch(/<testcase name="within-bound"[^>]* time="[\d.]+">\s*<failure message="/);
  });

  inTurn('takes promises from flags, else from a file, else from the model', async () => {
    const path = join(scratch, 'promises.json');
    writeFileSync(
      path,
      JSON.stringify({
        formats: ['fp16'],
        causal: false,
        dims: [64],
        laws: { determinism: 'none' },
      }),
    );
    const { promises, properties } = await report(
      '--kernel',
      'naive-fp32',
      '--promises',
      path,
      '--dims',
      '8,16',
      '--causal',
      '--property',
      'within-bound,determinism',
      '--regime',
      'normal',
      '--runs',
      '1',
    );
    expect(promises).toMatchObject({ formats: ['fp16'], causal: true, dims: [8, 16], lse: true });
    expect(properties.map(({ promise }) => promise)).toEqual(['bound', 'none']);
    const special = await report(
      '--kernel',
      'naive-fp32',
      '--causal-only',
      '--group-sizes',
      '1,4',
      '--multiples',
      'keys=8,queries=2',
      '--property',
      'within-bound',
      '--runs',
      '1',
    );
    expect(special.promises).toMatchObject({
      causal: 'only',
      groupSizes: [1, 4],
      multiples: { keys: 8, queries: 2 },
    });
    for (const [text, message] of [
      ['{"formats": ["bf17"]}', /\/formats\/0 must be equal to one of/],
      ['{"causal": "no"}', /\/causal must be equal to one of the allowed values/],
      ['{"casual": false}', /has "casual", which it does not know; did you mean causal; /],
      ['{', /is no JSON/],
    ] as const) {
      writeFileSync(path, text);
      const refused = runInProcess('check', '--kernel', 'fa4', '--promises', path);
      await expect(refused).rejects.toThrow(message);
      await expect(refused).rejects.toThrow(RequestError);
    }
  });

  it('fails where it is strict and a promised property was never tried, and says so anyway', async () => {
    const args = ['--kernel', 'naive-fp32', '--runs', '1', '--seed', '1', '--regime', 'normal'];
    const path = join(scratch, 'one-query.json');
    writeFileSync(path, JSON.stringify({ sizes: { queries: { max: 1 } } }));
    const some = [...args, '--property', 'query-order,determinism', '--promises', path];
    const lax = await runInProcess('check', ...some);
    expect(lax.status).toBe(0);
    expect(lax.stdout).toMatch(/^PASS: 1 property holds, 1 was never tried \(1 problem in /);
    expect(lax.stdout).toMatch(/\nNever tried\n {2}query-order +none of its problems could be/);
    const strict = await runInProcess('check', ...some, '--strict');
    expect(strict.status).toBe(1);
    expect(strict.stdout).toMatch(/^FAIL: 1 property holds, 1 was never tried, which --strict/);
    const shard = ['--shard', '1/2', '--strict'];
    await expect(runInProcess('check', ...some, ...shard)).rejects.toThrow(/flashproof merge$/);
  });

  it('lists every property and every regime', async () => {
    const { status, stdout } = await runInProcess('check', '--list');
    expect(status).toBe(0);
    for (const name of [...lawIds, ...regimeNames]) expect(stdout).toContain(`\n  ${name}\n`);
    const flowing = stdout.replaceAll(/\s+/g, ' ');
    for (const id of lawIds) expect(flowing).toContain(`${laws[id].statement}.`);
  });

  const wrong: readonly (readonly [what: string, args: string[], message: RegExp])[] = [
    ['no kernel', [], /--kernel <model>, --exec .* or --launch/],
    ['two kernels', ['--kernel', 'fa4', '--exec', 'cat'], /leave out one/],
    ['an unknown model', ['--kernel', 'fa5'], /there are fa4/],
    ['an unknown setting', ['--kernel', 'fa4', '--set', 'degree=3'], /no setting "degree"/],
    ['an unknown variant', ['--kernel', 'fa4', '--variant', 'x'], /no variant "x"/],
    ['a variant of another', ['--kernel', 'naive-fp32', '--variant', 'x'], /a bug of fa4/],
    ['a variant of a command', ['--exec', 'cat', '--variant', 'x'], /--kernel/],
    ['settings of a command', ['--exec', 'cat', '--set', 'a=b'], /--kernel or --as/],
    ['two arithmetics', ['--kernel', 'fa4', '--as', 'fa4'], /leave out --as/],
    [
      'an unknown property',
      ['--kernel', 'fa4', '--property', 'x'],
      /names no property "x"; flashproof check --list lists all \d+$/,
    ],
    [
      'a property of a few letters else',
      ['--kernel', 'fa4', '--property', 'gradients-linaer'],
      /; did you mean gradients-linear or gradients-[\w-]+ or gradients-[\w-]+; flashproof check --list lists all \d+$/,
    ],
    [
      'a promise of no property',
      ['--kernel', 'fa4', '--promise', 'with-bound=none'],
      /names no property "with-bound"; did you mean within-bound( or [\w-]+){0,2}; flashproof check --list/,
    ],
    ['an unknown regime', ['--kernel', 'fa4', '--regime', 'x'], /names no regime "x"/],
    ['an unknown format', ['--kernel', 'fa4', '--formats', 'bf17'], /choose from fp64/],
    ['no runs', ['--kernel', 'fa4', '--runs', '0'], /whole number from 1/],
    ['a seed that is none', ['--kernel', 'fa4', '--seed', '1.5'], /give a whole number/],
    ['no time', ['--kernel', 'fa4', '--seconds', '0'], /positive number/],
    ['dims that are none', ['--kernel', 'fa4', '--dims', '64,,'], /as in 64,128/],
    ['two words on causal masks', ['--kernel', 'fa4', '--causal-only', '--no-causal'], /leave out/],
    ['multiples of nothing', ['--kernel', 'fa4', '--multiples', 'keys'], /as in keys=64/],
    ['multiples of no size', ['--kernel', 'fa4', '--multiples', 'key=2'], /names no size "key"/],
    ['a threshold below 0', ['--kernel', 'fa4', '--rescale-threshold', '-1'], /from 0/],
    ['a promise of nothing', ['--kernel', 'fa4', '--promise', 'within-bound'], /=bits/],
    [
      'a strength that a property has not',
      ['--kernel', 'fa4', '--promise', 'within-bound=bits'],
      /bound, none/,
    ],
    ['no such file', ['--kernel', 'fa4', '--replay', '/no/such'], /no such file/],
    [
      'a problem without a case',
      [
        '--kernel',
        'fa4',
        '--replay',
        'fixtures/attention/03-sink-256x256-d64-bf16-causal.safetensors',
      ],
      /notes no property/,
    ],
    ['two reports on stdout', ['--kernel', 'fa4', '--json', '-', '--junit', '-'], /name a file/],
    [
      'nothing to try',
      ['--kernel', 'fa4', '--property', 'within-bound', '--promise', 'within-bound=none'],
      /^nothing was checked: .*\(within-bound: not promised\)/,
    ],
    ['formats that the model does not take', ['--kernel', 'fa4', '--formats', 'fp64'], /fp64/],
  ];
  it.each(wrong)('refuses %s in one line', async (_, args, message) => {
    const error: unknown = await runInProcess('check', ...args).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RequestError);
    expect((error as Error).message).toMatch(message);
    expect((error as Error).message).not.toContain('\n');
  });
});
