import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  backwardFormat,
  fa4BackwardConfiguration,
} from '../../../../kernels/fa4/backward/configuration.js';
import { fa4BackwardRecipe } from '../../../../kernels/fa4/backward/recipe.js';
import { createBackward } from '../../../../kernels/online-softmax/backward/backward.js';
import { formats, patternsOf } from '../../../../src/formats/index.js';
import { writeSafetensors } from '../../../../src/io/index.js';
import { problemShape, type Tensor } from '../../../../src/problem/index.js';
import { siliconCases, siliconProblem } from './silicon-cases.js';

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

  it.each(siliconCases)('$name: it read these tensors', (chosen) => {
    const { problem, ...stored } = siliconProblem(chosen);
    const { q, k, v } = problem;
    const tensors = Object.entries({ q, k, v, ...stored });
    expect(Object.fromEntries(tensors.map(([name, tensor]) => [name, digest(tensor)]))).toEqual(
      captured.cases[chosen.name].read,
    );
  });

  it.each(siliconCases)('$name: the emulation writes the same gradients', (chosen) => {
    const { problem, dout, out, lse } = siliconProblem(chosen);
    const shape = problemShape(problem);
    const recipe = fa4BackwardRecipe(
      problem,
      backwardFormat(problem, shape, dout),
      fa4BackwardConfiguration(shape, {
        architecture: 'sm_90',
        ctas: chosen.ctas,
        deterministic: true,
      }),
    );
    expect(recipe.queryOrder).toBe(chosen.order);
    const backward = createBackward(problem, shape, recipe, { dout, out, lse });
    const groups = Array.from({ length: shape.kvHeads }, (_, kvHead) => backward.run(kvHead));
    const digestOf = (name: 'dq' | 'dk' | 'dv'): string => {
      const hash = createHash('sha256');
      for (const group of groups) hash.update(group[name]);
      return hash.digest('hex');
    };
    const { dq, dk, dv } = captured.cases[chosen.name].wrote;
    expect({ dq: digestOf('dq'), dk: digestOf('dk'), dv: digestOf('dv') }).toEqual({ dq, dk, dv });
  });
});
