import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { ChainReport } from '../../src/report/json/index.js';
import { validateFileReport } from '../../src/report/validation/index.js';
import { testSeed } from '../setup/effort.js';
import { writeRaw } from './cache-file.js';
import { chainDump, type Dump } from './chain-dump.js';
import { refusal, runInProcess } from './run-in-process.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-chain-'));
afterAll(() => rmSync(scratch, { recursive: true }));
const right = chainDump(testSeed);

async function file(tensors: Dump, notes: Readonly<Record<string, string>> = {}): Promise<string> {
  const path = join(scratch, `${randomUUID()}.safetensors`);
  await writeRaw(path, tensors, notes);
  return path;
}

/** The report of a chain, and how the command ended. */
async function judged(tensors: Dump, notes: Readonly<Record<string, string>> = {}) {
  const json = join(scratch, `${randomUUID()}.json`);
  const { status, stdout } = await runInProcess(
    ...['audit', await file(tensors, notes), '--json', json],
  );
  const report = JSON.parse(readFileSync(json, 'utf8')) as ChainReport;
  await validateFileReport(report);
  const links = Object.fromEntries(report.links.map((link) => [link.name, link.status]));
  return { status, report, links, said: stdout.replaceAll(/\s+/g, ' ') };
}

/** A tensor with bytes of one slot of 512 bytes changed. */
function changedSlot(name: string, slot: number): Dump {
  const tensor = right[name];
  const bytes = tensor.bytes.map((x, i) => (Math.floor(i / 512) === slot ? x ^ 1 : x));
  return { ...right, [name]: { ...tensor, bytes } };
}

/** Names of a dump that are its owner's, and the list that says what they are. */
function named(links: readonly object[]) {
  return { links: JSON.stringify(links) };
}

describe('flashproof audit of a chain', () => {
  it('passes right links, says what was handed on, and writes all reports', async () => {
    const [html, junit] = ['html', 'xml'].map((end) => join(scratch, `pass.${end}`));
    const path = await file(right);
    const run = await runInProcess('audit', path, '--html', html, '--junit', junit);
    expect(run.stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /^PASS: cache-write, selection and attention are right given what was read; 3 tensors are what links before left\./,
    );
    expect(run.stdout).toMatch(/not in the dump, so that nobody judged it: .*merge/);
    expect(run.status).toBe(0);
    expect(readFileSync(html, 'utf8')).toContain('What one link handed to another');
    expect(readFileSync(junit, 'utf8')).toMatch(/tests="7" failures="0"/);
  });

  it('says the cost of what was left out and rounded, beside what attention answers for', async () => {
    const { report } = await judged(right);
    const figures = report.cost?.figures.map(({ relative }) => Number(relative)) ?? [];
    expect(figures).toHaveLength(3);
    // bf16 rounds by 2^-9 at most.
    expect(figures[0]).toBeLessThan(2 ** -9);
    expect(figures[1]).toBeGreaterThan(figures[0]);
    expect(report.cost?.figures[2].what).toContain('3 of 3 as before the cache');
  });

  it('takes tensors by the names that a list gives them', async () => {
    const own = Object.fromEntries(
      Object.entries(right).map(([name, tensor]) => [name.replace('selection.', 'topk/'), tensor]),
    );
    const { links, status } = await judged(
      own,
      named([
        { name: 'cache_write', contract: 'cache-write' },
        {
          name: 'choice',
          contract: 'selection',
          tensors: { scores: 'topk/scores', indices: 'topk/indices' },
        },
        { contract: 'attention' },
      ]),
    );
    expect(links).toEqual({ cache_write: 'PASS', choice: 'PASS', attention: 'PASS' });
    expect(status).toBe(0);
  });

  it('fails the link that is wrong, and passes those behind it by what they read', async () => {
    const indices = right['selection.indices'];
    const [first] = new Int32Array(indices.bytes.slice().buffer);
    const other = [0, 1, 2].find(
      (key) => !new Int32Array(indices.bytes.slice().buffer).includes(key),
    );
    const wrong = new Uint8Array(Int32Array.from([first, other ?? 0]).buffer);
    const handed = { ...indices, bytes: wrong };
    const { links, status, report } = await judged({ ...right, 'selection.indices': handed });
    expect(links).toMatchObject({ selection: 'FAIL', attention: 'PASS' });
    expect(report.verdict.findings.map(({ quantity }) => quantity)).toEqual([
      'selection',
      'selection.indices=attention.kv_index',
    ]);
    expect(status).toBe(1);
  });

  it('names the slot in which attention reads another cache than the write left', async () => {
    // Slot 17 is of a page that no query sees.
    const { said, status, links } = await judged(changedSlot('attention.k', 17));
    expect(said).toMatch(
      /^FAIL: attention has a cache of keys other than what cache-write left: slot 17; cache-write, selection and attention are right/,
    );
    expect(links['attention']).toBe('PASS');
    expect(status).toBe(1);
  });

  it('names a cache that is read before it is written', async () => {
    const { said, report } = await judged({
      ...right,
      'attention.k': right['cache_write.key_cache_before'],
    });
    expect(said).toMatch(
      /attention reads a cache of keys as before the write of cache-write: slot 2; slot 8/,
    );
    expect(report.verdict.diagnosis?.id).toBe('link-input-differs');
  });

  it('says of a link without tensors that it is not judged, and passes the others', async () => {
    const list = named([
      { name: 'cache_write', contract: 'cache-write' },
      ...[{ contract: 'selection' }, { contract: 'attention' }, { contract: 'merge' }],
    ]);
    const { said, status } = await judged(right, list);
    expect(said).toMatch(/^PASS: .*; merge not judged: nothing of it is in the dump\./);
    expect(status).toBe(0);
  });

  it('does not pass a chain with a link that cannot be judged', async () => {
    const rest = Object.fromEntries(
      Object.entries(right).filter(([name]) => name !== 'selection.indices'),
    );
    const { said, status, links } = await judged(rest);
    expect(said).toMatch(/^NOT JUDGED: .*selection not judged: has no tensor "indices"/);
    expect(links['selection']).toBe('ERROR');
    expect(status).toBe(2);
  });

  it('says what no link has', async () => {
    const list = named([{ contract: 'selection' }]);
    const { report } = await judged({ ...right, extra: right['attention.q'] }, list);
    expect(report.warnings[0].names).toContain('extra');
  });

  it.each([
    [[], { links: '{' }, /metadata links is not JSON; give a list of links/],
    [[], named([]), /metadata links is no list of links/],
    [[], named([{ contract: 'atention' }]), /did you mean attention; give one of/],
    [
      [],
      named([{ contract: 'selection', tensors: { scores: 'sores' } }]),
      /scores is the tensor "sores", which the file lacks; there are "cache_write/,
    ],
    [[], named([{ contract: 'merge' }, { contract: 'merge' }]), /has two links "merge"/],
    [[], named([{ contract: 'merge', notes: [] }]), /notes is no object of names/],
    [
      ['--note', 'law=dot'],
      {},
      /--note "law" is of no link of this chain; name one before a point/,
    ],
    [['--causal'], {}, /--causal is of one link, and this is a chain/],
  ] as const)('refuses %s %s in one line', async (options, notes, line) => {
    expect(await refusal('audit', await file(right, notes), ...options)).toMatch(line);
  });

  it('takes notes of links from the command line', async () => {
    const run = await runInProcess('audit', await file(right), '--note', 'selection.count=2');
    expect(run.status).toBe(0);
  });
});
