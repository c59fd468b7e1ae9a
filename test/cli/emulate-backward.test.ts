import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kernelModel, type KernelModel, kernelModels, runBackward } from '../../kernels/index.js';
import { openTensorFile, writeProblem, writeSafetensors } from '../../src/io/index.js';
import { normalCase } from '../audit/gradients/gradient-case.js';
import { builtDist } from '../setup/built-dist.js';
import { turns } from '../setup/turns.js';
import { refusal, runInProcess, runInProcessWith } from './run-in-process.js';

const inTurn = turns(import.meta.url);
const names = ['out', 'lse', 'dq', 'dk', 'dv'] as const;

describe('flashproof emulate --backward', () => {
  const folder = mkdtempSync(join(tmpdir(), 'flashproof-emulate-backward-'));
  const path = (name: string) => join(folder, `${name}.safetensors`);
  const { problem, dout } = normalCase(
    { heads: 4, kvHeads: 2, queries: 20, keys: 28, dim: 16 },
    11,
    { causal: true },
  );
  const { q, k, v } = problem;
  const notes = { scale: String(problem.scale), causal: 'true' };

  beforeAll(async () => {
    await writeSafetensors(path('training'), { q, k, v, dout }, notes);
    await writeSafetensors(path('forward'), { q, k, v }, notes);
    await writeSafetensors(path('apart'), { 'mine.do': dout, other: dout }, {});
    await writeSafetensors(path('misshapen'), { q, k, v, do: q }, notes);
    await writeSafetensors(path('short'), { q, k, v, dout: k }, notes);
    const bias = { format: 'fp32' as const, shape: [1, 1, 20, 28], data: new Float32Array(560) };
    await writeProblem(path('biased'), { ...problem, bias });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** The digests of what was saved, by name. */
  async function saved(name: string): Promise<Readonly<Record<string, string>>> {
    const file = await openTensorFile(path(name));
    try {
      const digests = [...file.entries.keys()].map(
        async (tensor) => [tensor, await file.sha256(tensor)] as const,
      );
      return Object.fromEntries(await Promise.all(digests));
    } finally {
      await file.close();
    }
  }

  inTurn.each(['naive-fp32', 'naive-input'])('%s saves what the library gives', async (model) => {
    const { forward, dq, dk, dv } = runBackward(model, problem, { dout });
    await writeSafetensors(path('library'), { ...forward, dq, dk, dv }, {});
    const words = ['emulate', model, path('training'), '--backward', '--threads', '1'];
    const { status, stderr } = await runInProcess(...words, '--save', path(model));
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(await saved(model)).toEqual(await saved('library'));
    expect(Object.keys(await saved(model)).sort()).toEqual([...names].sort());
  });

  it('takes dO from elsewhere, and says all of both passes', async () => {
    const json = join(folder, 'emulated.json');
    const words = ['emulate', 'naive-fp32', path('forward'), '--backward', '--threads', '1'];
    const { stdout } = await runInProcess(
      ...words,
      ...['--dout', `${path('apart')}:mine.do`, '--save', path('from-apart'), '--json', json],
    );
    expect(stdout).toMatch(/^naive-fp32: out bf16 \[1, 4, 20, 16\], dq bf16 \[1, 4, 20, 16\], /);
    expect(stdout.match(/^Evidence$/gm)).toHaveLength(2);
    expect(JSON.parse(readFileSync(json, 'utf8'))).toMatchObject({
      kind: 'emulate',
      kernel: 'naive-fp32',
      saved: path('from-apart'),
      backward: {
        dout: { path: path('apart'), tensor: 'mine.do', format: 'bf16' },
        settings: {},
        counters: {},
        evidence: [expect.stringContaining('IEEE 754'), expect.any(String)],
      },
    });
    const { dq, out } = await saved('from-apart');
    const { forward, dq: exact } = runBackward('naive-fp32', problem, { dout });
    await writeSafetensors(path('expected'), { out: forward.out, dq: exact }, {});
    expect({ out, dq }).toEqual(await saved('expected'));
  });

  inTurn('saves the same whatever the threads', { timeout: 240_000 }, async () => {
    const words = ['emulate', 'naive-fp32', path('training'), '--backward', '--quiet'];
    await runInProcess(...words, '--threads', '1', '--save', path('one'));
    const main = join(await builtDist(), 'src/cli/main.js');
    const { status, stderr } = spawnSync(
      process.execPath,
      [main, ...words, '--threads', '2', '--save', path('two')],
      { encoding: 'utf8' },
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(await saved('two')).toEqual(await saved('one'));
  });

  inTurn('shows settings of the backward pass, counts and lists them', async () => {
    const naive = kernelModels.find(({ name }) => name === 'naive-fp32')!;
    const { prepare, ...rest } = naive.backward!;
    const model: KernelModel = {
      ...naive,
      name: 'mine',
      backward: {
        ...rest,
        settings: [{ key: 'order', description: 'of additions' }],
        arithmetic: (posed) => rest.arithmetic(posed, new Map()),
        prepare: (posed, inputs, settings) => {
          const prepared = prepare(posed, inputs, new Map());
          return {
            ...prepared,
            settings: { order: settings.get('order') ?? 'fixed' },
            run: (piece) => ({ ...prepared.run(piece), counters: { atomics: 1000 } }),
          };
        },
      },
    };
    const context = { models: [model] };
    const words = ['emulate', 'mine', path('training'), '--backward', '--threads', '1'];
    // The forward pass does not know of it.
    const { stdout } = await runInProcessWith(context, ...words, '--set', 'order=any');
    expect(stdout).toMatch(
      /Backward pass\n\nSettings\n {2}order {2}any\n\nCounted\n {2}atomics {2}2,000\n/,
    );
    const list = await runInProcessWith(context, 'emulate', 'list');
    expect(list.stdout).toMatch(/--backward\n {2}of the backward pass\n {2}order +of additions\n/);
    const { stdout: document } = await runInProcessWith(context, 'emulate', 'list', '--json', '-');
    expect(JSON.parse(document)).toMatchObject({
      models: [{ backward: true, settings: [{ key: 'order', backward: true }] }],
    });
  });

  it('refuses what it cannot do, and writes nothing', async () => {
    const never = path('never');
    const emulate = (model: string, name: string, ...args: string[]) =>
      refusal('emulate', model, path(name), '--threads', '1', '--save', never, ...args);
    expect(await emulate('naive-fp32', 'forward', '--backward')).toMatch(
      /forward\.safetensors: has no tensor "dout" or "do", the gradient of the output, which --backward begins with; give it as --dout/,
    );
    expect(await emulate('fa1', 'training', '--backward')).toMatch(
      /^fa1 has no backward pass; choose a model that has one$/,
    );
    expect(await emulate('naive-fp32', 'short', '--backward')).toMatch(
      /^dout has shape \[1, 2, 28, 16\]; give it that of the output, \[1, 4, 20, 16\]$/,
    );
    expect(await emulate('naive-fp32', 'training', '--dout', ':dout')).toMatch(
      /^--dout is for the backward pass; add --backward$/,
    );
    expect(await emulate('fa4', 'training', '--backward', '--machine')).toMatch(
      /^the emulated machine runs the forward pass; leave out --backward$/,
    );
    expect(await emulate('naive-fp32', 'training', '--backward', '--set', 'a=1')).toMatch(
      /has no setting "a"; it has none/,
    );
    expect(await emulate('naive-fp32', 'training', '--backward', '--dout', ':none')).toMatch(
      /has no tensor "none"/,
    );
    expect(existsSync(never)).toBe(false);
  });

  it('refuses a feature that the backward pass does not take, before the forward is run', async () => {
    const naive = kernelModels.find(({ name }) => name === 'naive-fp32')!;
    const model = kernelModel({
      ...naive,
      prepare: () => {
        throw new Error('the forward pass is run');
      },
      backward: { ...naive.backward!, features: [] },
    });
    const words = ['emulate', 'naive-fp32', path('biased'), '--backward', '--threads', '1'];
    const run = runInProcessWith({ models: [model] }, ...words, '--dout', `${path('apart')}:other`);
    await expect(run).rejects.toThrow(/^naive-fp32's backward takes no bias$/);
  });
});
