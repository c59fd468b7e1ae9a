import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { techniqueNames } from '../../src/cli/profile/options.js';
import { techniques } from '../../src/profile/index.js';
import { builtDist } from '../setup/built-dist.js';
import { turns } from '../setup/turns.js';
import { refusal, runInProcess } from './run-in-process.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-profile-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe('flashproof profile', () => {
  let main = '';
  beforeAll(async () => {
    main = join(await builtDist(), 'src/cli/main.js');
  });
  const spawned = (...args: string[]) =>
    spawnSync(process.execPath, [main, 'profile', ...args], { encoding: 'utf8' });

  inTurn('gives the same figures whatever the number of threads', async () => {
    const range = ['exp2', '--degree', '3', '--from', '-2.5', '--to', '-2', '--json=-'];
    const runs = [
      await runInProcess('profile', ...range, '--threads', '1'),
      spawned(...range, '--threads', '3'),
    ];
    const results = runs.map(({ status, stdout, stderr }) => {
      expect(stderr).toBe('');
      expect(status).toBe(0);
      const { created, seconds, ...result } = JSON.parse(stdout) as Record<string, unknown>;
      expect(Date.parse(created as string)).toBeGreaterThan(0);
      expect(seconds).toBeGreaterThan(0);
      return result;
    });
    expect(results[1]).toEqual(results[0]);
    expect(results[0]).toMatchObject({
      kind: 'profile',
      schemaVersion: 1,
      technique: 'exp2',
      architecture: 'sm_90',
      range: { from: -2.5, to: -2 },
      domains: [{ inputs: 2 ** 21 + 1 }],
    });
  });

  it('prints tables and writes a plot', async () => {
    const svg = join(scratch, 'rcp.svg');
    const { status, stdout } = await runInProcess(
      'profile',
      'rcp',
      '--from',
      '1',
      '--to',
      '1.01',
      '--threads',
      '1',
      '--svg',
      svg,
    );
    expect(status).toBe(0);
    expect(stdout).toMatch(/^1\/x by the special function unit\n/);
    expect(stdout).toContain('sm_90 silicon, every input');
    expect(readFileSync(svg, 'utf8')).toMatch(/^<\?xml [^]*<svg [^]*<path [^]*<\/svg>\n$/);
  });

  it('labels the evidence by architecture', async () => {
    const range = ['--from', '1', '--to', '1.001', '--threads', '1'];
    const { stdout } = await runInProcess('profile', 'rcp', ...range, '--architecture', 'sm_100');
    expect(stdout).toContain('MUFU table from sm_90 silicon');
  });

  it('lists the techniques that there are', () => {
    expect(techniqueNames).toEqual(techniques.map(({ name }) => name));
    const { status, stdout } = spawned('--help');
    expect(status).toBe(0);
    // Lines are wrapped at the terminal's width.
    const words = stdout.split(/\s+/).join(' ');
    for (const { name, description } of techniques)
      expect(words).toContain(`${name} ${description}`);
  });

  it.each([
    [['tanh'], /^no profile of "tanh"; known are exp2, range-reduction, rcp, /],
    [['exp2', '--degree', '6'], /polynomials of degree 1 to 5/],
    [['rcp', '--degree', '3'], /^the profile of rcp has no --degree; leave it out/],
    [['rcp', '--tuning', 'd128'], /the profile of rcp has no --tuning/],
    [['range-reduction', '--svg', 'x.svg'], /the profile of range-reduction has no --svg/],
    [['split', '--tuning', 'd64'], /^no tuning entry "d64"; known are d128-full-/],
    [['exp2', '--from', '1', '--to', '0'], /^--from 1 is above --to 0; exchange them/],
    [['exp2', '--from', '300'], /^no fp32 input from 300 to Infinity has an error/],
    [['exp2', '--from', 'one'], /give a finite number/],
    [['exp2', '--to', ''], /give a finite number/],
    [['exp2', '--threads', '0'], /whole number from 1 to 1024/],
    [['exp2', '--architecture', 'sm_80'], /known are sm_90, sm_100, sm_103/],
    [[], /missing required argument 'technique'/],
  ])('refuses %j', async (args, message) => {
    expect(await refusal('profile', ...args)).toMatch(message);
  });

  inTurn('refuses a file that it cannot write, on one line, after what was found', () => {
    const target = join(scratch, 'no-such-folder', 'p.json');
    const { status, stdout, stderr } = spawned(
      'rcp',
      '--from',
      '1',
      '--to',
      '1',
      '--threads',
      '1',
      '--json',
      target,
    );
    expect(status).toBe(2);
    expect(stdout).toMatch(/^1\/x by the special function unit\n/);
    expect(stderr).toMatch(/^flashproof: .*p\.json.*\n$/);
    expect(existsSync(target)).toBe(false);
  });
});
