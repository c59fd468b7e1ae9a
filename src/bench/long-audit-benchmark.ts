import { mkdtemp, open, rm, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { attentionOracle } from '../../oracles/index.js';
import { auditAccuracy, chooseRows } from '../audit/index.js';
import { encodeFromFloat64, formats } from '../formats/index.js';
import { problemShape, type Problem, type Tensor } from '../problem/index.js';
import type { Benchmark } from './benchmark.js';
import { measureCommand } from './command-process.js';
import { normalValues } from './normal-problem.js';

/** A long problem, batch 1, and the number of its rows that are judged. */
interface LongSize {
  readonly heads: number;
  readonly seqlen: number;
  readonly dim: number;
  readonly rows: number;
  /** Number of keys and values after which they repeat. */
  readonly period: number;
}

const longSize: LongSize = { heads: 32, seqlen: 2 ** 17, dim: 128, rows: 4096, period: 2 ** 14 };
const quickSize: LongSize = { heads: 2, seqlen: 1024, dim: 16, rows: 8, period: 256 };

const seed = 1;
const { bf16 } = formats;
const bytesPerElement = 2;

/** Normal numbers in bf16; `normalValues` repeats, so each stretch of keys has a seed of its own. */
function normalTensor(heads: number, rows: number, dim: number, firstSeed: number): Tensor {
  const stretch = 2048;
  const values = new Float64Array(heads * rows * dim);
  for (let at = 0, next = firstSeed; at < values.length; at += stretch * dim, next++) {
    const count = Math.min(stretch * dim, values.length - at);
    values.set(normalValues(count, next), at);
  }
  return {
    format: 'bf16',
    shape: [1, heads, rows, dim],
    data: encodeFromFloat64(bf16, values),
  };
}

function bytesOf({ data }: Tensor): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

/** Writes a header of four tensors of one shape; their bytes are holes until they are written. */
async function writeHoles(
  file: FileHandle,
  names: readonly string[],
  { heads, seqlen, dim }: LongSize,
): Promise<(name: string, element: number) => number> {
  const size = heads * seqlen * dim * bytesPerElement;
  const entries = names.map((name, i) => [
    name,
    {
      dtype: 'BF16',
      shape: [1, heads, seqlen, dim],
      data_offsets: [i * size, (i + 1) * size],
    },
  ]);
  const header = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const start = length.length + header.length;
  await file.truncate(start + names.length * size);
  await file.write(length, 0, length.length, 0);
  await file.write(header, 0, header.length, length.length);
  return (name, element) => start + names.indexOf(name) * size + element * bytesPerElement;
}

/**
 * Writes a problem to a file in which only the judged rows have queries and outputs: the rest are holes, where the
 * system has sparse files. Its keys and values are the same for all heads and repeat after `period`, so that its
 * exact output is that of as many keys, which takes a short oracle; nothing that judges it knows that.
 */
async function writeLongProblem(path: string, size: LongSize): Promise<void> {
  const { heads, seqlen, dim, rows, period } = size;
  const [k, v] = [normalTensor(1, period, dim, 1000), normalTensor(1, period, dim, 2000)];
  const ofHead = rows / heads;
  const q = normalTensor(heads, ofHead, dim, 3000);
  const law = { scale: 1 / Math.sqrt(dim), causal: false, window: null, softcap: null };
  const whole: Problem = { ...law, q, k, v };
  const shape = { ...problemShape({ ...whole, k: q, v: q }), queries: seqlen, keys: seqlen };
  const sample = chooseRows(whole, shape, { rows, seed })!;
  const exact = attentionOracle(whole, { accuracy: auditAccuracy('bf16') });
  const out = { ...q, data: encodeFromFloat64(bf16, exact.quantities.out.values) };
  const file = await open(path, 'w');
  try {
    const placeOf = await writeHoles(file, ['q', 'k', 'v', 'out'], size);
    for (const [name, tensor] of Object.entries({ k, v }))
      for (let row = 0; row < heads * seqlen; row += period)
        await file.write(bytesOf(tensor), 0, bytesOf(tensor).length, placeOf(name, row * dim));
    const bytesPerRow = dim * bytesPerElement;
    for (const [name, tensor] of Object.entries({ q, out }))
      for (let at = 0; at < rows; at++) {
        const row = Math.floor(at / ofHead) * seqlen + sample.selection.queries[at];
        const bytes = bytesOf(tensor).subarray(at * bytesPerRow, (at + 1) * bytesPerRow);
        await file.write(bytes, 0, bytesPerRow, placeOf(name, row * dim));
      }
  } finally {
    await file.close();
  }
}

/** An audit of a sample of a problem of 2^17 keys by the command line, with two threads, as a user runs it. */
export function longAuditBenchmark(commandLine: string): Benchmark {
  const name = 'audit of 4096 rows of [1, 32, 131072, 128] bf16, 2 threads';
  return {
    quantities: [
      { name: `${name}: time`, unit: 's', better: 'lower', target: 300 },
      { name: `${name}: peak memory`, unit: 'bytes', better: 'lower', target: 1e9 },
    ],
    runs: 1,
    isWarm: true,
    prepare: async (quick) => {
      const folder = await mkdtemp(join(tmpdir(), 'flashproof-bench-'));
      const dispose = () => rm(folder, { recursive: true, force: true });
      const path = join(folder, 'problem.safetensors');
      const size = quick ? quickSize : longSize;
      try {
        await writeLongProblem(path, size);
      } catch (error) {
        await dispose();
        throw error;
      }
      const audit = ['audit', path, '--rows', `${size.rows}`, '--seed', `${seed}`, '--quiet'];
      return {
        measure: () => measureCommand(commandLine, [...audit, '--threads', '2']),
        dispose,
      };
    },
  };
}
