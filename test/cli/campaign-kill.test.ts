import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { builtDist } from '../setup/built-dist.js';
import { withoutTimes } from './without-times.js';

/** How often each command is killed; KILLS=50 for a campaign. */
const kills = Number(process.env['KILLS'] ?? 3);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-kill-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** What a process printed, and how it ended. */
interface Ended {
  readonly stdout: string;
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Starts the command line, and kills it as soon as `isTime`. */
async function run(
  main: string,
  args: readonly string[],
  isTime: () => Promise<boolean> = () => Promise.resolve(false),
): Promise<Ended> {
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status, signal) => resolve({ stdout, status, signal }));
  });
  while (child.exitCode === null && child.signalCode === null)
    if (await isTime()) child.kill('SIGKILL');
    else await sleep(2);
  return ended;
}

/** Numbers from 0 up to 1, the same in every run of this test (Numerical Recipes' generator). */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

function wholeLines(journal: string): string[] {
  return existsSync(journal) ? readFileSync(journal, 'utf8').split('\n').slice(0, -1) : [];
}

const much = String(10 * Math.max(kills, 3));
const commands: Readonly<Record<string, readonly string[]>> = {
  check: [
    ...['check', '--kernel', 'naive-fp32', '--property', 'determinism,masked-keys,padding'],
    ...['--runs', much, '--seed', '5', '--seconds', '3600', '--save-dir', join(scratch, 'saved')],
  ],
  'conform on two threads': [
    // So many units that none of the kills comes after the last, however late on a busy machine.
    ...['conform', 'ex2.approx.ftz.f32', 'cvt.rn.bf16x2.f32', 'cvt.rn.f16x2.f32'],
    ...['cvt.rz.f16x2.f32', 'rcp.approx.ftz.f32', 'cvt.rn.satfinite.f16x2.f32'],
    ...['cvt.rz.satfinite.f16x2.f32', 'rsqrt.approx.ftz.f32', 'lg2.approx.ftz.f32'],
    ...['--threads', '2', ...(kills > 3 ? ['--exhaustive'] : [])],
  ],
  'profile on two threads': [
    ...['profile', 'p-round', '--from', kills > 3 ? '0' : '0.03125', '--to', '1', '--threads', '2'],
  ],
};

describe('a command that is killed at random', () => {
  let main = '';
  beforeAll(async () => {
    main = join(await builtDist(), 'src/cli/main.js');
  });

  const milliseconds = 120_000 + 10_000 * kills;
  const title = `%s: ${kills} times, loses no unit, does none twice and reports what one run does`;
  it.each(Object.entries(commands))(title, { timeout: milliseconds }, async (name, command) => {
    const [journal, random] = [join(scratch, `${name}.jsonl`), createRandom(kills + name.length)];
    let landed = 0;
    for (let kill = 0; kill < kills; kill++) {
      const before = wholeLines(journal);
      const wanted = before.length + Math.floor(3 * random()) + (kill === 0 ? 1 : 0);
      // Some sittings die before their first line, some between lines, some within one.
      const isTime = async () => {
        if (wholeLines(journal).length < wanted) return false;
        await sleep(60 * random());
        return true;
      };
      const { signal } = await run(main, [...command, '--journal', journal, '--json', '-'], isTime);
      if (signal === 'SIGKILL') landed++;
      // What was on the disk stays as it is.
      expect(wholeLines(journal).slice(0, before.length)).toEqual(before);
    }
    expect(landed).toBeGreaterThan(kills / 2);
    const killed = wholeLines(journal).length;
    const resumed = await run(main, [...command, '--journal', journal, '--json', '-']);
    const uninterrupted = await run(main, [...command, '--json', '-']);
    expect(resumed.status).toBe(uninterrupted.status);
    expect(withoutTimes(resumed.stdout)).toBe(withoutTimes(uninterrupted.stdout));
    const lines = wholeLines(journal);
    expect(lines.length).toBeGreaterThan(killed);
    const units = lines.slice(1).map((line) => (JSON.parse(line) as { unit: string }).unit);
    expect(new Set(units).size).toBe(units.length);
  });
});
