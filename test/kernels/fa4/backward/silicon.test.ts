import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runBackward } from '../../../../kernels/index.js';
import { formats, patternsOf } from '../../../../src/formats/index.js';
import { writeSafetensors } from '../../../../src/io/index.js';
import type { Tensor } from '../../../../src/problem/index.js';
import { siliconCases, siliconProblem } from './silicon-cases.js';
import { turns } from '../../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** A folder to write the problems into, for `fixtures/capture/backward`. */
const folder = process.env['SILICON_PROBLEMS'];

/** SHA-256 of the bytes of tensors, by name. */
type Digests = Readonly<Record<string, string>>;

interface Captured {
  readonly cases: Readonly<Record<string, { readonly read: Digests; readonly wrote: Digests }>>;
}

const file = new URL('../../../../fixtures/silicon/sm_90/fa4-backward.json', import.meta.url);
const captured = JSON.parse(readFileSync(file, 'utf8')) as Captured;

function digest({ data, format }: Tensor): string {
  return createHash('sha256').update(patternsOf(data, formats[format])).digest('hex');
}

describe.runIf(folder !== undefined)('the captured problems', () => {
  it.each(siliconCases)('$name is written', async (chosen) => {
    const { problem, ...tensors } = siliconProblem(chosen);
    const { q, k, v, scale, causal, window, softcap } = problem;
    const metadata = {
      scale: String(scale),
      causal: String(causal),
      ...(window === null ? {} : { window: `${window.left},${window.right}` }),
      ...(softcap === null ? {} : { softcap: String(softcap) }),
      ctas: String(chosen.ctas),
      order: chosen.order,
    };
    const path = join(folder!, `${chosen.name}.safetensors`);
    await writeSafetensors(path, { q, k, v, ...tensors }, metadata);
    expect(q.shape.length).toBe(3);
  });
});

describe('what an H200 made in the order of FlashAttention-4', () => {
  it('is of every case', () => {
    expect(Object.keys(captured.cases).sort()).toEqual(siliconCases.map(({ name }) => name).sort());
  });

  inTurn.each(siliconCases)('$name: it read these tensors', (chosen) => {
    const { problem, ...stored } = siliconProblem(chosen);
    const { q, k, v } = problem;
    const tensors = Object.entries({ q, k, v, ...stored });
    expect(Object.fromEntries(tensors.map(([name, tensor]) => [name, digest(tensor)]))).toEqual(
      captured.cases[chosen.name].read,
    );
  });

  inTurn.each(siliconCases)('$name: the emulation writes the same gradients', (chosen) => {
    const { problem, dout, ...forward } = siliconProblem(chosen);
    const settings = new Map([
      ['architecture', 'sm_90'],
      ['ctas', String(chosen.ctas)],
      ['deterministic', 'true'],
    ]);
    const { dq, dk, dv } = runBackward('fa4', problem, { dout, forward }, settings);
    const { wrote } = captured.cases[chosen.name];
    expect({ dq: digest(dq), dk: digest(dk), dv: digest(dv) }).toEqual({
      dq: wrote.dq,
      dk: wrote.dk,
      dv: wrote.dv,
    });
  });
});
