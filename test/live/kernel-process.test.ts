import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  startKernelProcess,
  type AttentionRequest,
  type FileRequest,
} from '../../src/io/live/kernel-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const request: FileRequest & AttentionRequest = {
  problem: '/nowhere/problem.safetensors',
  output: '/nowhere/output.safetensors',
  scale: 0.125,
  causal: true,
  window: [3, -1],
  softcap: null,
};

describe('the process protocol', () => {
  let folder: string;
  let scripts = 0;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'flashproof-test-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  /** A kernel that calls `answer(request)` for each line and writes what it returns. */
  async function kernel(answer: string, timeoutSeconds = 20) {
    const script = join(folder, `kernel-${++scripts}.mjs`);
    await writeFile(
      script,
      `import { createInterface } from 'node:readline';
       const answer = ${answer};
       createInterface({ input: process.stdin }).on('line', (line) => {
         const text = answer(JSON.parse(line));
         if (text !== undefined) console.log(text);
       });`,
    );
    return startKernelProcess(`"${process.execPath}" "${script}"`, timeoutSeconds);
  }

  it('starts the command once, numbers the requests and passes every setting on', async () => {
    const log = join(folder, 'requests.jsonl');
    await writeFile(
      join(folder, 'log.mjs'),
      `import { appendFileSync } from 'node:fs';
       let seen = 0;
       export const log = (r) => {
         appendFileSync(${JSON.stringify(log)}, JSON.stringify({ ...r, seen: ++seen }) + '\\n');
         return JSON.stringify({ id: r.id, ok: true });
       };`,
    );
    const live = await kernel(`(await import('./log.mjs')).log`);
    await live.request(request);
    await live.request({ ...request, window: null, softcap: 30 });
    await live.close();
    const lines = (await readFile(log, 'utf8')).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      { id: 1, ...request, seen: 1 },
      { id: 2, ...request, window: null, softcap: 30, seen: 2 },
    ]);
  });

  it('takes an ok', async () => {
    const live = await kernel('(r) => JSON.stringify({ id: r.id, ok: true })');
    expect(await live.request(request)).toEqual({ ok: true });
    await live.close();
  });

  const failures: readonly [what: string, answer: string, reason: RegExp][] = [
    ['a crash', '() => process.exit(3)', /^ended with status 3$/],
    ['a signal', "() => process.kill(process.pid, 'SIGSEGV')", /SIGSEGV|status 139/],
    [
      'a line that is not JSON',
      "() => 'Loading weights…'",
      /^wrote a line that is not JSON: "Load/,
    ],
    ['JSON that is no answer', "() => '[1,2]'", /^answered without "id" and "ok"/],
    [
      'an answer to another request',
      `() => '{"id":7,"ok":true}'`,
      /^answered request "7" instead of 1/,
    ],
    [
      'an error of the kernel',
      `(r) => JSON.stringify({ id: r.id, ok: false, error: 'out of memory' })`,
      /^reported an error: "out of memory"$/,
    ],
    [
      'a problem that it declines',
      `(r) => JSON.stringify({ id: r.id, ok: false, error: 'no such path', unsupported: true })`,
      /^declined the problem: "no such path"$/,
    ],
    ['a very long line', "() => 'x'.repeat(1e6)", /^wrote a line that is not JSON: .{1,140}$/],
  ];
  inTurn.each(failures)('reports %s in one line', async (_, answer, reason) => {
    const live = await kernel(answer);
    const result = await live.request(request);
    await live.close();
    expect(result).toMatchObject({ ok: false });
    expect((result as { reason: string }).reason).toMatch(reason);
    expect((result as { reason: string }).reason).not.toContain('\n');
  });

  it('reports a hang after the timeout, stops the process and its children', async () => {
    const live = startKernelProcess('sleep 60 & echo $! >&2; wait', 0.2);
    const start = performance.now();
    expect(await live.request(request)).toEqual({
      ok: false,
      cause: 'timeout',
      reason: 'gave no answer within 0.2 s',
    });
    await live.close();
    // Long before the minute of its child, however slow the machine.
    expect(performance.now() - start).toBeLessThan(30_000);
    expect(await live.request(request)).toMatchObject({ ok: false });
  });

  it('reports a command that does not exist', async () => {
    const live = startKernelProcess('no-such-kernel-command', 20);
    expect(await live.request(request)).toMatchObject({
      ok: false,
      reason: expect.stringMatching(/status 127/),
    });
    await live.close();
  });
});
