import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { builtDist } from '../setup/built-dist.js';
import { soundSafetensors } from './hostile-safetensors.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-endings-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const problem = join(scratch, 'problem.safetensors');
writeFileSync(problem, soundSafetensors);

/** The command line as users run it; FLASHPROOF_MAIN names another build. */
const built = { main: process.env['FLASHPROOF_MAIN'] ?? '' };
beforeAll(async () => {
  if (built.main === '') built.main = join(await builtDist(), 'src', 'cli', 'main.js');
});

interface Ending {
  readonly status: number | null;
  readonly stderr: string;
}

function endingOf(child: ChildProcess): Promise<Ending> {
  let stderr = '';
  child.stderr?.on('data', (bytes: Buffer) => (stderr += bytes.toString()));
  return new Promise((resolve) => child.once('close', (status) => resolve({ status, stderr })));
}

/** Runs `flashproof` with what a shell puts around it; `$F` is the command itself. */
function shell(script: string): Promise<Ending> {
  const environment = { ...process.env, P: problem };
  return endingOf(
    spawn('bash', ['-c', script.replaceAll('$F', `"${process.execPath}" "${built.main}"`)], {
      cwd: scratch,
      env: environment,
      stdio: ['ignore', 'ignore', 'pipe'],
    }),
  );
}

describe('standard output that is gone', () => {
  // The sound file's output is no attention of its input, so that its audit fails.
  const closed: readonly (readonly [command: string, status: number])[] = [
    ['emulate list', 0],
    ['audit $P --json -', 1],
  ];
  it.each(closed)('ends nothing, and hides no verdict: %s | true', async (command, status) => {
    const { status: seen, stderr } = await shell(`$F ${command} | true; exit \${PIPESTATUS[0]}`);
    expect(stderr).toBe('');
    expect(seen).toBe(status);
  });

  it.runIf(process.platform === 'linux')('is told of in one line when full', async () => {
    const { status, stderr } = await shell('$F emulate list > /dev/full');
    expect(stderr).toMatch(/^flashproof: standard output cannot be written \(ENOSPC\)[^\n]*\n$/);
    expect(status).toBe(2);
  });

  it('and standard error too change no status', async () => {
    expect((await shell('$F bound nowhere >&- 2>&-')).status).toBe(2);
    expect((await shell('$F emulate list <&- >&- 2>&-')).status).toBe(0);
  });
});

describe('a file that cannot be written', () => {
  const places: readonly (readonly [script: string, reason: RegExp])[] = [
    ['$F bound $P --json folder', /it is a folder/],
    ['$F bound $P --json missing/b.json', /does not exist; create it first/],
    ['ulimit -f 1; $F check --kernel naive-fp32 --property exact --runs 1 --json r.json', /larger/],
    ['TMPDIR=/nowhere $F check --exec true', /no temporary folder can be made/],
    ["$F bound $'a\\nb\\x1b[2J'", /no such file/],
  ];
  it.each(places)('is refused in one line, nothing left: %s', async (script, reason) => {
    mkdirSync(join(scratch, 'folder'), { recursive: true });
    const { status, stderr } = await shell(script);
    expect(stderr).toMatch(/^flashproof: [^\n\u001b]+\n$/);
    expect(stderr).toMatch(reason);
    expect(status).toBe(2);
    expect(readdirSync(scratch).sort()).toEqual(['folder', 'problem.safetensors']);
    expect(readdirSync(join(scratch, 'folder'))).toEqual([]);
  });
});

/** The processes, zombies aside, whose environment has the mark. */
function marked(mark: string): string[] {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return (
        !readFileSync(`/proc/${name}/stat`, 'utf8').includes(') Z ') &&
        readFileSync(`/proc/${name}/environ`, 'utf8').includes(`ENDINGS=${mark}`)
      );
    } catch {
      // It has ended meanwhile, or is somebody else's.
      return false;
    }
  });
}

describe.runIf(process.platform === 'linux')('a signal', () => {
  // A kernel that never answers, with a grandchild beside it and one below that.
  const kernel = `sh -c 'sleep 300 & sh -c "sleep 300; true" & echo > ready; wait'`;
  const signals: readonly (readonly [NodeJS.Signals, number, string[]])[] = [
    ['SIGINT', 130, ['check']],
    ['SIGTERM', 143, ['audit', problem]],
    ['SIGHUP', 129, ['audit', problem]],
  ];
  it.each(signals)(
    '%s ends with %i, and the kernel and its children',
    async (signal, code, words) => {
      const folder = mkdtempSync(join(tmpdir(), 'flashproof-signal-'));
      const mark = `${process.pid}-${signal}`;
      const child = spawn(
        process.execPath,
        [built.main, ...words, '--exec', kernel, '--timeout', '200'],
        {
          cwd: folder,
          env: { ...process.env, ENDINGS: mark, TMPDIR: folder },
          stdio: ['ignore', 'ignore', 'pipe'],
        },
      );
      const ending = endingOf(child);
      while (!readdirSync(folder).includes('ready')) await sleep(20);
      expect(marked(mark).length).toBeGreaterThan(3);
      child.kill(signal);
      expect(await ending).toEqual({ status: code, stderr: '' });
      for (let tries = 0; marked(mark).length > 0 && tries < 100; tries++) await sleep(20);
      expect(marked(mark)).toEqual([]);
      expect(readdirSync(folder)).toEqual(['ready']);
      rmSync(folder, { recursive: true });
    },
  );
});
