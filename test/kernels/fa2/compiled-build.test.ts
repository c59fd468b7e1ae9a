import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runKernelModel } from '../../../kernels/index.js';
import { formats, patternsOf, type Tensor } from '../../../src/formats/index.js';
import { casePaths, readCase } from '../../audit/captured-cases.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** What examples/flash-attention-2/forward.py recorded: SHA-256 of outputs of the compiled kernel, by build and problem. */
const recorded = JSON.parse(
  readFileSync(
    new URL('../../../examples/flash-attention-2/recorded.json', import.meta.url),
    'utf8',
  ),
) as Readonly<Record<string, { readonly out: string; readonly lse: string }>>;

function digest({ data, format }: Tensor): string {
  return createHash('sha256').update(patternsOf(data, formats[format])).digest('hex');
}

describe("the kernel of FlashAttention's own package, compiled by nvcc", () => {
  const cases = casePaths.map((path) => [basename(path, '.safetensors'), path] as const);

  it('was run on every captured problem', () => {
    const names = Object.keys(recorded).filter((name) => name.startsWith('flash-attn '));
    expect(names).toEqual(cases.map(([name]) => `flash-attn ${name}`));
  });

  inTurn.each(cases)('%s: the model has its bits', async (name, path) => {
    const { problem } = await readCase(path);
    const settings = new Map([
      ['build', 'flash-attn'],
      ['splits', 'auto'],
    ]);
    const { out, lse } = runKernelModel('fa2', problem, settings);
    const wrote = recorded[`flash-attn ${name}`];
    expect({ out: digest(out), lse: digest(lse) }).toEqual({ out: wrote.out, lse: wrote.lse });
  });
});
