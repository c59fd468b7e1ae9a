import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import { writeSafetensors } from '../../src/io/index.js';
import { writeNpy } from '../io/write-npy.js';
import { writeNpz } from '../io/write-npz.js';
import { problemShape, type Problem, type Tensor } from '../../src/problem/index.js';
import { type AuditReport, type AuditsReport } from '../../src/report/json/index.js';
import { validateAuditsReport, validateReport } from '../../src/report/validation/index.js';
import { encode } from '../audit/damage.js';
import { filledProblem, pseudorandom } from '../setup/problems.js';
import { turns } from '../setup/turns.js';
import { refusal, runInProcess } from './run-in-process.js';

const inTurn = turns(import.meta.url);

const sizes = {
  format: 'bf16',
  batch: 1,
  heads: 1,
  kvHeads: 1,
  queries: 16,
  keys: 24,
  dim: 8,
} as const;

/** A small problem with its exact output, rounded, times a factor. */
function dump(seed: number, factor = 1): Record<'q' | 'k' | 'v' | 'out' | 'lse', Tensor> {
  const problem: Problem = filledProblem(sizes, pseudorandom(seed));
  const { batch, heads, queries, vDim } = problemShape(problem);
  const { out, lse } = attentionOracle(problem).quantities;
  return {
    q: problem.q,
    k: problem.k,
    v: problem.v,
    out: encode(
      out.values.map((x) => x * factor),
      'bf16',
      [batch, heads, queries, vDim],
    ),
    lse: encode(lse.values, 'fp32', [batch, heads, queries]),
  };
}

const audit = (...args: string[]) => runInProcess('audit', ...args);

