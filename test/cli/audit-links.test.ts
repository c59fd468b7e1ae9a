import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { validateFileReport } from '../../src/report/validation/index.js';
import { drawInputs, select } from '../audit/links/selection-kernel.js';
import { testSeed } from '../setup/effort.js';
import { numbers, whole, writeRaw } from './cache-file.js';
import { refusal, runInProcess } from './run-in-process.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-links-'));
afterAll(() => rmSync(scratch, { recursive: true }));

const sizes = {
  batch: 1,
  queries: 4,
  queryHeads: 4,
  keyHeads: 1,
  lists: 1,
  keys: 40,
  dim: 8,
  listed: 6,
  blockSize: 1,
};
const inputs = drawInputs(testSeed, sizes, 'indexer', true);

/** A file of a selection, in which what `change` says is otherwise. */
async function selection(
  change: (indices: Int32Array) => Int32Array = (indices) => indices,
  notes: Readonly<Record<string, string>> = {},
  left: readonly string[] = [],
): Promise<string> {
  const path = join(scratch, `${randomUUID()}.safetensors`);
  const indices = change(select(inputs));
  const tensors = {
    q: numbers('fp32', inputs.q, [4, 4, 8]),
    k: numbers('fp32', inputs.k, [40, 8]),
    weights: numbers('fp32', inputs.weights, [4, 4]),
    k_scale: numbers('fp32', inputs.keyScale, [40]),
    indices: { ...whole([...indices]), shape: [4, 6] },
  };
  const kept = Object.fromEntries(Object.entries(tensors).filter(([name]) => !left.includes(name)));
  await writeRaw(path, kept, { contract: 'selection', causal: 'true', ...notes });
  return path;
}

/** The first listed index of the second row is the key that no row should list: the one of the smallest score. */
const exchanged = (indices: Int32Array) =>
  indices.map((index, i) => (i === 6 ? (indices.subarray(6, 12).includes(0) ? 1 : 0) : index));

describe('flashproof audit of a link', () => {
  it('passes a right one, and writes all reports', async () => {
    const path = await selection();
    const [json, html, junit] = ['json', 'html', 'xml'].map((end) => join(scratch, `pass.${end}`));
    const run = await runInProcess(
      'audit',
      path,
      ...['--json', json, '--html', html, '--junit', junit],
    );
    expect(run.stdout).toMatch(/^PASS: every index is of keys that its row sees/);
    expect(run.stdout.replaceAll(/\s+/g, ' ')).toContain('rows see 37 to 40');
    expect(run.status).toBe(0);
    const report = JSON.parse(readFileSync(json, 'utf8')) as { readonly kind: string };
    expect(report).toMatchObject({ kind: 'link-audit', contract: 'selection', warnings: [] });
    await validateFileReport(report);
    expect(readFileSync(html, 'utf8')).toContain('What was judged');
    expect(readFileSync(junit, 'utf8')).toMatch(/tests="5" failures="0"/);
  });

  it('fails a wrong one with its row, and is a row of a table of files', async () => {
    const [right, wrong] = [await selection(), await selection(exchanged)];
    const failed = await runInProcess('audit', wrong);
    expect(failed.status).toBe(1);
    expect(failed.stdout).toMatch(/^FAIL: query 1 lists [01] with the score/);
    const both = await runInProcess('audit', right, wrong);
    expect(both.status).toBe(1);
    expect(both.stdout).toMatch(/^FAIL: 1 file fails, 1 file passes/);
  });

  it('takes tensors and settings from elsewhere, and says what it did not use', async () => {
    const [whole, bare] = [
      await selection(),
      await selection((x) => x, { seed: '7' }, ['weights']),
    ];
    const run = await runInProcess(
      'audit',
      bare,
      ...['--tensor', `weights=${whole}:weights`, '--note', 'law=indexer'],
    );
    expect(run.status).toBe(0);
    expect(run.stdout).toMatch(/Not used +metadata seed/);
  });

  it.each([
    [
      ['--lse', ':lse'],
      /--lse is of attention, and this is a selection; give its tensors as --tensor/,
    ],
    [['--note', 'caus=true'], /--note "caus" is not of this contract; did you mean causal/],
    [['--note', 'law=softmax'], /--note law is "softmax"; give one of given, dot, indexer/],
    [['--tensor', 'scores'], /--tensor is "scores"; give <key>=<value>/],
    [
      ['--tensor', 'weight=:weights'],
      /--tensor "weight" is not of this contract; did you mean weights/,
    ],
    [['--contract', 'selektion'], /--contract is "selektion"; did you mean selection; give one of/],
    [
      ['--ignore', 'indices'],
      /has no tensor "indices"; give it as --tensor indices=<file>\[:tensor\]/,
    ],
  ] as const)('refuses %s in one line', async (options, line) => {
    expect(await refusal('audit', await selection(), ...options)).toMatch(line);
  });

  it.each([
    ['5', /^FAIL: more candidates are selected than were asked for/],
    ['7', /^FAIL: fewer candidates are selected than were asked for/],
  ] as const)('names lists of another length than %s', async (count, said) => {
    const run = await runInProcess('audit', await selection((x) => x, { count }));
    expect(run.stdout.replaceAll(/\s+/g, ' ')).toMatch(said);
  });

  it('refuses its options beside attention', async () => {
    const path = await selection((x) => x, { contract: 'attention' });
    expect(await refusal('audit', path, '--note', 'count=3')).toMatch(
      /--note is of links of the decode chain, and this is attention; give --contract/,
    );
  });
});
