import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPeriodicProgress } from '../../src/cli/periodic-progress.js';
import { edgeBlocks, randomBlocks, sampleBlocks } from '../../src/conform/block-sample.js';
import { bundledCaptures, readCapture } from '../../src/conform/capture.js';
import { compareBlocks } from '../../src/conform/compare-blocks.js';
import { checkConformance, renderConformance } from '../../src/conform/index.js';
import {
  classify,
  conversionTargets,
  convertFloat32Bits,
  decode,
} from '../../src/formats/index.js';
import { RequestError } from '../../src/request-error.js';
import { builtDist } from '../setup/built-dist.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-conform-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** A copy of the bundled captures with one bit of a block's hash flipped. */
function falsified(name: string, fingerprint: string, block: number): string {
  const folder = join(scratch, name);
  cpSync(bundledCaptures(), folder, { recursive: true });
  const path = join(folder, fingerprint);
  const content = readFileSync(path);
  content[block * 8 + 5] ^= 0x10;
  writeFileSync(path, content);
  return folder;
}

const inputsPerBlock = 2 ** 20;

describe.each(conversionTargets)('the sample of $instruction', ({ format, options }) => {
  /** What becomes of one fp32 bit pattern: its class, and the binade of a subnormal result. */
  const fate = (bits: number): string => {
    const out = new Uint16Array(1);
    convertFloat32Bits(format, Uint32Array.of(bits), out, options);
    const value = decode(format, out[0]);
    const subnormal = Math.abs(value) < 2 ** format.minExponent && value !== 0;
    const saturated = Math.abs(value) === format.maxFinite;
    const detail = subnormal ? Math.floor(Math.log2(Math.abs(value))) : saturated;
    return JSON.stringify([classify(format, out[0]), detail]);
  };

  it('has every block in which the conversion changes its ways', () => {
    const edges = new Set(edgeBlocks(format));
    for (let block = 0; block < 4096; block++) {
      const first = block * inputsPerBlock;
      const [atFirst, atLast] = [fate(first), fate(first + inputsPerBlock - 1)];
      if (!edges.has(block)) expect(atLast, `block ${block}`).toBe(atFirst);
    }
  });

  it('has both signs, each block once, in order, the same for a seed', () => {
    const sample = sampleBlocks(format, 'seed');
    const edges = edgeBlocks(format);
    expect(sample).toEqual([...new Set(sample)].sort((a, b) => a - b));
    expect(sample).toHaveLength(edges.length + 64);
    expect(sample.every((block) => block >= 0 && block < 4096)).toBe(true);
    expect(edges.map((block) => (block + 2048) % 4096).sort((a, b) => a - b)).toEqual(edges);
    expect(sampleBlocks(format, 'seed')).toEqual(sample);
    expect(sampleBlocks(format, 'another')).not.toEqual(sample);
  });
});

describe('random blocks', () => {
  it('are uniform and never among those taken', () => {
    const taken = [0, 1, 2, 4095];
    expect(randomBlocks('s', 1e9, taken)).toEqual(Array.from({ length: 4092 }, (_, i) => i + 3));
    const many = Array.from({ length: 400 }, (_, seed) => randomBlocks(`${seed}`, 10, taken));
    const mean = many.flat().reduce((sum, block) => sum + block, 0) / 4000;
    // 4000 uniform draws from 3..4094: the mean's deviation is 4092/√12/√4000 = 18.7.
    expect(Math.abs(mean - 2048.5)).toBeLessThan(6 * 18.7);
  });
});

describe('captures', () => {
  it('are found in the package, with their source', async () => {
    const { source, fingerprints } = await readCapture(bundledCaptures(), conversionTargets);
    expect(source).toMatchObject({ gpu: 'NVIDIA H200', capability: 'sm_90' });
    expect(source.captured).toMatch(/^\d{4}-\d\d-\d\d$/);
    expect(fingerprints.size).toBe(conversionTargets.length);
  });

  it.each([
    ['no JSON', '{', /capture\.json: is not JSON/],
    ['a number', '3', /capture\.json: is not a JSON object/],
    ['a GPU that is no text', '{"gpu": 7}', /"gpu" is not a line of text/],
    ['control characters', '{"driver": "\\u001b[2J"}', /"driver" is not a line of text/],
  ])('with %s in capture.json are refused', async (_, content, message) => {
    const folder = falsified('malformed', conversionTargets[0].fingerprint, 0);
    writeFileSync(join(folder, 'capture.json'), content);
    const reading = readCapture(folder, conversionTargets);
    await expect(reading).rejects.toThrow(RequestError);
    await expect(reading).rejects.toThrow(message);
  });

  it('that lack a fingerprint or cut it short are refused', async () => {
    const [target] = conversionTargets;
    const folder = falsified('short', target.fingerprint, 0);
    writeFileSync(join(folder, target.fingerprint), new Uint8Array(32760));
    await expect(readCapture(folder, [target])).rejects.toThrow(/has 32760 bytes; .* has 32768/);
    rmSync(join(folder, target.fingerprint));
    await expect(readCapture(folder, [target])).rejects.toThrow(/is missing; capture cvt\.rn/);
    await expect(readCapture(folder, conversionTargets.slice(1))).resolves.toBeDefined();
  });
});

