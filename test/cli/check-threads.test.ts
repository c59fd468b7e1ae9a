import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { builtDist } from '../setup/built-dist.js';
import { refusal } from './run-in-process.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-check-threads-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

interface Report {
  readonly properties: readonly { readonly result: string; readonly violation: object | null }[];
}

/** The document without what is of its time. */
function timeless(text: string): Report {
  const document = JSON.parse(text, (key, value: unknown) =>
    key === 'seconds' || key === 'created' ? 0 : value,
  ) as Report & { verdict: { sentence: string } };
  const sentence = document.verdict.sentence.replace(/in [\d.]+ s/, '');
  return { ...document, verdict: { ...document.verdict, sentence } } as Report;
}

describe('a check on several threads', () => {
  let main = '';
  const promises = join(scratch, 'promises.json');
  beforeAll(async () => {
    main = join(await builtDist(), 'src/cli/main.js');
    const sizes = { keys: { max: 4 }, queries: { max: 4 }, qkDim: { max: 8 }, vDim: { max: 8 } };
    writeFileSync(promises, JSON.stringify({ formats: ['bf16'], sizes }));
  });
  const attention = () => [
    ...['--kernel', 'fa4', '--variant', 'causal-one-more', '--runs', '25'],
    ...['--property', 'within-bound,causal-is-window', '--property', 'value-scaling,repeated-keys'],
    ...['--promises', promises],
  ];
  const recurrent = [
    ...['--contract', 'recurrent', '--kernel', 'chunked', '--variant', 'beta-missing'],
    ...['--set', 'chunk=4', '--dims', '4', '--runs', '50', '--regime', 'one-token'],
    ...['--property', 'within-bound,determinism'],
  ];
  const check = (asked: readonly string[], threads: number) => {
    const folder = join(scratch, 'failures');
    rmSync(folder, { recursive: true, force: true });
    const { stdout, stderr, status } = spawnSync(
      process.execPath,
      [
        ...[main, 'check', ...asked, '--seed', '3', '--seconds', '600'],
        ...['--save-dir', folder, '--json', '-', '--threads', String(threads)],
      ],
      { encoding: 'utf8' },
    );
    expect(stderr.replace(/^properties: .*$/gm, '').trim()).toBe('');
    expect(status).toBe(1);
    const files = readdirSync(folder).sort();
    return {
      report: timeless(stdout),
      saved: files.map((name) => [name, readFileSync(join(folder, name)).toString('base64')]),
    };
  };

  it.each([
    ['attention', attention],
    ['linear attention', () => recurrent],
  ])('finds what one finds, and saves the same problems: %s', (_, asked) => {
    const one = check(asked(), 1);
    const found = one.report.properties.map(({ result }) => result);
    expect(found).toContain('holds');
    expect(found).toContain('violated');
    expect(one.saved.length).toBeGreaterThan(0);
    expect(check(asked(), 2)).toEqual(one);
  });

  it('has its worker among the files that are not to be left out', () => {
    const { sideEffects } = JSON.parse(readFileSync('package.json', 'utf8')) as {
      sideEffects: string[];
    };
    expect(sideEffects).toContain('./dist/src/jobs/check/check-worker.js');
  });

  it.each([
    [['--exec', 'true'], /^the command of --exec is one process/],
    [['--kernel', 'fa4', '--bail'], /^--bail stops at the first violation/],
    [['--kernel', 'fa4', '--seed', '1', '--shard', '1/2'], /^a shard, and a check with --journal/],
  ])('refuses where one thread tries all: %s', async (args, message) => {
    expect(await refusal('check', ...args, '--threads', '2')).toMatch(message);
  });
});
