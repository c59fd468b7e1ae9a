import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunDocument } from '../../src/jobs/index.js';
import { turns } from '../setup/turns.js';
import { runInProcess } from './run-in-process.js';
import { smallKernel, smallTensor, writeLaunch, x } from './small-launch.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-run-threads-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const kernels = [
  ['triton-softmax', 'sm_90'],
  ['triton-layer-norm', 'sm_90'],
  ['triton-sm80-d64', 'sm_90'],
  ['triton-wgmma-d64', 'sm_90'],
  ['nvcc-cluster-sum', 'sm_90'],
  ['nvcc-fa4-forward-d64', 'sm_90'],
  ['triton-sm100-d64', 'sm_100'],
  ['nvcc-chained-scan', 'sm_90'],
  ['triton-split-k', 'sm_90'],
] as const;

beforeAll(() => {
  const unpack = new URL('../../fixtures/ptx/unpack.mjs', import.meta.url).pathname;
  execFileSync(process.execPath, [unpack, scratch, ...kernels.map(([name]) => name)]);
});

/** The document of a run without its times. */
async function documentOf(...words: readonly string[]): Promise<Partial<RunDocument>> {
  const { stdout } = await runInProcess('run', ...words, '--json', '-');
  const { created, seconds, ...rest } = JSON.parse(stdout) as RunDocument & {
    readonly created: string;
  };
  expect([typeof created, typeof seconds]).toEqual(['string', 'number']);
  return rest;
}

describe('clusters of flashproof run on threads', () => {
  inTurn.each(kernels)(
    'come to what one thread does, in every output, finding and count: %s',
    async (name, architecture) => {
      const words = [join(scratch, name, 'launch.json'), '--architecture', architecture];
      const one = await documentOf(...words, '--threads', '1');
      expect(await documentOf(...words, '--threads', '2')).toEqual(one);
      expect(await documentOf(...words)).toEqual(one);
    },
    120_000,
  );

  inTurn('find the races of one thread where CTAs write the same words', async () => {
    const tensors = [smallTensor('x', x), smallTensor('y', new Float32Array(96))];
    const path = await writeLaunch(mkdtempSync(join(scratch, 'race-')), tensors);
    const raced = join(scratch, 'raced.ptx');
    writeFileSync(raced, smallKernel.replace('add.s64 %rd5, %rd2, %rd3', 'mov.b64 %rd5, %rd2'));
    const words = [path, '--ptx', raced];
    const one = await documentOf(...words, '--threads', '1');
    expect(one.hasFailed).toBe(true);
    expect(await documentOf(...words, '--threads', '2')).toEqual(one);
    expect(await documentOf(...words)).toEqual(one);
    const { stdout } = await runInProcess('run', ...words, '--threads', '2', '--stats');
    expect(stdout).toContain('Threads: 1, since CTAs in different parts of the grid touch');
  });

  it.each([
    [['--threads', '2'], 'Threads: 2, since no part touches another'],
    [['--threads', '1'], 'Threads: 1, since one thread is asked for'],
    [[], 'Threads: 1, since the run is short'],
    [['--no-races'], 'Threads: 1, since where no races are looked for'],
    [['--starts', 'descending'], 'Threads: 1, since the order of the run was chosen'],
    [['--break', '18'], 'Threads: 1, since registers are read in the order of the run'],
  ])('are counted by --stats, with the reason: %s', async (words, line) => {
    const tensors = [smallTensor('x', x), smallTensor('y', new Float32Array(96))];
    const path = await writeLaunch(mkdtempSync(join(scratch, 'stats-')), tensors);
    const { stdout } = await runInProcess('run', path, ...words, '--stats');
    expect(stdout).toContain(line);
  });

  it('are one where CTAs may meet', async () => {
    const path = join(scratch, 'triton-split-k', 'launch.json');
    const { stdout } = await runInProcess('run', path, '--stats');
    expect(stdout).toMatch(/Threads: 1, since CTAs may meet by atom\.\S+ in line \d+/);
  });
});
