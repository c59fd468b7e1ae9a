import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { drawPlan, type Fixed } from '../audit/links/cache-write/drawn-plan.js';
import type { PlannedScaling } from '../audit/links/cache-write/plain-writer.js';
import { dumpOf, numbers, whole, writeRaw } from './cache-file.js';
import { refusal, runInProcess } from './run-in-process.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-cache-'));
afterAll(() => rmSync(scratch, { recursive: true }));

const scaling: PlannedScaling = {
  code: 'fp32',
  columns: 64,
  layout: 'nhd',
  rule: 'amax',
  maximum: 448,
  division: 'divide',
  floor: null,
  global: 1,
  perHead: true,
};
const fixed: Fixed = {
  tokens: 5,
  heads: 4,
  columns: 64,
  blocks: 3,
  blockSize: 8,
  layouts: ['nhd', 'nhd'],
  slots: [8, 9, 10, 2, -1],
  code: 'e4m3',
  scaling,
  rope: false,
  norm: false,
  spread: 4,
};
const metadata = { contract: 'cache-write' };

async function file(
  tensors: Parameters<typeof writeRaw>[1],
  notes: Readonly<Record<string, string>> = {},
): Promise<string> {
  const path = join(scratch, `${randomUUID()}.safetensors`);
  await writeRaw(path, tensors, { ...metadata, ...notes });
  return path;
}

