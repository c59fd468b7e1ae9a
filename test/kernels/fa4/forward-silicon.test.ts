import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import { emulate } from '../../../src/emulate/index.js';
import { formats, patternsOf } from '../../../src/formats/index.js';
import type { Tensor } from '../../../src/problem/index.js';
import { casePaths, readCase } from '../../audit/captured-cases.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

interface CapturedForward {
  readonly settings: Readonly<Record<string, number>>;
  /** Of the bytes of each tensor that the GPU wrote. */
  readonly sha256: Readonly<Record<string, string>>;
}

const file = new URL('../../../fixtures/silicon/sm_90/fa4-forward.json', import.meta.url);
const captured = JSON.parse(readFileSync(file, 'utf8')) as Record<string, CapturedForward>;

/** The captured variants of the kernel, by the settings that they change. */
const variants: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['fa4', {}],
  ['fa4_hwexp', { 'exp2.frequency': '0' }],
  ['fa4_alwaysrescale', { 'rescale.threshold': '0' }],
];

function digest(bytes: Uint8Array | Int32Array | Uint16Array | Uint32Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function tensorDigest({ data, format }: Tensor): string {
  return digest(patternsOf(data, formats[format]));
}

describe.each(casePaths.map((path) => [basename(path), path]))('%s on an H200', (name, path) => {
  const { settings, sha256 } = captured[name.slice(0, 2)];
  const base = Object.entries(settings).map(([key, value]) => [key, String(value)] as const);

  async function run(changes: Readonly<Record<string, string>>) {
    const { problem } = await readCase(path);
    const chosen = new Map([['architecture', 'sm_90'], ...base, ...Object.entries(changes)]);
    return emulate(problem, 'fa4', { settings: chosen });
  }

  it.each(variants)('%s: output, LSE and rescales equal bit for bit', async (variant, changes) => {
    const { out, lse, rescales } = await run(changes);
    expect(tensorDigest(out)).toBe(sha256[`${variant}.out`]);
    expect(tensorDigest(lse)).toBe(sha256[`${variant}.lse`]);
    expect(digest(Int32Array.from(rescales!.data as Float32Array))).toBe(
      sha256[`${variant}.rescales`],
    );
  });

  inTurn('gives the LSE of a contracted multiply-add as well', async () => {
    const { out, lse } = await run({ 'lse.fused': 'true' });
    expect(tensorDigest(out)).toBe(sha256['fa4.out']);
    expect(tensorDigest(lse)).toBe(sha256['fa4.lse_fma']);
  });

  it('gives the same bits with the tensor cores of Blackwell', async () => {
    const { out, lse } = await run({ architecture: 'sm_100' });
    expect(tensorDigest(out)).toBe(sha256['fa4.out']);
    expect(tensorDigest(lse)).toBe(sha256['fa4.lse_fma']);
  });
});
