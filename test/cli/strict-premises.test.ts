import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runKernelModel } from '../../kernels/index.js';
import { openTensorFile, readProblem, writeSafetensors } from '../../src/io/index.js';
import type { Tensor } from '../../src/problem/index.js';
import { temporaryFolder } from '../io/temporary-folder.js';
import { runInProcess } from './run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const folder = temporaryFolder();
const fixture = 'fixtures/attention/09-normal-200x300-d64-bf16.safetensors';
/** A live kernel that answers with the tensors of a file, byte by byte. */
const script = fileURLToPath(new URL('copying-kernel.mjs', import.meta.url));

/** Eager attention in bf16, which fails as any kernel and passes as what it is; and with metadata that says what it is. */
async function eagerFiles() {
  const source = await openTensorFile(fixture);
  const problem = await readProblem(source);
  await source.close();
  const { q, k, v } = problem;
  const { out, lse } = runKernelModel('naive-input', problem);
  const tensors = { q, k, v, out, ...(lse ? { lse } : {}) };
  const [eager, noted] = [folder.at('eager.safetensors'), folder.at('noted.safetensors')];
  await writeSafetensors(eager, tensors);
  await writeSafetensors(noted, tensors, { premises: 'eager' });
  return { eager, noted, problem, out };
}
const files = eagerFiles();

/** What a hint is made of: no flag, and no kernel that would pass. */
const hint = /--premise|would pass|--as /;

describe('audit --strict-premises', () => {
  inTurn('tells no hint in any rendering, where the same audit without it tells one', async () => {
    const { eager } = await files;
    const paths = [folder.at('page.html'), folder.at('junit.xml'), folder.at('report.json')];
    const written = ['--html', paths[0], '--junit', paths[1], '--json', paths[2]] as const;
    const told = await runInProcess('audit', eager, '--threads', '1', ...written);
    expect(told.stdout.replaceAll(/\s+/g, ' ')).toContain('--premise scores=bf16');
    for (const path of [paths[0], paths[2]]) expect(readFileSync(path, 'utf8'), path).toMatch(hint);
    const strict = ['audit', eager, '--strict-premises', '--threads', '1', '--full'] as const;
    const { status, stdout } = await runInProcess(...strict, ...written);
    expect(status).toBe(1);
    const [page, junit, json] = paths.map((path) => readFileSync(path, 'utf8'));
    expect(stdout.replaceAll(/\s+/g, ' ')).not.toMatch(hint);
    // The page and the report have the command in them, which is the judge's own.
    const command = /flashproof audit[^<"]*/g;
    for (const text of [page, junit, json]) expect(text.replaceAll(command, '')).not.toMatch(hint);
    expect(JSON.parse(json)).toMatchObject({ verdict: { premise: null } });
  });

  inTurn('judges by no premises that the file names, and says that it names some', async () => {
    const { noted } = await files;
    const run = (...flags: string[]) =>
      runInProcess('audit', noted, '--threads', '1', '--no-techniques', '--json', '-', ...flags);
    expect((await run()).status).toBe(0);
    const { status, stdout } = await run('--strict-premises');
    expect(status).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ arithmetic: 'any correct kernel' });
    expect(stdout).toContain('which --strict-premises leaves aside');
    // What the judge says holds.
    const said = await run('--strict-premises', '--as', 'eager');
    expect(said.status).toBe(0);
    expect(said.stdout).not.toContain('leaves aside');
  });

  it('takes no output in a format that makes bounds wider', async () => {
    const { problem, out: made } = await files;
    const { q, k, v } = problem;
    const path = folder.at('short.safetensors');
    const data = new Uint8Array(made.data.length);
    const out: Tensor = { format: 'e5m2', shape: made.shape, data };
    await writeSafetensors(path, { q, k, v, out });
    await expect(runInProcess('audit', path, '--strict-premises')).rejects.toThrow(
      /^out is e5m2, which is shorter than bf16, the format of Q/,
    );
  });

  it('refuses to be asked for hints', async () => {
    const { eager } = await files;
    const args = ['audit', eager, '--strict-premises', '--gradient-premise', 'fit', '--dq', ':q'];
    await expect(runInProcess(...args, '--dout', ':out')).rejects.toThrow(
      /^--gradient-premise fit tells which premises fit/,
    );
  });

  inTurn('takes no premises from a live kernel, and tells it none', async () => {
    const { noted } = await files;
    const exec = `"${process.execPath}" "${script}" "${noted}"`;
    const run = (...flags: string[]) =>
      runInProcess('audit', fixture, '--exec', exec, '--threads', '1', '--json', '-', ...flags);
    const { status, stdout } = await run('--strict-premises');
    expect(status).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      arithmetic: 'any correct kernel',
      verdict: { premise: null },
    });
    expect((await run('--strict-premises', '--as', 'eager')).status).toBe(0);
  });
});

describe('check --strict-premises', () => {
  inTurn('tells no hint of a kernel that declares nothing', async () => {
    const { noted } = await files;
    const { status, stdout } = await runInProcess(
      ...['check', '--exec', `"${process.execPath}" "${script}" "${noted}"`, '--strict-premises'],
      ...['--property', 'within-bound', '--runs', '1', '--seed', '1', '--save-dir', folder.at('x')],
    );
    expect(status).toBe(1);
    expect(stdout).not.toMatch(/would pass|--premise (?!s)/);
  });
});
