import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { runBackward } from '../../../kernels/index.js';
import { formats, patternsOf } from '../../../src/formats/index.js';
import { openTensorFile, readProblem } from '../../../src/io/index.js';
import type { Tensor } from '../../../src/problem/index.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);
const folder = fileURLToPath(
  new URL('../../../fixtures/flash-attention-3/backward/', import.meta.url),
);
const gradients = ['dq', 'dk', 'dv'] as const;

/** Problems, and whether FlashAttention-3 added in an order when a GPU ran them. Those without one have orders that change no bit, or took the ascending one. */
const captured = [
  ['d64', [false, true]],
  ['d64-batch', [false]],
  ['d64-causal', [true]],
  ['d64-grouped', [true]],
  ['d64-window', [true]],
  ['d128', [true]],
  ['d128-causal', [false, true]],
] as const;

/** SHA-256 of what the compiled kernel gave, deterministic, on the emulated machine: problems in which other orders give other bits. */
const compiled = [
  ['orders-causal', 'dq', '6847ea9f0a87e570c9fe47f1167cc7c5871d7c4675dce601df6477693525798d'],
  ['orders-grouped', 'dk', '39e7a34905d43bd97ddf0c962de2e7e5154e4f872daa9b34d0e73087de4dc545'],
] as const;

const bits = ({ data, format }: Tensor) => Array.from(patternsOf(data, formats[format]));

inTurn.each(
  captured.flatMap(([name, orders]) =>
    orders.map((deterministic): [string, boolean] => [name, deterministic]),
  ),
)(
  '%s: gradients of FlashAttention-3 on an H100, deterministic %s, bit for bit',
  { timeout: 60_000 },
  async (name, deterministic) => {
    const file = await openTensorFile(join(folder, `${name}.safetensors`));
    try {
      const problem = await readProblem(file);
      const dout = await file.read('dout');
      const settings = new Map([['deterministic', String(deterministic)]]);
      const emulated = runBackward('fa3', problem, { dout }, settings);
      const kernel = deterministic ? 'fa3_deterministic' : 'fa3';
      for (const gradient of gradients)
        expect(bits(emulated[gradient])).toEqual(bits(await file.read(`${kernel}.${gradient}`)));
    } finally {
      await file.close();
    }
  },
);

inTurn.each(compiled)(
  '%s: %s of FlashAttention-3 compiled, on the emulated machine',
  async (name, gradient, digest) => {
    const file = await openTensorFile(join(folder, `${name}.safetensors`));
    try {
      const problem = await readProblem(file);
      const dout = await file.read('dout');
      const settings = new Map([['deterministic', 'true']]);
      const emulated = runBackward('fa3', problem, { dout }, settings)[gradient];
      const patterns = Uint16Array.from(bits(emulated));
      const bytes = new Uint8Array(patterns.buffer);
      expect(createHash('sha256').update(bytes).digest('hex')).toBe(digest);
    } finally {
      await file.close();
    }
  },
);

it('names every file there is', () => {
  const files = readdirSync(folder).map((file) => file.replace('.safetensors', ''));
  const named: string[] = [...captured, ...compiled].map(([name]) => name);
  expect(named.toSorted()).toEqual(files.toSorted());
});
