import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeProblem } from '../../src/io/index.js';
import { validateCheckReport } from '../../src/report/validation/index.js';
import type { CheckReport } from '../../src/report/json/check/index.js';
import { RequestError } from '../../src/request-error.js';
import { builtDist } from '../setup/built-dist.js';
import { filledProblem } from '../setup/problems.js';
import { refusal, runInProcess } from './run-in-process.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-check-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const script = fileURLToPath(new URL('check-protocol-kernel.mjs', import.meta.url));

/** Small problems: less to send, and less to simplify. */
const promises = join(scratch, 'promises.json');
const sizes = { batch: { max: 1 }, kvHeads: { max: 2 }, queries: { max: 4 }, keys: { max: 4 } };
writeFileSync(promises, JSON.stringify({ formats: ['bf16'], dims: [4], sizes }));

const ordinary = filledProblem({ heads: 1, queries: 2, keys: 2, dim: 4, format: 'bf16' }, () => 1);

/** The options of a check of the script with one fault. */
function live(fault: string, ...more: string[]): string[] {
  return [
    ...['--exec', `"${process.execPath}" "${script}" ${fault}`, '--promises', promises],
    ...['--property', 'within-bound', '--regime', 'normal', '--seed', '5', '--runs', '6'],
    ...['--no-special-values', '--timeout', '60', '--save-dir', join(scratch, fault), ...more],
  ];
}

async function checked(fault: string, ...more: string[]) {
  const { status, stdout } = await runInProcess('check', ...live(fault, ...more), '--json', '-');
  const report = JSON.parse(stdout) as CheckReport;
  await validateCheckReport(report);
  return { status, report, violation: report.properties[0].violation };
}