describe('the comparison', () => {
  it('gives each task its own mismatches, in order, and counts blocks', async () => {
    const [bf16, fp16] = conversionTargets.map(({ instruction, fingerprint }) => ({
      instruction,
      expected: new Uint8Array(readFileSync(join(bundledCaptures(), fingerprint))),
    }));
    const swapped = { ...bf16, expected: fp16.expected, blocks: [0x3f9, 0x3f8, 0x001] };
    const seen: string[] = [];
    const result = await compareBlocks(
      [{ ...bf16, blocks: [0x3f8] }, swapped, { ...fp16, blocks: [] }],
      1,
      (done, total) => seen.push(`${done}/${total}`),
    );
    // The first normal numbers round differently; the smallest fp32 numbers become 0 in both up to
    // where bf16's subnormals begin, which is inside block 0.
    expect(result).toEqual([[], [0x001, 0x3f8, 0x3f9], []]);
    expect(seen).toEqual(['1/4', '4/4']);
  });

  it('refuses unknown instructions and lists the known ones', async () => {
    await expect(checkConformance({ instructions: ['cvt.rn.f8'] })).rejects.toThrow(
      /unknown instruction "cvt\.rn\.f8"; known are cvt\.rn\.bf16x2\.f32, .*e5m2x2\.f32$/,
    );
  });
});

describe('the result as text', () => {
  const instructions = [
    {
      instruction: 'cvt.rn.f16x2.f32',
      format: 'fp16',
      blocksChecked: 2,
      inputsChecked: 2097152,
      mismatchingBlocks: [0x3f8, 0x3f9],
      firstMismatch: { block: 0x3f8, first: 0x3f800000, last: 0x3f8fffff },
    },
  ] as const;
  const silicon = { folder: 'dir', gpu: null, capability: null, driver: null, captured: null };

  it('names the first mismatching block and its inputs', () => {
    const text = renderConformance({
      ...{ pass: false, exhaustive: false, seed: '7', silicon, instructions },
    });
    expect(text).toMatch(/^FAIL: 1 of 1 conversion differs /);
    expect(text).toContain('cvt.rn.f16x2.f32       2,097,152                   2');
    expect(text).toContain('block 1016, inputs 0x3f800000 to 0x3f8fffff (1 to 1.12499');
    expect(text).toContain('unknown GPU: dir has no capture.json');
    expect(text).toContain('seed 7');
  });
});

describe('progress without a terminal', () => {
  it('is a plain line every quarter of a minute', () => {
    const written: string[] = [];
    const stream = { isTTY: false, write: (text: string) => written.push(text) };
    let now = 0;
    const progress = createPeriodicProgress('work', stream as never, () => now);
    for (; now <= 40_000; now += 1000) progress.update(now / 80_000);
    progress.done();
    expect(written).toEqual(['work: 18 %, 65 s left\n', 'work: 37 %, 50 s left\n']);
  });
});

describe('flashproof conform', () => {
  let main = '';
  beforeAll(async () => {
    main = join(await builtDist(), 'src/cli/main.js');
  });
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [main, 'conform', ...args], { encoding: 'utf8' });
  const [target] = conversionTargets;

  it('agrees with the silicon, whatever the number of threads', () => {
    const results = ['1', '3'].map((threads) => {
      const { status, stdout, stderr } = run(target.instruction, '--threads', threads, '--json=-');
      expect(stderr).toBe('');
      expect(status).toBe(0);
      const { created, seconds, ...result } = JSON.parse(stdout) as Record<string, unknown>;
      expect(Date.parse(created as string)).toBeGreaterThan(0);
      expect(seconds).toBeGreaterThan(0);
      return result;
    });
    expect(results[1]).toEqual(results[0]);
    expect(results[0]).toMatchObject({ kind: 'conform', verdict: { pass: true } });
  });

  it('fails on captures that differ, naming the block', () => {
    const [block] = sampleBlocks(target.format, '0').slice(-30);
    const folder = falsified('differing', target.fingerprint, block);
    const { status, stdout } = run(target.instruction, '--captures', folder);
    expect(status).toBe(1);
    expect(stdout).toMatch(/^FAIL: 1 of 1 conversion differs/);
    expect(stdout).toContain(`first mismatch in block ${block}, inputs 0x`);
  });

  it.each([
    [['cvt.rn.f8'], /^flashproof: unknown instruction "cvt\.rn\.f8"; known are /],
    [['--captures', scratch], /hash_cvt_rn_bf16_f32\.bin: is missing/],
    [['--threads', '0'], /whole number from 1 to 1024/],
    [['--threads', '1.5'], /whole number from 1 to 1024/],
  ])('refuses %j', (args, message) => {
    const { status, stdout, stderr } = run(...args);
    expect(stderr).toMatch(message);
    expect(stdout).toBe('');
    expect(status).toBe(2);
  });
});
