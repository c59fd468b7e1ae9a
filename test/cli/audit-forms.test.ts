import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import { writeProblem } from '../../src/io/index.js';
import { writeNpy } from '../io/write-npy.js';
import {
  poseOutput,
  problemShape,
  quantities,
  storeProblem,
  type Problem,
  type StoredForm,
  type StoredTensors,
} from '../../src/problem/index.js';
import type { JudgedReport } from '../../src/report/json/index.js';
import { pseudorandom, tensor } from '../setup/problems.js';
import { turns } from '../setup/turns.js';
import { refusal, runInProcess } from './run-in-process.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-forms-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const random = pseudorandom(7);
const bf16 = (...shape: number[]) => tensor('bf16', shape, () => random() * 4 - 2);

/** Three sequences, the second without queries: causal and with a sink, and a bias of each head's keys. */
const problem: Problem = {
  q: bf16(1, 4, 9, 16),
  k: bf16(1, 2, 40, 16),
  v: bf16(1, 2, 40, 8),
  scale: 0.3,
  causal: true,
  window: null,
  softcap: null,
  bias: tensor('fp32', [3, 4, 1, 22], () => random()),
  sink: { logits: tensor('fp32', [4], (i) => 14 + i), inLse: true },
  sequences: [
    { firstQuery: 0, queries: 6, firstKey: 0, keys: 15 },
    { firstQuery: 6, queries: 0, firstKey: 15, keys: 3 },
    { firstQuery: 6, queries: 3, firstKey: 18, keys: 22 },
  ],
};

/** What a perfect kernel gives of a problem, rounded, as it lies beside the problem as posed. */
function perfectOutputs(of: Problem, posed: Problem): StoredTensors {
  const { quantities: exact } = attentionOracle(of);
  const { heads, queries, vDim } = problemShape(of);
  const out = tensor('bf16', [1, heads, queries, vDim], (i) => exact.out.values[i]!);
  const lse = tensor('fp32', [1, heads, queries], (i) => exact.lse.values[i]!);
  const [ofOut, ofLse] = quantities;
  return { out: poseOutput(posed, ofOut, out), lse: poseOutput(posed, ofLse, lse) };
}

const backwards = (pages: number) => Array.from({ length: pages }, (_, page) => pages - 1 - page);

const forms: Readonly<Record<string, StoredForm>> = {
  'packed, with a tail': {
    queries: { kind: 'packed', spare: 3 },
    keys: { kind: 'packed', gap: 2, spare: 5 },
  },
  'padded, heads first': { queries: { kind: 'padded', spare: 2 }, keys: { kind: 'padded' } },
  'padded on the left, heads last': {
    queries: { kind: 'padded', headsFirst: false },
    keys: { kind: 'padded', left: [3, 0, 1], headsFirst: false },
  },
  'in pages, backwards': {
    queries: { kind: 'packed' },
    keys: { kind: 'paged', pageSize: 4, spare: 2, arrange: backwards },
  },
  "in FlashInfer's pages, heads first": {
    queries: { kind: 'packed' },
    keys: {
      kind: 'paged',
      pageSize: 4,
      spare: 2,
      arrange: backwards,
      headsFirst: true,
      listed: true,
    },
  },
};

/** Writes a problem and a perfect kernel's outputs of another. */
async function write(name: string, posed: Problem, of: Problem): Promise<string> {
  const path = join(scratch, `${name}.safetensors`);
  await writeProblem(path, posed, { tensors: perfectOutputs(of, posed) });
  return path;
}

describe('flashproof audit', () => {
  for (const [name, form] of Object.entries(forms))
    inTurn(`passes a perfect kernel on sequences ${name}, whatever is unused`, async () => {
      const posed = storeProblem(problem, form, NaN);
      const path = await write('problem', posed, problem);
      const { stdout, status } = await runInProcess('audit', path, '--json', '-');
      const report = JSON.parse(stdout) as JudgedReport;
      expect(status, report.verdict.sentence).toBe(0);
      expect(report.verdict.findings).toEqual([]);
      expect(report.warnings).toEqual([]);
      expect(report.problem.features).toMatchObject({
        sink: { inLse: true },
        sequences: { count: 3, queries: { least: 0, most: 6 }, keys: { least: 3, most: 22 } },
        stored: { queries: form.queries.kind, keys: form.keys.kind },
      });
      expect(report.sequences?.map(({ keys }) => keys)).toEqual([15, 3, 22]);
    });

  inTurn(
    'fails a kernel that reads another page, and one whose sequences are shifted by one',
    async () => {
      const posed = storeProblem(problem, forms['in pages, backwards']!);
      const swapped = storeProblem(problem, {
        queries: { kind: 'packed' },
        keys: {
          kind: 'paged',
          pageSize: 4,
          spare: 2,
          // The first two pages of the first sequence, each in the other's place.
          arrange: (pages) => [pages - 2, pages - 1, ...backwards(pages).slice(2)],
        },
      });
      const wrong = {
        ...posed.stored.tensors,
        block_table: swapped.stored.tensors['block_table']!,
      };
      const misread = { ...posed, stored: { ...posed.stored, tensors: wrong } };
      const path = join(scratch, 'page.safetensors');
      await writeProblem(path, misread, { tensors: perfectOutputs(problem, posed) });
      expect((await runInProcess('audit', path, '--quiet')).status).toBe(1);

      const [first, , last] = problem.sequences!;
      const plain: Problem = { ...problem, bias: tensor('fp32', [1], () => 0) };
      const moved: Problem = {
        ...plain,
        sequences: [
          { ...first!, keys: 16 },
          { firstQuery: 6, queries: 0, firstKey: 16, keys: 2 },
          last!,
        ],
      };
      const other = await write(
        'shifted',
        storeProblem(plain, forms['packed, with a tail']!),
        moved,
      );
      const { status, stdout } = await runInProcess('audit', other);
      expect(status).toBe(1);
      expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(/at sequence 0, head \d, query \d/);
    },
  );

  inTurn('takes inputs from other files, and refuses what does not fit in one line', async () => {
    const { bias, ...plain } = problem;
    const posed = storeProblem(plain, forms['packed, with a tail']!);
    const path = await write('without', posed, problem);
    expect((await runInProcess('audit', path, '--quiet')).status).toBe(1);
    const other = join(scratch, 'bias.npy');
    await writeNpy(other, bias!);
    expect((await runInProcess('audit', path, '--bias', other, '--quiet')).status).toBe(0);
    const judged = await runInProcess('audit', path, '--bias', other, '--no-lse-sink', '--quiet');
    expect(judged.stdout).toMatch(/^FAIL: .*LSE/);
    expect(await refusal('audit', path, '--bias', ':absent')).toMatch(/has no tensor "absent"/);
    expect(await refusal('audit', path, '--seqused-k', ':cu_seqlens_k')).toMatch(
      /seqused_k is for 4 sequences, cu_seqlens_k for 3/,
    );
    expect(await refusal('audit', path, '--dropout-p', '1.5')).toMatch(/--dropout-p is "1\.5"/);
  });
});