describe('flashproof audit of a cache write', () => {
  it('passes a right write and says by which rule', async () => {
    const path = await file(dumpOf(drawPlan(1, fixed)));
    const run = await runInProcess('audit', path, '--json', join(scratch, 'a.json'));
    const { status } = run;
    const stdout = run.stdout.replaceAll(/\s+/g, ' ');
    expect(stdout).toMatch(/PASS.*every stored number is a correct rounding/s);
    expect(stdout).toMatch(/factors of k are amax\/448 by token and head/);
    expect(stdout).toMatch(/nothing else was written/);
    expect(stdout).toMatch(/the rule of the factors of k is taken from the cache/);
    expect(status).toBe(0);
  });

  it('fails a wrong one with the cause and its place', async () => {
    const plan = drawPlan(1, fixed);
    const path = await file(
      dumpOf(plan, {
        divisor: (part, token, head, group) => [part, token, head === 2 ? 1 : head, group],
      }),
    );
    const { status, stdout } = await runInProcess('audit', path);
    expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /FAIL: numbers are divided by the factor of the head before \(head 2\)/,
    );
    expect(status).toBe(1);
  });

  it('does not pass a cache that is as it was before', async () => {
    const tensors = dumpOf(drawPlan(1, fixed));
    const unchanged = Object.fromEntries(
      Object.entries(tensors).map(([name, tensor]) => [
        name,
        tensors[name.replace(/_before$/, '')] ?? tensor,
      ]),
    );
    const { status, stdout } = await runInProcess('audit', await file(unchanged));
    expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(/NOT JUDGED: no byte of the cache changed/);
    expect(status).toBe(1);
  });

  it('does not pass factors that follow no rule', async () => {
    const plan = drawPlan(2, fixed);
    const path = await file(dumpOf(plan, { factor: (amax, right) => right * (1.1 + amax / 7) }));
    const { stdout } = await runInProcess('audit', path);
    expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /NOT JUDGED: factors of k follow no rule that is known .* declare scale_rule/,
    );
  });

  it('holds the rule to what is declared', async () => {
    const path = await file(dumpOf(drawPlan(1, fixed)), {
      scale_rule: 'power-up',
      scale_floor: 'none',
    });
    const { stdout } = await runInProcess('audit', path);
    expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /FAIL: factors are amax\/448, where they have to be the power of two at or above amax\/448/,
    );
  });

  it('judges slots by a page table', async () => {
    const plan = drawPlan(1, { ...fixed, slots: [8, 9, 10, 2, 3] });
    const table = {
      block_table: whole([1, 0, 2, 0], [2, 2]),
      positions: whole([0, 1, 2, 2, 3]),
      token_sequences: whole([0, 0, 0, 1, 1]),
    };
    const { stdout } = await runInProcess('audit', await file({ ...dumpOf(plan), ...table }));
    expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /FAIL: slot_mapping has tokens 3 to 4 in page 0, of sequence 0, where the page table has page 2/,
    );
    const right = { ...table, block_table: whole([1, 0, 0, 2], [2, 2]) };
    const passed = await runInProcess('audit', await file({ ...dumpOf(plan), ...right }));
    expect(passed.stdout).toMatch(/slots are those of the page table/);
    expect(passed.status).toBe(0);
  });

  it('says that nobody knows what else was written', async () => {
    const tensors = Object.entries(dumpOf(drawPlan(1, fixed))).filter(
      ([name]) => !name.endsWith('_before'),
    );
    const { stdout } = await runInProcess('audit', await file(Object.fromEntries(tensors)));
    expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /other bytes not judged: the cache before the write is not given/,
    );
  });

  it("reads DeepSeek's rows of 656 bytes", async () => {
    const draw = (seed: number, count: number) =>
      Float64Array.from({ length: count }, (_, i) =>
        Math.fround(Math.sin(seed + i * 1.7) * (1 + (i % 5))),
      );
    const [latent, rope] = [draw(1, 2 * 512), draw(2, 2 * 64)];
    const kvC = numbers('bf16', latent, [2, 512]);
    const kPe = numbers('bf16', rope, [2, 64]);
    const cache = new Uint8Array(4 * 656);
    const read = (bytes: Uint8Array) =>
      Float32Array.from(
        { length: bytes.length / 2 },
        (_, i) =>
          new Float32Array(Uint32Array.of((bytes[2 * i] + 256 * bytes[2 * i + 1]) << 16).buffer)[0],
      );
    const exact = read(kvC.bytes);
    for (const [token, slot] of [3, 1].entries()) {
      for (let tile = 0; tile < 4; tile++) {
        const of = exact.subarray(token * 512 + tile * 128, token * 512 + (tile + 1) * 128);
        const factor = Math.fround(of.reduce((most, x) => Math.max(most, Math.abs(x)), 0) / 448);
        cache.set(numbers('fp32', [factor], [1]).bytes, slot * 656 + 512 + 4 * tile);
        cache.set(
          numbers(
            'e4m3',
            of.map((x) => x / factor),
            [128],
          ).bytes,
          slot * 656 + tile * 128,
        );
      }
      cache.set(kPe.bytes.subarray(token * 128, (token + 1) * 128), slot * 656 + 528);
    }
    const kv_cache = { dtype: 'U8', shape: [2, 2, 656], bytes: cache };
    const path = await file({ kv_c: kvC, k_pe: kPe, slot_mapping: whole([3, 1]), kv_cache });
    const { status, stdout } = await runInProcess('audit', path);
    expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /factors of kv_c are amax\/448 by token and block of 128 columns/,
    );
    expect(status).toBe(0);
    cache[3 * 656 + 600] ^= 1;
    const wrong = await runInProcess(
      'audit',
      await file({ kv_c: kvC, k_pe: kPe, slot_mapping: whole([3, 1]), kv_cache }),
    );
    expect(wrong.stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /k_pe, token 0, head 0, column 36, slot 3/,
    );
    expect(wrong.status).toBe(1);
  });

  it('refuses what does not fit, with the mend', async () => {
    const tensors = dumpOf(drawPlan(1, fixed));
    const without = Object.fromEntries(
      Object.entries(tensors).filter(([name]) => name !== 'slot_mapping'),
    );
    expect(await refusal('audit', await file(without))).toMatch(
      /has neither slot_mapping nor block_table/,
    );
    const far = { ...tensors, slot_mapping: whole([8, 9, 10, 2, 99]) };
    expect(await refusal('audit', await file(far))).toMatch(
      /slot_mapping has 99 at token 4, and the cache has 24 slots/,
    );
    expect(await refusal('audit', await file(tensors, { scale_rule: 'max' }))).toMatch(
      /give one of given, amax/,
    );
    expect(await refusal('audit', await file(tensors, { k_layout: 'slot/B head column' }))).toMatch(
      /in one place/,
    );
    const bytes = { ...tensors, key_cache: { ...tensors.key_cache, dtype: 'U8' } };
    expect(await refusal('audit', await file(bytes))).toMatch(
      /key_cache holds U8, which does not say its format/,
    );
  });
});
