import { describe, expect, it } from 'vitest';
import {
  openTensorFile,
  problemOutline,
  readProblem,
  writeSafetensors,
  type ProblemSettings,
} from '../../src/io/index.js';
import { writeNpz } from './write-npz.js';
import type { Problem, StoredTensor } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { filledProblem } from '../setup/problems.js';
import { temporaryFolder } from './temporary-folder.js';

const folder = temporaryFolder();
const { q, k, v } = filledProblem({ queries: 3, keys: 5, dim: 4 }, (i) => (i % 7) - 3);

interface Noted {
  readonly metadata?: Readonly<Record<string, string>>;
  readonly tensors?: Readonly<Record<string, StoredTensor>>;
  readonly settings?: ProblemSettings;
}

async function reading({ metadata, tensors, settings = {} }: Noted): Promise<Problem> {
  const path = folder.at('noted.safetensors');
  await writeSafetensors(path, { q, k, v, ...tensors }, metadata, { durable: false });
  const file = await openTensorFile(path);
  try {
    const problem = await readProblem(file, settings);
    // Who reads a part of a file at a time does not overlook it either.
    problemOutline(file, settings);
    return problem;
  } finally {
    await file.close();
  }
}

async function refusal(noted: Noted): Promise<string> {
  const error: unknown = await reading(noted).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(RequestError);
  const { message } = error as Error;
  expect(message).not.toContain('\n');
  return message;
}

const one: StoredTensor = { format: 'fp32', shape: [], data: Float32Array.of(0.1) };

describe('a setting under another name', () => {
  it.each([
    ...['softmax_scale', 'sm_scale', 'qk_scale', 'attn_scale', 'scaling', 'Scale', 'SCALE'].map(
      (name) => [name, '0.1', 'scale'] as const,
    ),
    ...['is_causal', 'use_causal_mask', 'causal_mask', 'causality', 'Causal'].map(
      (name) => [name, 'True', 'causal'] as const,
    ),
    ...['window_size', 'sliding_window', 'local_window', 'attention_window', 'window_left'].map(
      (name) => [name, '128', 'window'] as const,
    ),
    ['window_size', '(128, 0)', 'window'] as const,
    ...['soft_cap', 'logits_soft_cap', 'logit_cap', 'attn_logit_softcapping', 'Softcap'].map(
      (name) => [name, '30', 'softcap'] as const,
    ),
    ...['qkv_format', 'tensor_layout', 'qkv_layout'].map(
      (name) => [name, 'bshd', 'layout'] as const,
    ),
  ])('is refused with the name to use: %s = %s is %s', async (name, value, setting) => {
    const said = `metadata ${name} is "${value}", which is not read; call it ${setting}`;
    expect(await refusal({ metadata: { [name]: value } })).toContain(said);
    expect(await refusal({ metadata: { meta: JSON.stringify({ [name]: value }) } })).toContain(
      said,
    );
    const ignored = { metadata: { [name]: value }, settings: { ignored: [name] } };
    await expect(reading(ignored)).resolves.toBeDefined();
  });

  it.each([
    [{ is_causal: 'False', softmax_scale: 'None', window_size: '(-1, -1)', soft_cap: '0.0' }],
    [{ is_causal: '0', sliding_window: 'null', logits_soft_cap: 'none', qkv_format: 'bhsd' }],
    [{ format: 'pt', creator: 'me', seed: '7', gpu: 'B200', window_name: 'hann', scaler: 'x' }],
    [{ block_size: '64', num_splits: '2', dropout_p: '0.1', weight_scale: '3', mask: 'triangle' }],
  ])('is none where it says nothing, or is another thing: %o', async (metadata) => {
    await expect(reading({ metadata })).resolves.toMatchObject({ scale: 0.5, causal: false });
  });

  it('may repeat what is read, and not contradict it', async () => {
    const metadata = { softmax_scale: '0.10', is_causal: 'True', window_size: '(3, 0)' };
    const settings = { scale: 0.1, causal: true, window: { left: 3, right: 0 } };
    await expect(reading({ metadata, settings })).resolves.toMatchObject(settings);
    const beside = { scale: '0.1', causal: 'true', window: '3,0' };
    await expect(reading({ metadata: { ...metadata, ...beside } })).resolves.toMatchObject(
      settings,
    );
    const said = await refusal({ metadata: { ...metadata, ...beside, scale: '0.2' } });
    expect(said).toContain(
      'metadata softmax_scale is "0.10", but scale is 0.2; leave it out with --ignore softmax_scale',
    );
    const other = { metadata, settings: { ...settings, causal: false } };
    expect(await refusal(other)).toContain('metadata is_causal is "True", but causal is false;');
  });

  it('may be a tensor, as numpy keeps numbers, and is refused unless it is told', async () => {
    for (const [name, setting] of [
      ['scale', 'scale'],
      ['softmax_scale', 'scale'],
      ['softcap', 'softcap'],
    ] as const)
      expect(await refusal({ tensors: { [name]: one } })).toContain(
        `tensor "${name}" is not read; give --${setting}, or ${setting} in the metadata, or leave it out with --ignore ${name}`,
      );
    const tensors = { scale: one };
    await expect(reading({ tensors, settings: { scale: 0.1 } })).resolves.toBeDefined();
    await expect(reading({ tensors, settings: { ignored: ['scale'] } })).resolves.toBeDefined();
    // Of many elements it is something else.
    const many: StoredTensor = { format: 'fp32', shape: [4], data: new Float32Array(4) };
    await expect(reading({ tensors: { scale: many } })).resolves.toBeDefined();
    const path = folder.at('noted.npz');
    await writeNpz(path, { q, k, v, causal: { shape: [], data: Uint8Array.of(1) } });
    const file = await openTensorFile(path);
    await expect(readProblem(file)).rejects.toThrow('tensor "causal" is not read; give --causal');
    await file.close();
  });
});
