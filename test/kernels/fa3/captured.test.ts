import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { runKernelModel } from '../../../kernels/index.js';
import { formats, patternsOf } from '../../../src/formats/index.js';
import { openTensorFile, readProblem } from '../../../src/io/index.js';
import type { Problem, Tensor } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { casePaths } from '../../audit/captured-cases.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);
const folder = fileURLToPath(new URL('../../../fixtures/flash-attention-3/', import.meta.url));
const bundled = join(folder, 'bundled.safetensors');
const own = readdirSync(folder)
  .map((name) => join(folder, name))
  .filter((path) => path.endsWith('.safetensors') && path !== bundled);

/** A problem, and what FlashAttention-3 made of it on an H200: of the bundled ones it lies in a file for all. */
async function captured(
  path: string,
): Promise<{ readonly problem: Problem; readonly out: Tensor; readonly lse: Tensor }> {
  const isBundled = casePaths.includes(path);
  const [file, outputs] = await Promise.all(
    [path, isBundled ? bundled : path].map((name) => openTensorFile(name)),
  );
  const prefix = isBundled ? basename(path, '.safetensors') : 'fa3';
  try {
    const [out, lse] = await Promise.all(
      ['out', 'lse'].map((name) => outputs.read(`${prefix}.${name}`)),
    );
    return { problem: await readProblem(file), out, lse };
  } finally {
    await Promise.all([file.close(), outputs.close()]);
  }
}

const bits = ({ data, format }: Tensor) => Array.from(patternsOf(data, formats[format]));
const settings = new Map([['splits', 'auto']]);

inTurn.each([...casePaths, ...own].map((path) => [basename(path, '.safetensors'), path]))(
  '%s: FlashAttention-3 on an H200, output and LSE bit for bit',
  async (_name, path) => {
    const { problem, out, lse } = await captured(path);
    if (problem.softcap !== null || problem.q.format === 'e4m3') {
      expect(() => runKernelModel('fa3', problem, settings)).toThrow(RequestError);
      return;
    }
    const emulated = runKernelModel('fa3', problem, settings);
    expect(bits(emulated.out)).toEqual(bits(out));
    expect(bits(emulated.lse)).toEqual(bits(lse));
  },
);

it('has problems beside the bundled ones', () => {
  expect(own.length).toBeGreaterThan(5);
});