describe('flashproof check, a live kernel', () => {
  it('passes one that computes attention, for any masks and shapes', async () => {
    const { status, report } = await checked('none', '--softcap', '--runs', '12');
    expect(report.verdict.sentence).toMatch(/^PASS: 1 property holds \(12 problems/);
    expect(status).toBe(0);
  });

  it('says once what the kernel writes that nothing reads', async () => {
    const asked = live('always-extra');
    const { status, stderr } = await runInProcess('check', ...asked, '--quiet');
    expect(status).toBe(0);
    expect(stderr.match(/^warning: .*\brow_max\b.*$/gm)).toHaveLength(1);
  });

  const faults: readonly (readonly [fault: string, statement: RegExp])[] = [
    ['crash', /^the kernel's process ended with status 3$/],
    ['garbage', /^the kernel's process wrote a line that is not JSON: "Loading weights…"$/],
    ['silent', /^the kernel's process answered but .*: there is no file where it was to write it$/],
    ['shape', /has shape \[\d+\] but the problem asks for/],
    ['one-percent', /O|output/],
    ['misspelt', /it holds "lsee" and no "lse"; call it so, or leave it out$/],
  ];
  it.each(faults)('finds that it does wrong, and simplifies: %s', async (fault, statement) => {
    const { status, violation } = await checked(fault);
    expect(status).toBe(1);
    expect(violation!.statement).toMatch(statement);
    expect(violation!.problem).toMatchObject({ causal: true });
    expect(violation!.simplifications).toBeGreaterThan(0);
    const replay = await runInProcess('check', ...violation!.replay!.slice(2), '--quiet');
    expect(replay.status).toBe(1);
    expect(replay.stdout).toContain(violation!.statement);
  });

  it('waits for one that hangs no longer than it was told, and does not try simpler problems', async () => {
    const { status, violation } = await checked('hang', '--timeout', '1.5');
    expect(status).toBe(1);
    expect(violation).toMatchObject({
      statement: "the kernel's process gave no answer within 1.5 s",
      simplifications: 0,
    });
  });

  it('goes on after what the kernel declines, and counts it', async () => {
    const { status, report } = await checked('decline');
    expect(status).toBe(0);
    expect(report.properties[0]).toMatchObject({ result: 'holds', runs: 6 });
    const none = runInProcess('check', ...live('always-decline'));
    await expect(none).rejects.toThrow(RequestError);
    await expect(none).rejects.toThrow(/^nothing was checked: .*no causal code path/);
  });

  it('passes no kernel that declines everything, in one run or in several', async () => {
    const exec = ['--exec', `"${process.execPath}" "${script}" always-decline`];
    const all = ['check', ...exec, '--promises', promises, '--runs', '2', '--seed', '1'];
    const file = (name: string) => join(scratch, name);
    const refused =
      /^nothing was checked: .*declined the problem: "no causal code path"\)?.*more\)/;
    await expect(runInProcess(...all, '--junit', file('none.xml'))).rejects.toThrow(refused);
    expect(readdirSync(scratch)).not.toContain('none.xml');
    await expect(runInProcess(...all, '--journal', file('none.jsonl'))).rejects.toThrow(refused);
    const parts = [1, 2].map((index) => file(`none-${index}.json`));
    for (const [i, part] of parts.entries())
      await expect(runInProcess(...all, '--shard', `${i + 1}/2`, '--json', part)).rejects.toThrow(
        refused,
      );
    await expect(runInProcess('merge', ...parts)).rejects.toThrow(refused);
    const { verdict } = JSON.parse(readFileSync(parts[0], 'utf8')) as CheckReport;
    expect(verdict.pass).toBe(false);
    expect(verdict.sentence).toMatch(/^NOTHING TRIED: /);
  });

  const broken: readonly (readonly [fault: string, sentence: RegExp])[] = [
    ['always-crash', /ended with status 3 before its first answer, 3 times in a row/],
    ['always-garbage', /not JSON: "Loading weights…"; its stdout is for answers only/],
  ];
  it.each(broken)('says so when there is no answer at all: %s', async (fault, sentence) => {
    const { status, report } = await checked(fault);
    expect(status).toBe(1);
    expect(report.execution).toMatch(sentence);
    expect(report.properties[0]).toMatchObject({ result: 'untried', runs: 0 });
    const [saved] = readdirSync(join(scratch, fault));
    expect(report.execution).toContain(saved);
    const { replay } = { replay: join(scratch, fault, saved!) };
    const again = await runInProcess('check', ...live(fault), '--replay', replay, '--quiet');
    expect(again.status).toBe(1);
    expect(again.stdout).toMatch(/^FAIL: within-bound is violated: the kernel's process/);
  });

  it('tells a kernel that serves one problem only from one that crashes on it', async () => {
    const { violation } = await checked('none 1');
    expect(violation!.statement).toMatch(/ended with status 3/);
  });

  const node = `"${process.execPath}"`;
  const unable: readonly (readonly [what: string, command: string, reason: RegExp])[] = [
    ['there is not', 'no-such-kernel-command', /ended with status 127/],
    ['names no file', `${node} no-such-kernel.mjs`, /ended with status 1 before it was asked/],
    ['lacks a module', `${node} -e "import('nothing')"`, /ended with status 1 before it was asked/],
    ['ends as if all were well', 'true', /ended with status 0 before it was asked/],
    [
      'begins elsewhere',
      'cd no-such-folder && exec cat',
      /ended with status \d before it was asked/,
    ],
    ['is empty', '', /^--exec is ""; give the command of a kernel$/],
    ['is blank', ' ', /^--exec is " "; give the command of a kernel$/],
  ];
  it.each(unable)('refuses a command that %s, in one line', async (_, command, reason) => {
    const exec = ['--exec', command];
    const saved = join(scratch, 'saved.safetensors');
    await writeProblem(saved, ordinary, { metadata: { property: 'within-bound' } });
    for (const words of [
      ['check', ...exec],
      ['check', ...exec, '--shard', '1/2', '--seed', '1', '--json', join(scratch, 'part.json')],
      ['check', ...exec, '--replay', saved],
      ['audit', saved, ...exec],
    ]) {
      const said = await refusal(...words);
      expect(said).toMatch(reason);
      expect(said).not.toContain('\n');
    }
  });

  it('starts a command that needs a second start', async () => {
    const log = join(scratch, 'starts');
    const flaky = `echo >> "${log}"; [ $(wc -l < "${log}") -ne 1 ] && exec ${node} "${script}" none`;
    const asked = live('none').with(1, flaky);
    expect((await runInProcess('check', ...asked, '--quiet')).status).toBe(0);
  });

  it('judges by the arithmetic of a model, and where the model takes no problem by any', async () => {
    const { status, report } = await checked('none', '--as', 'fa4', '--softcap');
    expect(report.kernel).toMatchObject({ judgedAs: 'fa4', model: null });
    expect(status).toBe(0);
    const refused = runInProcess('check', ...live('none', '--as', 'fa5'));
    await expect(refused).rejects.toThrow(
      /--as is "fa5"; did you mean fa4; give a kernel model or/,
    );
    const unknown = runInProcess('check', ...live('none', '--as', 'fa4', '--set', 'degree=3'));
    await expect(unknown).rejects.toThrow(/no setting "degree"/);
  });
});

describe('flashproof check, interrupted', () => {
  let main = '';
  beforeAll(async () => {
    main = join(await builtDist(), 'src/cli/main.js');
  });

  it('leaves neither a process nor a folder behind', async () => {
    const own = join(scratch, 'temporary');
    await mkdir(own);
    const child = spawn(process.execPath, [main, 'check', ...live('always-hang')], {
      env: { ...process.env, TMPDIR: own },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const folders = () => readdirSync(own);
    const isAsked = () =>
      folders().some((name) => readdirSync(join(own, name)).includes('problem.safetensors'));
    while (child.exitCode === null && !isAsked()) await sleep(20);
    const ended = new Promise((resolve) => child.once('close', resolve));
    child.kill('SIGINT');
    // `close` waits for whoever holds its stderr: for the kernel too.
    expect(await ended).toBe(130);
    expect(folders()).toEqual([]);
  });
});