describe('an audit of several files', () => {
  let folder = '';
  const at = (name: string) => join(folder, name);
  const read = async (name: string) => JSON.parse(await readFile(at(name), 'utf8')) as AuditsReport;
  /** What a report says of each file, without times. */
  const plain = ({ files, verdict }: AuditsReport) => ({
    verdict,
    files: files.map(({ path, error, report }) => ({
      path,
      error,
      report: report === null ? null : { ...report, created: '', seconds: 0 },
    })),
  });
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'flashproof-many-'));
    await writeSafetensors(at('b.safetensors'), dump(1));
    await writeNpz(at('a.npz'), dump(2));
    await writeSafetensors(at('wrong.safetensors'), dump(3, 1.5));
    await writeFile(at('broken.safetensors'), 'no tensors');
    await mkdir(at('folder'));
    for (const [name, tensor] of Object.entries(dump(4)))
      await writeNpy(at(`folder/${name}.npy`), tensor);
  });
  afterAll(() => rm(folder, { recursive: true }));

  it('has a row for each file in the order given, and one of each document', async () => {
    const files = [at('b.safetensors'), at('a.npz'), at('folder')];
    const json = at('pass.json');
    const { status, stdout } = await audit(...files, '--json', json, '--junit', at('pass.xml'));
    expect(status).toBe(0);
    expect(stdout).toMatch(/^PASS: 3 files pass\.\n/);
    const report = await read('pass.json');
    await validateAuditsReport(report);
    expect(report.files.map(({ path }) => path)).toEqual(files);
    expect(report.verdict).toMatchObject({ files: 3, passed: 3, failed: 0, wrong: 0, pass: true });
    const rows = stdout.split('\n').filter((line) => line.startsWith('PASS '));
    expect(rows).toHaveLength(3);
    const xml = await readFile(at('pass.xml'), 'utf8');
    for (const file of files)
      for (const quantity of ['output', 'LSE'])
        expect(xml).toContain(`<testcase name="${quantity}" classname="${file}"/>`);
    expect(xml).toContain('tests="6" failures="0" errors="0" skipped="0"');
  });

  inTurn('judges each file as it is judged alone', async () => {
    await audit(at('wrong.safetensors'), '--json', at('alone.json'));
    const alone = JSON.parse(await readFile(at('alone.json'), 'utf8')) as AuditReport;
    await validateReport(alone);
    expect(alone.kind).toBe('audit');
    const { status } = await audit(
      ...[at('b.safetensors'), at('wrong.safetensors'), '--json', at('both.json')],
    );
    expect(status).toBe(1);
    const [, second] = (await read('both.json')).files;
    const times = { created: '', seconds: 0 };
    expect({ ...second!.report, ...times }).toEqual({ ...alone, ...times });
  });

  inTurn('goes on behind a file that cannot be judged, and says why in its row', async () => {
    const files = ['missing.npz', 'broken.safetensors', 'wrong.safetensors', 'a.npz'].map(at);
    const names = ['--json', at('some.json'), '--junit', at('some.xml'), '--html', at('some.html')];
    const { status, stdout } = await audit(...files, ...names);
    expect(status).toBe(2);
    expect(stdout).toMatch(/^FAIL: 1 file fails, 2 files cannot be judged, 1 file passes\.\n/);
    expect(stdout.match(/^(PASS|FAIL|ERROR) /gm)).toEqual(['ERROR ', 'ERROR ', 'FAIL ', 'PASS ']);
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
    const report = await read('some.json');
    await validateAuditsReport(report);
    expect(report.files.map(({ error }) => error)).toEqual([
      expect.stringContaining('no such file'),
      expect.stringContaining('is damaged or no safetensors file'),
      null,
      null,
    ]);
    const xml = await readFile(at('some.xml'), 'utf8');
    expect(xml).toContain('tests="10" failures="1" errors="2" skipped="4"');
    const html = await readFile(at('some.html'), 'utf8');
    const pages = await readdir(at('some-files'));
    expect(pages).toEqual(['003-wrong.safetensors.html', '004-a.npz.html']);
    for (const page of pages) {
      expect(html).toContain(`href="some-files/${page}"`);
      expect(await readFile(at(`some-files/${page}`), 'utf8')).toContain('id="report"');
    }
    expect(html.match(/<tr>/g)).toHaveLength(5);
  });

  it('expands a pattern that the shell left, by name, each file once', async () => {
    const pattern = at('[a-b].*');
    const { stdout } = await audit(at('b.safetensors'), pattern, '--json', '-');
    const { files } = JSON.parse(stdout) as AuditsReport;
    expect(files.map(({ path }) => path)).toEqual(['b.safetensors', 'a.npz'].map(at));
    const refused = `${at('*.pt')}: no file matches this pattern; check the folder and the name`;
    expect(await refusal('audit', at('*.pt'))).toBe(refused);
    expect(await refusal('audit', at('a.npz'), at('*.pt'), '--json', at('none.json'))).toBe(
      refused,
    );
    expect(existsSync(at('none.json'))).toBe(false);
    const deep = await audit(at('**/q.npy'), '--quiet');
    expect(deep.stdout).toContain('NOT JUDGED: 1 file cannot be judged.');
    expect(deep.stderr).toContain(at('folder/q.npy'));
  });

  it('takes each output from its own file, and refuses one for all', async () => {
    const { status } = await audit(at('b.safetensors'), at('a.npz'), '--output', ':out', '--quiet');
    expect(status).toBe(0);
    expect(
      await refusal('audit', at('b.safetensors'), at('a.npz'), '--output', at('a.npz')),
    ).toMatch(/^--output is .*, one file for several problems; give --output :<tensor>/);
  });

  inTurn('is the same in shards that are merged, from parts or journals', async () => {
    const files = ['b.safetensors', 'missing.npz', 'wrong.safetensors', 'a.npz'].map(at);
    await audit(...files, '--json', at('whole.json'), '--junit', at('whole.xml'));
    const first = await audit(...files, '--shard', '1/2', '--json', at('part1.json'));
    expect(first.stdout).toMatch(/^FAIL: 1 file fails, 1 file passes \(shard 1 of 2 only\)\./);
    expect(first.status).toBe(1);
    const second = await audit(
      ...files,
      '--shard',
      '2/2',
      '--journal',
      at('part2.jsonl'),
      '--quiet',
    );
    expect(second.status).toBe(2);
    const merged = await runInProcess(
      ...['merge', at('part2.jsonl'), at('part1.json'), '--json', at('merged.json')],
      ...['--junit', at('merged.xml'), '--html', at('merged.html')],
    );
    expect(merged.status).toBe(2);
    expect(plain(await read('merged.json'))).toEqual(plain(await read('whole.json')));
    expect(await readFile(at('merged.html'), 'utf8')).toContain('2 files pass');
    expect(await refusal('merge', at('part1.json'))).toMatch(/shard 2 is missing of 2/);
    const idle = await audit(at('a.npz'), '--shard', '2/2', '--quiet');
    expect(idle).toMatchObject({
      status: 0,
      stdout: 'NOT JUDGED: no file falls to shard 2 of 2.\n',
    });
  });

  inTurn(
    'goes on from a journal: only what is open, failed to be read, or has changed',
    async () => {
      const names = ['one', 'two', 'late'].map((name) => at(`${name}.safetensors`));
      await writeSafetensors(names[0], dump(5));
      await writeSafetensors(names[1], dump(6));
      const args = [...names, '--journal', at('audit.jsonl'), '--json', at('journal.json')];
      expect((await audit(...args)).status).toBe(2);
      await writeSafetensors(names[1], dump(6, 1.5));
      await writeSafetensors(names[2], dump(7));
      const before = await read('journal.json');
      expect((await audit(...args)).status).toBe(1);
      const after = await read('journal.json');
      expect(after.files[0]).toEqual(before.files[0]);
      expect(after.files.map(({ report }) => report?.verdict.pass)).toEqual([true, false, true]);
      const records = (await readFile(at('audit.jsonl'), 'utf8')).trim().split('\n').slice(1);
      expect(records.map((line) => (JSON.parse(line) as { unit: string }).unit)).toEqual([
        ...names.map((name, i) => `${i + 1} ${name}`),
        `2 ${names[1]}, attempt 2`,
        `3 ${names[2]}, attempt 2`,
      ]);
      expect(await refusal('audit', ...args, '--causal')).toMatch(
        /is the journal of another request/,
      );
    },
  );

  it('tells of all files as one piece of work', async () => {
    const written: string[] = [];
    let now = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += 4000));
    const spies = (['stdout', 'stderr'] as const).map((name) =>
      vi.spyOn(process[name], 'write').mockImplementation((text) => {
        if (name === 'stderr') written.push(String(text));
        return true;
      }),
    );
    const { runAudit } = await import('../../src/cli/audit/run.js');
    const options = { techniques: false, timeout: '60', falseAlarmRate: '1e-9' };
    await runAudit([at('b.safetensors'), at('b.safetensors').replace(/\/b/, '/./b')], options);
    for (const spy of [clock, ...spies]) spy.mockRestore();
    const shares = written.map((text) => Number(/^audit: (\d+) %, .* left\n$/.exec(text)![1]));
    expect(shares.length).toBeGreaterThan(3);
    expect(shares).toEqual([...shares].sort((a, b) => a - b));
    // The first file ends at a half.
    expect(shares.some((share) => share > 0 && share < 50)).toBe(true);
    expect(shares.some((share) => share > 50)).toBe(true);
  });
});
