import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { canRedraw, wantsColor } from '../../src/cli/progress.js';
import { runInProcess } from './run-in-process.js';

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
    expect(wantsColor(stream, environment)).toBe(expected);
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

  it('of audit and check prints the verdict, a line', async () => {
    const audit = await runInProcess(
      ...['audit', fixture, '--output', ':torch_cudnn.out', '--quiet', '--no-techniques'],
    );
    expect(audit.stdout).toMatch(/^PASS: [^\n]*\n$/);
    const check = await runInProcess(
      ...['check', '--kernel', 'naive-fp32', '--runs', '1', '--seed', '1', '--quiet'],
      ...['--property', 'determinism'],
    );
    expect(check.stdout).toMatch(/^PASS: [^\n]*\n$/);
  });
});
