import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readKernel, readManifest } from '../../fixtures/ptx/unpack.mjs';
import type { LawId } from '../../properties/index.js';
import { startCompiledKernel, startFollowing } from '../../src/jobs/index.js';
import type { Problem } from '../../src/problem/index.js';
import { tryLaw } from '../properties/laws/try-law.js';
import { testSeed } from '../setup/effort.js';
import { filledProblem, sumNormalNumbers, uniformNumbers } from '../setup/problems.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-meaning-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const name = 'triton-sm100-attend-tma-d64-causal-warps';

/** Tries a law on the kernel of Triton, with its text changed. */
async function tryOn(id: LawId, problem: Problem, change: (ptx: string) => string, choice = 0) {
  const kernel = readManifest().kernels.find((one) => one.name === name)!;
  const folder = mkdtempSync(join(scratch, 'kernel-'));
  const { ptx } = readKernel(kernel);
  const changed = change(ptx);
  writeFileSync(join(folder, 'kernel.ptx'), changed);
  const path = join(folder, 'template.json');
  writeFileSync(path, JSON.stringify(kernel.template));
  const live = await startCompiledKernel(path);
  return tryLaw(
    id,
    { problem, choice },
    {
      kernel: async (posed) => {
        const answer = await live.run(posed);
        return answer.ok ? answer.outputs : expect.fail(answer.reason);
      },
      promises: { formats: ['bf16'], follow: await startFollowing(path) },
      ...(id === 'within-bound' ? {} : { strength: 'bits' as const }),
    },
  );
}

const asCompiled = (ptx: string) => ptx;

/** The text with a part of it replaced, which it has. */
const replacing = (what: string | RegExp, by: string) => (ptx: string) => {
  const changed = ptx.replace(what, by);
  expect(changed).not.toBe(ptx);
  return changed;
};

const normal = sumNormalNumbers(uniformNumbers(testSeed));
const frame = { batch: 2, queries: 40, keys: 40, dim: 64, format: 'bf16' } as const;
const problem = filledProblem(frame, normal, { causal: true });

const statements = async (...given: Parameters<typeof tryOn>): Promise<string> => {
  const result = await tryOn(...given);
  return result.status === 'violated' ? result.statement : expect.fail(result.status);
};

describe('laws of what a compiled kernel means', () => {
  it.each(['means', 'unreached', 'same-expression'] as const)('hold: %s', async (id) => {
    expect((await tryOn(id, problem, asCompiled)).status).toBe('held');
  });

  it('see a constant one ulp off, which no bound sees', async () => {
    const oneUlp = replacing(/0f3FB8AA3B/g, '0f3FB8AA3C');
    expect(await statements('means', problem, oneUlp)).toContain('no known constant');
    expect((await tryOn('within-bound', problem, oneUlp)).status).toBe('held');
  });

  inTurn('see scores of masked keys that only lose against the maximum', async () => {
    const added = replacing(
      /selp\.f32\s+(%\w+), (%\w+), 0fFF800000, (%\w+);/g,
      '{ .reg .f32 %mask; selp.f32 %mask, 0f00000000, 0fC9742400, $3; add.f32 $1, $2, %mask; }',
    );
    expect(await statements('unreached', problem, added)).toMatch(
      /of out depend on what must not reach them \(row \d+ on key \d+/,
    );
    expect((await tryOn('masked-keys', problem, added)).status).toBe('held');
    expect((await tryOn('means', problem, added)).status).toBe('held');
  });

  inTurn('see another order of operations in a batch, though the bits are the same', async () => {
    const [a, b] = ['%r1039', '%r1038'];
    const pack = `cvt.rn.bf16x2.f32 \t%r1073, ${a}, ${b};`;
    const twiceHalved = `{ .reg .pred %later; .reg .b32 %cta; mov.u32 %cta, %ctaid.y; setp.ne.u32 %later, %cta, 0;
@%later mul.f32 ${a}, ${a}, 0f40000000; @%later mul.f32 ${a}, ${a}, 0f3F000000; }
${pack}`;
    const change = replacing(pack, twiceHalved);
    // The second sequence of two, alone.
    const second = 12;
    expect(await statements('same-expression', problem, change, second)).toMatch(
      /^with sequence 1 alone, O at .* has another expression/,
    );
    expect((await tryOn('sequences-alone', problem, change, second)).status).toBe('held');
    expect((await tryOn('means', problem, change)).status).toBe('held');
  });

  it('say nothing of what is lost', async () => {
    const lossy = replacing(
      /(cvt\.rn\.bf16x2\.f32 \t%r1073, %r1039, %r1038;)/,
      'xor.b32 %r1038, %r1038, 0x00000155; $1',
    );
    const result = await tryOn('means', problem, lossy);
    expect(result).toMatchObject({ status: 'inapplicable' });
  });

  it('tell the factor of q·k by the LSE where O does not depend on it', async () => {
    const alike = filledProblem(
      { ...frame, batch: 1, queries: 3, keys: 3 },
      { q: () => 0.5, k: () => 1, v: normal },
      { causal: true },
    );
    expect((await tryOn('means', alike, asCompiled)).status).toBe('held');
    const oneUlp = replacing(/0f3FB8AA3B/g, '0f3FB8AA3C');
    expect(await statements('means', alike, oneUlp)).toContain("lse is not the contract's");
  });
});
