import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { decodeToFloat64, encodeFromFloat64, formats } from '../../src/formats/index.js';
import { openTensorFile } from '../../src/io/index.js';
import type { ChainReport } from '../../src/report/json/index.js';
import { turns } from '../setup/turns.js';
import { writeRaw } from './cache-file.js';
import type { Dump } from './chain-dump.js';
import { runInProcess } from './run-in-process.js';

const inTurn = turns(import.meta.url);
const scratch = mkdtempSync(join(tmpdir(), 'flashproof-served-'));
afterAll(() => rmSync(scratch, { recursive: true }));

const recorded = (server: string) =>
  fileURLToPath(
    new URL(`../../examples/decode-chain/recorded/${server}.safetensors`, import.meta.url),
  );

/** The report on a recorded step, and how the command ended; with damage done to the bytes of its tensors. */
async function judged(server: string, damage?: (tensors: Dump) => void) {
  let path = recorded(server);
  if (damage !== undefined) {
    const file = await openTensorFile(path);
    const tensors: Record<string, Dump[string]> = {};
    for (const { name, dtype, shape } of file.entries.values())
      tensors[name] = { dtype, shape, bytes: Uint8Array.from(await file.readBytes(name)) };
    await file.close();
    damage(tensors);
    path = join(scratch, 'damaged.safetensors');
    await writeRaw(path, tensors, file.metadata);
  }
  const json = join(scratch, 'report.json');
  const { status } = await runInProcess('audit', path, '--json', json);
  const report = JSON.parse(readFileSync(json, 'utf8')) as ChainReport;
  const links = report.links.filter((link) => link.status !== 'PASS').map(({ name }) => name);
  return { status, report, links };
}

const words = ({ bytes }: Dump[string]) =>
  new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2);
const floats = ({ bytes }: Dump[string]) =>
  new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);

/** Three sequences, eight heads of 64 columns; SGLang's keys are in four parts. */
const [rows, dim, parts] = [3 * 8, 64, 4];

/** Merges SGLang's parts by weights of base 2. */
function mergeInBase2(tensors: Dump): void {
  const [out, lse] = ['out_partial', 'lse_partial'].map((name) => floats(tensors[`merge.${name}`]));
  const merged = Float64Array.from({ length: rows * dim }, (_, at) => {
    const row = Math.floor(at / dim);
    const all = Array.from({ length: parts }, (__, part) => part);
    const weights = all.map((part) => 2 ** lse[part * rows + row]);
    const sum = weights.reduce((a, b) => a + b, 0);
    return all.reduce((a, p) => a + (weights[p] / sum) * out[p * rows * dim + at], 0);
  });
  words(tensors['merge.out']).set(encodeFromFloat64(formats.bf16, merged) as Uint16Array);
}

const damages: readonly (readonly [string, string, readonly string[], (tensors: Dump) => void])[] =
  [
    ['weights of base 2', 'sglang', ['merge'], mergeInBase2],
    [
      '2 % on a head of a part',
      'sglang',
      ['attention', 'merge'],
      (tensors) => {
        for (const name of ['attention.out_partial', 'merge.out_partial'])
          floats(tensors[name])
            .subarray(2 * dim, 3 * dim)
            .forEach((x, i, of) => (of[i] = x * 1.02));
      },
    ],
    [
      'a query of another head',
      'sglang',
      ['prologue', 'attention'],
      (tensors) => {
        for (const name of ['prologue.q_out', 'attention.q'])
          words(tensors[name]).copyWithin(0, dim, 2 * dim);
      },
    ],
    [
      'a byte of a slot that is none of the new ones',
      'vllm',
      ['cache-write'],
      (tensors) => {
        for (const name of ['cache-write.key_cache', 'attention.k']) tensors[name].bytes[5] ^= 8;
      },
    ],
    [
      'a factor that multiplies',
      'vllm',
      ['cache-write', 'attention'],
      (tensors) => {
        const { bytes } = tensors['cache-write.value_cache'];
        const before = tensors['cache-write.value_cache_before'].bytes;
        const changed = [...bytes.keys()].filter((i) => bytes[i] !== before[i]);
        const halved = decodeToFloat64(bytes, formats.e4m3).map((x) => x / 1024);
        const stored = encodeFromFloat64(formats.e4m3, halved);
        for (const name of ['cache-write.value_cache', 'attention.v'])
          for (const i of changed) tensors[name].bytes[i] = stored[i];
      },
    ],
    [
      'an output of another head',
      'vllm',
      ['attention'],
      (tensors) => words(tensors['attention.out']).copyWithin(0, dim, 2 * dim),
    ],
  ];

describe('decode steps that servers made on an H200', () => {
  it.each(['sglang', 'vllm'])('%s: every link is right', async (server) => {
    const { status, report, links } = await judged(server);
    expect(links).toEqual([]);
    expect(status).toBe(0);
    expect(report.checks.every(({ wrong }) => wrong === 0)).toBe(true);
    expect(report.checks.length).toBe(server === 'sglang' ? 6 : 4);
  });

  inTurn.each(damages)('%s: %s', async (title, server, broken, damage) => {
    const { status, links } = await judged(server, damage);
    expect(status, title).toBe(1);
    expect(links).toEqual(broken);
  });
});
