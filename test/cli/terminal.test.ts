import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { canRedraw, terminalLooks } from '../../src/cli/terminal.js';
import { runInProcess } from './run-in-process.js';
import { smallTensor, writeLaunch, x } from './small-launch.js';

const terminal = { isTTY: true } as NodeJS.WriteStream;
/** What a pipe or a file looks like. */
const pipe = {} as NodeJS.WriteStream;

describe('colour', () => {
  it.each([
    ['on a terminal', terminal, {}, true],
    ['into a pipe', pipe, {}, false],
    ['on a dumb terminal', terminal, { TERM: 'dumb' }, false],
    ['on any other', terminal, { TERM: 'xterm-256color' }, true],
    ['with NO_COLOR', terminal, { NO_COLOR: '1' }, false],
    ['with NO_COLOR of any value', terminal, { NO_COLOR: '0' }, false],
    ['with NO_COLOR empty, which does not count', terminal, { NO_COLOR: '' }, true],
    ['with FORCE_COLOR into a pipe', pipe, { FORCE_COLOR: '1' }, true],
    ['with FORCE_COLOR on a dumb terminal', terminal, { FORCE_COLOR: '1', TERM: 'dumb' }, true],
    ['with FORCE_COLOR=0', terminal, { FORCE_COLOR: '0' }, false],
    ['with both: NO_COLOR wins', terminal, { NO_COLOR: '1', FORCE_COLOR: '1' }, false],
  ] as const)('%s', (_, stream, environment, expected) => {
    expect(terminalLooks(stream, environment).color).toBe(expected);
  });
});

describe('sparklines', () => {
  const utf8 = { LANG: 'C.UTF-8' };
  it.each([
    ['on a terminal with UTF-8', terminal, utf8, true],
    ['by any spelling', terminal, { LANG: 'de_DE.utf8' }, true],
    ['of Windows Terminal', terminal, { WT_SESSION: '1' }, true],
    ['without a locale', terminal, {}, false],
    ['with another encoding', terminal, { LANG: 'de_DE.ISO-8859-1' }, false],
    ['where LC_ALL overrides LANG', terminal, { ...utf8, LC_ALL: 'C' }, false],
    ['where LC_CTYPE overrides LANG', terminal, { LANG: 'C', LC_CTYPE: 'C.UTF-8' }, true],
    ['where LC_ALL is empty, which does not count', terminal, { ...utf8, LC_ALL: '' }, true],
    ['into a pipe', pipe, utf8, false],
    ['on a dumb terminal', terminal, { ...utf8, TERM: 'dumb' }, false],
    ['without colours', terminal, { ...utf8, NO_COLOR: '1' }, true],
    ['with FORCE_COLOR into a pipe, whatever the locale', pipe, { FORCE_COLOR: '1' }, true],
    ['with FORCE_COLOR=0', terminal, { ...utf8, FORCE_COLOR: '0' }, false],
    ['with both, into a pipe', pipe, { ...utf8, NO_COLOR: '1', FORCE_COLOR: '1' }, false],
  ] as const)('%s', (_, stream, environment, expected) => {
    expect(terminalLooks(stream, environment).sparklines).toBe(expected);
  });
});

describe('the width', () => {
  it.each([
    ["a terminal's own", { columns: 72 }, { COLUMNS: '90' }, 72],
    ['of a wide one, as far as it reads well', { columns: 200 }, {}, 100],
    ['into a pipe', {}, {}, 80],
    ['into a pipe by COLUMNS', {}, { COLUMNS: '66' }, 66],
    ['by a COLUMNS that is no number', {}, { COLUMNS: 'wide' }, 80],
    ['by a COLUMNS of nothing', {}, { COLUMNS: '0' }, 80],
  ] as const)('is %s', (_, stream, environment, expected) => {
    expect(terminalLooks(stream as NodeJS.WriteStream, environment).columns).toBe(expected);
  });
});

describe('a line that is drawn again', () => {
  it('needs a terminal that is not dumb, whatever the colours', () => {
    expect(canRedraw(terminal, { NO_COLOR: '1' })).toBe(true);
    expect(canRedraw(terminal, { TERM: 'dumb', FORCE_COLOR: '1' })).toBe(false);
    expect(canRedraw(pipe, { FORCE_COLOR: '1' })).toBe(false);
  });
});

describe('--quiet', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'flashproof-quiet-'));
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));
  const fixture = 'fixtures/attention/12-tiny-128x256-d64-bf16.safetensors';
  const json = join(scratch, 'out.json');

  it.each([
    ['bound', fixture],
    ['emulate', 'naive-fp32', fixture, '--threads', '1'],
  ])('of %s prints nothing and writes what was asked for', async (...words) => {
    rmSync(json, { force: true });
    const { stdout, stderr, status } = await runInProcess(...words, '--quiet', '--json', json);
    expect([stdout, stderr, status]).toEqual(['', '', 0]);
    expect(existsSync(json)).toBe(true);
  });

  it('leaves --json - alone', async () => {
    const { stdout } = await runInProcess('bound', fixture, '-q', '--json', '-');
    expect(JSON.parse(stdout)).toMatchObject({ kind: 'bound' });
  });

  it('of doctor, run and certify prints the verdict, a line', async () => {
    const doctor = await runInProcess('doctor', '-q');
    expect(doctor.stdout).toMatch(/^[A-Z][^\n]*\n$/);
    await writeLaunch(scratch, [smallTensor('x', x), smallTensor('y', x)]);
    const launch = join(scratch, 'launch.json');
    const { stdout } = await runInProcess('run', launch, '-q');
    expect(stdout).toMatch(/^PASS [^\n]*\n$/);
    const certified = await runInProcess('certify', launch, '-q');
    expect(certified.stdout).toMatch(/^(CERTIFIED|INCOMPLETE)[^\n]*\n$/i);
  });

  it('of audit and check prints the verdict, a line', async () => {
    const audit = await runInProcess(
      'audit',
      fixture,
      '--output',
      ':torch_cudnn.out',
      '--quiet',
      '--no-techniques',
    );
    expect(audit.stdout).toMatch(/^PASS: [^\n]*\n$/);
    const check = await runInProcess(
      'check',
      '--kernel',
      'naive-fp32',
      '--runs',
      '1',
      '--seed',
      '1',
      '--quiet',
      '--property',
      'determinism',
    );
    expect(check.stdout).toMatch(/^PASS: [^\n]*\n$/);
  });
});
