import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPeriodicProgress } from '../../src/cli/terminal.js';
import { sampleBlocks } from '../../src/conform/block-sample.js';
import { bundledCaptures } from '../../src/conform/capture.js';
import { fingerprintTargets } from '../../src/conform/targets.js';
import { builtDist } from '../setup/built-dist.js';
import { turns } from '../setup/turns.js';
import { refusal, runInProcess } from './run-in-process.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-conform-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** A copy of the bundled captures with one bit of a block's hash flipped. */
function falsified(name: string, stem: string, block: number): string {
  const folder = join(scratch, name);
  cpSync(bundledCaptures(), folder, { recursive: true });
  const path = join(folder, `hash_${stem}.bin`);
  const content = readFileSync(path);
  content[block * 8 + 5] ^= 0x10;
  writeFileSync(path, content);
  return folder;
}

describe('progress without a terminal', () => {
  it('is a plain line every ten seconds', () => {
    const written: string[] = [];
    const stream = { isTTY: false, write: (text: string) => written.push(text) };
    let now = 0;
    const progress = createPeriodicProgress('work', stream as never, () => now);
    for (; now <= 40_000; now += 1000) progress.update(now / 80_000);
    progress.done();
    expect(written).toEqual(
      [10, 20, 30, 40].map(
        (now) => `work: ${Math.floor((100 * now) / 80)} %, ${80 - now} s left\n`,
      ),
    );
  });
});

describe('flashproof conform', () => {
  let main = '';
  beforeAll(async () => {
    main = join(await builtDist(), 'src/cli/main.js');
  });
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [main, 'conform', ...args], { encoding: 'utf8' });
  const target = fingerprintTargets.find((one) => one.instruction === 'cvt.rn.bf16x2.f32');
  const { instruction, stem, chosenBlocks } = target!;

  inTurn('agrees with the silicon, whatever the number of threads', async () => {
    const json = (threads: string) => [instruction, '--threads', threads, '--json=-'];
    const runs = [await runInProcess('conform', ...json('1')), run(...json('3'))];
    const results = runs.map(({ status, stdout, stderr }) => {
      expect(stderr).toBe('');
      expect(status).toBe(0);
      const { created, seconds, ...result } = JSON.parse(stdout) as Record<string, unknown>;
      expect(Date.parse(created as string)).toBeGreaterThan(0);
      expect(seconds).toBeGreaterThan(0);
      return result;
    });
    expect(results[1]).toEqual(results[0]);
    expect(results[0]).toMatchObject({ kind: 'conform', verdict: { pass: true } });
  });

  inTurn('fails on captures that differ, naming the block', async () => {
    const [block] = sampleBlocks(instruction, chosenBlocks(), '0').slice(-30);
    const folder = falsified('differing', stem, block!);
    const { status, stdout } = await runInProcess(
      'conform',
      instruction,
      '--captures',
      folder,
      '--threads',
      '1',
    );
    expect(status).toBe(1);
    expect(stdout).toMatch(/^FAIL: 1 of 1 model differs/);
    expect(stdout).toContain(`first mismatch in block ${block}, inputs 0x`);
  });

  it.each([
    [['cvt.rn.f8'], /^unknown instruction "cvt\.rn\.f8"(?:; did you mean [^;]+)?; known are /],
    [['--captures', scratch], /has no hash_ex2_approx_ftz_f32\.bin/],
    [['--captures', join(scratch, 'nowhere')], /nowhere: cannot be read/],
    [['--threads', '0'], /whole number from 1 to 1024/],
    [['--threads', '1.5'], /whole number from 1 to 1024/],
  ])('refuses %j', async (args, message) => {
    expect(await refusal('conform', ...args)).toMatch(message);
  });

  inTurn('answers what it refuses with one line and exit status 2', () => {
    const { status, stdout, stderr } = run('cvt.rn.f8');
    expect(stderr).toMatch(/^flashproof: unknown instruction "cvt\.rn\.f8"; .*\n$/);
    expect(stdout).toBe('');
    expect(status).toBe(2);
  });
});
