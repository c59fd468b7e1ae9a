import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { rcpApproxFtzFloat64, rsqrtApproxFtzFloat64 } from '../../../src/hardware/index.js';
import { fromEnvironment, testSeed } from '../../setup/effort.js';

interface Captured {
  readonly binades: readonly string[];
  readonly exponents: string;
  readonly lowWordsOfOnes: string;
}

const names = ['rcp.approx.ftz.f64', 'rsqrt.approx.ftz.f64'] as const;
const captured = JSON.parse(
  readFileSync(
    new URL('../../../fixtures/silicon/sm_90/high-words.json', import.meta.url),
  ).toString(),
) as Readonly<Record<(typeof names)[number], Captured>>;

const models = {
  'rcp.approx.ftz.f64': rcpApproxFtzFloat64,
  'rsqrt.approx.ftz.f64': rsqrtApproxFtzFloat64,
};
const blockLength = 65536;

function hash(count: number, resultOf: (i: number) => number): string {
  const results = Uint32Array.from({ length: count }, (_, i) => resultOf(i));
  return createHash('sha256').update(results).digest('hex').slice(0, 16);
}

describe.each(names)('%s on high words gives what an H200 gave', (name) => {
  const model = models[name];
  const { binades, exponents, lowWordsOfOnes } = captured[name];
  /** One block in so many is compared in a default run, which ones by the seed; LONG=1 compares all. */
  const every = fromEnvironment('LONG', 0) === 1 ? 1 : 4;

  it('in the two binades from 1', () => {
    expect(binades).toHaveLength(32);
    const wrong = binades.flatMap((expected, block) => {
      if ((block + testSeed) % every !== 0) return [];
      const first = 0x3ff00000 + block * blockLength;
      return hash(blockLength, (i) => model(first + i)) === expected ? [] : [block];
    });
    expect(wrong).toEqual([]);
  });

  it('at every exponent of both signs, whatever the low word is', () => {
    const atExponents = hash(4096, (i) => model(i * 0x100000));
    expect(atExponents).toBe(exponents);
    expect(atExponents).toBe(lowWordsOfOnes);
  });

  it('but NaN, which it gives for NaN', () => {
    for (const high of [0x7ff00001, 0x7ff80000, 0x7fffffff, 0xfff80000])
      expect(model(high)).toBe(0x7fffffff);
  });
});
