import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { startLiveKernel } from '../../src/io/live/index.js';
import { storeProblem, type Problem } from '../../src/problem/index.js';
import { packedProblem, patternTensor } from '../problem/packed-problem.js';

const folder = mkdtempSync(join(tmpdir(), 'flashproof-request-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Writes down each request, with the names of the tensors in its file, and declines it. */
const kernel = `
import { appendFileSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
for await (const line of createInterface({ input: process.stdin })) {
  const { id, problem, output, ...request } = JSON.parse(line);
  const file = readFileSync(problem);
  const header = JSON.parse(file.subarray(8, 8 + Number(file.readBigUInt64LE(0))).toString());
  const shapes = Object.fromEntries(
    Object.entries(header).flatMap(([name, { shape }]) => (name === '__metadata__' ? [] : [[name, shape]])),
  );
  appendFileSync(process.argv[2], JSON.stringify({ request, shapes }) + '\\n');
  console.log(JSON.stringify({ id, ok: false, error: 'no', unsupported: true }));
}`;

it('has the features of a problem, its tensors as they are posed, and nothing of what it has not', async () => {
  const script = join(folder, 'kernel.mjs');
  const log = join(folder, 'requests');
  writeFileSync(script, kernel);
  const live = await startLiveKernel(`node ${script} ${log}`, 30, async () => null);
  const packed = packedProblem(
    [
      [2, 3],
      [1, 4],
    ],
    'bf16',
  );
  const { q, k, v, scale, causal, window, softcap } = packed;
  const dense: Problem = { q, k, v, scale, causal, window, softcap };
  const problems: Problem[] = [
    dense,
    packed,
    storeProblem(
      {
        ...packed,
        prefix: 2,
        sink: { logits: patternTensor([2], 'fp32'), inLse: false },
        dropout: { kept: { shape: [1], data: Uint8Array.of(1) }, probability: 0.5 },
      },
      {
        queries: { kind: 'padded', headsFirst: false },
        keys: { kind: 'paged', pageSize: 2, spare: 1 },
      },
      NaN,
    ),
    storeProblem(packed, {
      queries: { kind: 'packed' },
      keys: { kind: 'paged', pageSize: 4, headsFirst: true, joined: true, listed: true },
    }),
  ];
  try {
    for (const problem of problems)
      expect(await live.run(problem)).toMatchObject({ ok: false, cause: 'unsupported' });
  } finally {
    await live.close();
  }
  const asked = readFileSync(log, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
  const plain = { scale: 1, causal: false, window: null, softcap: null };
  expect(asked).toEqual([
    { request: plain, shapes: { q: [1, 2, 3, 2], k: [1, 1, 7, 2], v: [1, 1, 7, 2] } },
    {
      request: plain,
      shapes: {
        q: [3, 2, 2],
        k: [7, 1, 2],
        v: [7, 1, 2],
        cu_seqlens_q: [3],
        cu_seqlens_k: [3],
      },
    },
    {
      request: {
        ...plain,
        prefix: 2,
        lse_sink: false,
        dropout_p: 0.5,
        page_size: 2,
        layout: 'bshd',
      },
      shapes: {
        q: [2, 2, 2, 2],
        k: [5, 2, 1, 2],
        v: [5, 2, 1, 2],
        seqused_q: [2],
        seqused_k: [2],
        block_table: [2, 2],
        sink: [2],
        dropout_mask: [1, 1, 1, 1],
      },
    },
    {
      request: { ...plain, page_size: 4, kv_layout: 'HND' },
      shapes: {
        q: [3, 2, 2],
        kv_cache: [2, 2, 1, 4, 2],
        cu_seqlens_q: [3],
        paged_kv_indptr: [3],
        // One behind the lists, which nobody reads.
        paged_kv_indices: [3],
        paged_kv_last_page_len: [2],
      },
    },
  ]);
});
