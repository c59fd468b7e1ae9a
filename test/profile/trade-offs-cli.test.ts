import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { RequestError } from '../../src/request-error.js';
import { runInProcess } from '../cli/run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-trade-offs-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Runs the command line in this process, on one thread; what it printed. */
const run = async (...args: string[]) =>
  (await runInProcess('profile', ...args, '--threads', '1')).stdout;

const tiny = ['--queries', '8', '--keys', '300', '--dim', '16', '--regime', 'normal-4'];

describe('flashproof profile of a trade-off', () => {
  inTurn('prints the tables of rescale for the problems asked for', async () => {
    const text = await run('rescale', ...tiny, '--format', 'fp16', '--seed', '11');
    expect(text).toMatch(/8 queries × 300 keys, head dimension 16, seed 11/);
    expect(text).toContain("FlashAttention-4's forward on sm_100");
    expect(text).toContain('normal-4 in fp16');
    expect(text).not.toContain('normal-4 in bf16');
    expect(text).toContain('Proven limits');
  });

  it('writes the shares of the polynomial as JSON, other seeds other figures', async () => {
    const documents = [];
    for (const seed of ['1', '1', '2']) {
      const file = join(scratch, `${documents.length}.json`);
      await run(
        'polynomial-share',
        ...tiny,
        '--format',
        'bf16',
        '--degree',
        '2',
        '--seed',
        seed,
        '--architecture',
        'sm_103',
        '--json',
        file,
      );
      documents.push(JSON.parse(readFileSync(file, 'utf8')) as { cases: unknown });
    }
    expect(documents[0]).toMatchObject({
      kind: 'profile',
      technique: 'polynomial-share',
      architecture: 'sm_103',
      problems: { queries: 8, keys: 300, dim: 16, seed: 1, architecture: 'sm_103' },
    });
    expect(documents[1].cases).toEqual(documents[0].cases);
    expect(documents[2].cases).not.toEqual(documents[0].cases);
  });

  it.each([
    [['rescale', '--degree', '3'], /^the profile of rescale has no --degree; leave it out$/],
    [['rescale', '--from', '1'], /^the profile of rescale has no --from; leave it out$/],
    [['polynomial-share', '--svg', 'x'], /^the profile of polynomial-share has no --svg/],
    [['exp2', '--keys', '3'], /^the profile of exp2 has no --keys; leave it out$/],
    [['split', '--regime', 'sink'], /^the profile of split has no --regime; leave it out$/],
    [['rescale', '--regime', 'flat'], /^no regime of scores "flat"; choose from normal-1, /],
    [['rescale', '--format', 'fp64'], /^no format "fp64"; choose from bf16, fp16, e4m3, e5m2$/],
    [['rescale', '--dim', '512'], /^dim is 512; give a whole number from 1 to 192$/],
    [['rescale', '--dim', '4'], /^steps of the maximum need 10 dimensions, not 4; give more/],
    [['polynomial-share', '--tuning', 'd64'], /^no tuning entry "d64"; known are d128-full-/],
  ])('refuses %j on one line', async (args, message) => {
    const failed = run(...args);
    await expect(failed).rejects.toThrow(RequestError);
    await expect(failed).rejects.toThrow(message);
    await expect(failed).rejects.not.toThrow(/\n/);
  });

  it.each([
    [['--keys', '1e3'], /give a whole number/],
    [['--queries', '-1'], /give a whole number/],
    [['--seed', ''], /give a whole number/],
    [['--architecture', 'sm_80'], /known are sm_90, sm_100, sm_103/],
  ])('refuses %j', async (args, message) => {
    await expect(run('rescale', ...args)).rejects.toThrow(message);
  });

  it('states the evidence of sm_90 for a sweep where none is given', async () => {
    const file = join(scratch, 'sweep.json');
    await run('rcp', '--from', '1', '--to', '1', '--json', file);
    const { architecture } = JSON.parse(readFileSync(file, 'utf8')) as { architecture: string };
    expect(architecture).toBe('sm_90');
  });
});
