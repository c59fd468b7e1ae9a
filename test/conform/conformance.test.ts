import { readFileSync } from 'node:fs';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { bundledCaptures } from '../../src/conform/capture.js';
import { compareBlocks } from '../../src/conform/comparison.js';
import { checkConformance } from '../../src/conform/index.js';
import { renderConformance } from '../../src/report/text/index.js';
import { fingerprintTargets } from '../../src/conform/targets.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const scratch: string[] = [];
afterAll(() => Promise.all(scratch.map((path) => rm(path, { recursive: true, force: true }))));

/** A copy of the bundled captures. */
async function capturesCopy(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'flashproof-conform-'));
  scratch.push(folder);
  await cp(bundledCaptures(), folder, { recursive: true });
  return folder;
}

describe('the comparison of blocks', () => {
  it('gives each task its own mismatches, in order, and counts blocks', async () => {
    const [bf16, fp16] = ['cvt.rn.bf16x2.f32', 'cvt.rn.f16x2.f32'].map((instruction) => {
      const { stem } = fingerprintTargets.find((target) => target.instruction === instruction)!;
      const expected = new Uint8Array(readFileSync(join(bundledCaptures(), `hash_${stem}.bin`)));
      return { instruction, expected };
    });
    const swapped = { ...bf16!, expected: fp16!.expected, blocks: [0x3f9, 0x3f8, 0x001] };
    const seen: string[] = [];
    const result = await compareBlocks(
      [{ ...bf16!, blocks: [0x3f8] }, swapped, { ...fp16!, blocks: [] }],
      1,
      (done, total) => seen.push(`${done}/${total}`),
    );
    // The first normal numbers round differently; the smallest fp32 numbers become 0 in both up to
    // where bf16's subnormals begin, which is inside block 0.
    expect(result).toEqual([[], [0x001, 0x3f8, 0x3f9], []]);
    expect(seen).toEqual(['1/4', '4/4']);
  });
});

describe('the conformance', () => {
  it('refuses unknown instructions and lists the known ones', async () => {
    await expect(checkConformance({ instructions: ['cvt.rn.f8'] })).rejects.toThrow(
      /unknown instruction "cvt\.rn\.f8"[^;]*(?:; did you mean [^;]*)?; known are ex2\.approx\.ftz\.f32, .*fa4_ex2_poly5, .*cvt/,
    );
  });

  inTurn('of the functions of 16 bits holds on every input', async () => {
    const names = ['ex2.approx.f16', 'cvt.rn.f16x2.e5m2x2', 'cvt.rn.satfinite.e4m3x2.f16x2'];
    const { pass, instructions } = await checkConformance({ instructions: names });
    expect(pass).toBe(true);
    expect(instructions.map(({ instruction }) => instruction)).toEqual(names);
    for (const { inputsChecked, inputBits } of instructions)
      expect([inputsChecked, inputBits]).toEqual([65536, 16]);
  });

  inTurn('names the first input whose captured result differs', async () => {
    const folder = await capturesCopy();
    const pairs = join(folder, 'pairs_ex2_approx_ftz_f32.bin');
    const content = readFileSync(pairs);
    content[8 * 5 + 4] ^= 1;
    content[8 * 9 + 4] ^= 1;
    await writeFile(pairs, content);
    const instructions = ['ex2.approx.ftz.f32'];
    const conformance = await checkConformance({ instructions, captures: folder });
    const [{ results, mismatchingBlocks }] = conformance.instructions as [
      (typeof conformance.instructions)[0],
    ];
    expect(conformance.pass).toBe(false);
    expect(mismatchingBlocks).toEqual([]);
    const input = content.readUInt32LE(8 * 5);
    const silicon = content.readUInt32LE(8 * 5 + 4);
    expect(results).toMatchObject({
      mismatching: 2,
      first: { input, silicon, model: silicon ^ 1 },
    });
    const hex = (bits: number) => `0x${bits.toString(16).padStart(8, '0')}`;
    expect(renderConformance(conformance)).toContain(
      `ex2.approx.ftz.f32: first at input ${hex(input)}`,
    );
    expect(renderConformance(conformance)).toContain(
      `the silicon gives ${hex(silicon)}, the model ${hex(silicon ^ 1)}`,
    );
  });

  inTurn(
    'wants what it is asked for by name, and otherwise says what was not captured',
    async () => {
      const folder = await capturesCopy();
      for (const file of ['half_tables', 'widening_tables'])
        await rm(join(folder, `${file}.bin.gz`));
      const named = checkConformance({ captures: folder, instructions: ['tanh.approx.f16'] });
      await expect(named).rejects.toThrow(/has no half_tables\.bin\.gz with results of tanh\.appr/);
      for (const { stem } of fingerprintTargets.slice(1))
        await rm(join(folder, `hash_${stem}.bin`));
      const conformance = await checkConformance({ captures: folder });
      expect(conformance.pass).toBe(true);
      expect(conformance.instructions).toHaveLength(1);
      expect(conformance.notCaptured).toContain('tanh.approx.f16');
      expect(renderConformance(conformance)).toMatch(
        /\nmissing: no captures of ex2\.approx\.f32, /,
      );
    },
  );
});

describe('the result as text', () => {
  const silicon = { folder: 'dir', gpu: null, capability: null, driver: null, captured: null };
  const instructions = [
    {
      instruction: 'cvt.rn.f16x2.f32',
      pass: false,
      inputBits: 32,
      blocksChecked: 2,
      inputsChecked: 2097152,
      mismatchingBlocks: [0x3f8, 0x3f9],
      firstMismatchingBlock: { block: 0x3f8, first: 0x3f800000, last: 0x3f8fffff },
      results: { checked: 0, mismatching: 0, first: null },
    },
  ] as const;

  it('names the first mismatching block and its inputs', () => {
    const text = renderConformance({
      pass: false,
      exhaustive: false,
      seed: '7',
      silicon,
      instructions,
      notCaptured: [],
    });
    expect(text).toMatch(/^FAIL: 1 of 1 model differs /);
    expect(text).toMatch(/cvt\.rn\.f16x2\.f32 +2,097,152 +2 blocks/);
    expect(text).toContain('block 1016, inputs 0x3f800000 to 0x3f8fffff (1 to 1.12499');
    expect(text).toContain('no single results there; capture the block');
    expect(text).toContain('unknown GPU: dir has no capture.json');
    expect(text).toContain('seed 7');
  });
});
