import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { encodeFromFloat64, formats } from '../../../src/formats/index.js';
import { openLaunch, startCompiledKernel } from '../../../src/jobs/index.js';
import { writeSafetensors } from '../../../src/io/index.js';
import type { Problem, Tensor } from '../../../src/problem/index.js';
import { runLaunch } from '../../../src/ptx/run/index.js';
import { capturedKernel } from '../../fixtures/captured-ptx.js';

const folder = mkdtempSync(join(tmpdir(), 'flashproof-template-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
writeFileSync(join(folder, 'kernel.ptx'), capturedKernel('triton-sm80-d64').ptx);

const template = {
  entry: 'attend',
  grid: ['ceil(sq / 64)', 'heads * batch'],
  block: [128],
  dynamicSharedBytes: 24576,
  parameters: [
    ...[{ tensor: 'q' }, { tensor: 'k' }, { tensor: 'v' }, { tensor: 'O' }],
    { scratch: '4 * batch * heads * sq' },
    ...[{ f32: 'scale' }, { s32: 'heads' }, { s32: 'sq' }, { s32: 'sk' }],
    ...[{ scratch: 0 }, { scratch: 0 }],
  ],
  outputs: [{ name: 'O', as: 'out', format: 'bf16' }],
  formats: ['bf16'],
  requires: ['causal == 0', 'd == 64'],
};

/** The path of a launch file with changes. */
function launchFile(name: string, changes: object = {}): string {
  const path = join(folder, `${name}.json`);
  writeFileSync(path, JSON.stringify({ ...template, ...changes }));
  return path;
}

function tensorOf(shape: readonly number[], seed: number): Tensor {
  const elements = shape.reduce((all, one) => all * one, 1);
  const values = Float64Array.from({ length: elements }, (_, i) => Math.sin(seed + i * i));
  return { format: 'bf16', shape, data: encodeFromFloat64(formats.bf16, values) };
}

const [sq, sk] = [17, 40];
const problem: Problem = {
  q: tensorOf([1, 1, sq, 64], 1),
  k: tensorOf([1, 1, sk, 64], 2),
  v: tensorOf([1, 1, sk, 64], 3),
  scale: 0.25,
  causal: false,
  window: null,
  softcap: null,
};
const bytesOf = ({ data }: Tensor) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength);

describe('a template', () => {
  it('gives what a launch with the same numbers gives', async () => {
    const answer = await (await startCompiledKernel(launchFile('template'))).run(problem);
    const { q, k, v } = problem;
    const O = tensorOf([1, 1, sq, 64], 4);
    await writeSafetensors(join(folder, 'tensors.safetensors'), { q, k, v, O });
    const numbers = {
      grid: [1, 1, 1],
      parameters: template.parameters.map((parameter, i) => {
        const given: Readonly<Record<number, object>> = {
          4: { scratch: 4 * sq },
          5: { f32: 0.25 },
          6: { s32: 1 },
          7: { s32: sq },
          8: { s32: sk },
        };
        return given[i] ?? parameter;
      }),
    };
    const { launch, module } = await openLaunch({ path: launchFile('plain', numbers) });
    const plain = runLaunch(module, launch, { file: 'kernel.ptx', races: false });
    if (!answer.ok) throw new Error(answer.reason);
    expect(answer.outputs.out).toMatchObject({ format: 'bf16', shape: [1, 1, sq, 64] });
    expect(bytesOf(answer.outputs.out)).toEqual(plain.tensors.get('O'));
  });

  it('declines what it does not take', async () => {
    const kernel = await startCompiledKernel(launchFile('declines'));
    expect(await kernel.run({ ...problem, causal: true })).toEqual({
      ok: false,
      cause: 'unsupported',
      reason: 'declines the problem: it requires causal == 0',
    });
    const sink = { logits: tensorOf([1], 5), inLse: true };
    expect(await kernel.run({ ...problem, sink })).toMatchObject({
      ok: false,
      cause: 'unsupported',
    });
  });

  it('fails where its kernel leaves its tensors', async () => {
    const parameters = template.parameters.map((one, i) => (i === 8 ? { s32: 'sk + 8' } : one));
    const kernel = await startCompiledKernel(launchFile('outside', { parameters }));
    const answer = await kernel.run(problem);
    expect(answer).toMatchObject({ ok: false, cause: 'error' });
    expect(answer.ok ? '' : answer.reason).toMatch(/^has a finding, .*"[kv]"/);
  });

  it('without an output is refused', async () => {
    const kernel = await startCompiledKernel(launchFile('none', { outputs: ['q'] }));
    await expect(kernel.run(problem)).rejects.toThrow(/there is no tensor "O"/);
  });
});
