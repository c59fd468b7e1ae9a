import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseHTML } from 'linkedom';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeFromFloat64, formats } from '../../src/formats/index.js';
import { writeSafetensors } from '../../src/io/index.js';
import type { Tensor } from '../../src/problem/index.js';
import type { JudgedReport } from '../../src/report/json/audit-report.js';
import { refusal, runInProcess } from './run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const shape = [1, 2, 40, 16];

/** Pseudorandom bf16 numbers; equal seeds give equal tensors. */
function noise(seed: number, factor = 1): Tensor {
  let state = seed;
  const next = () => {
    state = (state * 48271) % 2147483647;
    return factor * ((2 * state) / 2147483647 - 1);
  };
  const values = Float64Array.from({ length: shape.reduce((a, b) => a * b, 1) }, next);
  return { format: 'bf16', shape, data: encodeFromFloat64(formats.bf16, values) };
}

describe('flashproof audit --html', () => {
  let folder = '';
  let path = '';
  const page = () => join(folder, 'report.html');
  const read = async () => parseHTML(await readFile(page(), 'utf8')).document;
  const reportOf = (document: Awaited<ReturnType<typeof read>>) =>
    JSON.parse(document.querySelector('#report')!.textContent!) as JudgedReport;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'flashproof-test-'));
    path = join(folder, 'a & <b>.safetensors');
    await writeSafetensors(path, {
      q: noise(1, 4),
      k: noise(2, 4),
      v: noise(3),
      wrong: noise(4),
      'still<wrong>': noise(5),
    });
    const made = join(folder, 'made.safetensors');
    await runInProcess('emulate', 'fa4', path, '--threads', '1', '--save', made);
  });
  afterAll(() => rm(folder, { recursive: true }));

  inTurn('writes the page beside the other reports, which say the same', async () => {
    const json = join(folder, 'report.json');
    const { status, stdout } = await runInProcess(
      'audit',
      path,
      '--kernel',
      'fa4',
      '--threads',
      '1',
      '--html',
      page(),
      '--json',
      json,
    );
    expect(status).toBe(0);
    expect(stdout).toMatch(/^PASS: /);
    const document = await read();
    expect(reportOf(document)).toEqual(JSON.parse(await readFile(json, 'utf8')));
    expect(document.querySelector('.verdict')!.textContent!.replace(/\s+/g, ' ')).toBe(
      reportOf(document).verdict.sentence,
    );
    // A kernel that is emulated has its techniques measured and its exponential drawn.
    expect(document.querySelectorAll('#techniques .found').length).toBeGreaterThan(0);
    expect(document.querySelectorAll('#exp2 figure').length).toBeGreaterThan(0);
    expect(document.querySelector('#comparison')).toBeNull();
  });

  inTurn('compares outputs by the bounds of any correct kernel, whatever is declared', async () => {
    const { status } = await runInProcess(
      'audit',
      path,
      '--output',
      `${join(folder, 'made.safetensors')}:out`,
      '--as',
      'fa4',
      '--compare',
      ':wrong',
      '--compare',
      'other=:still<wrong>',
      '--html',
      page(),
      '--quiet',
    );
    // The verdict is that of the judged output alone.
    expect(status).toBe(0);
    const document = await read();
    const rows = [...document.querySelectorAll('#comparison .table')[0].querySelectorAll('tr')];
    const cells = rows.map((row) => [...row.children].map((cell) => cell.textContent));
    const verdict = cells[0].indexOf('verdict');
    expect(cells.slice(1).map((row) => [row[0], row[verdict]])).toEqual([
      ['out', 'PASS'],
      ['wrong', 'FAIL'],
      ['other', 'FAIL'],
    ]);
    expect(document.querySelector('#comparison caption')!.textContent).toContain(
      'any correct kernel',
    );
    // Declared is measured.
    expect(reportOf(document).techniques!.kernel).toBe('fa4');
    const hashes = document.querySelector('#provenance')!.textContent!.match(/[0-9a-f]{64}/g);
    expect(new Set(hashes).size).toBe(4);
  });

  inTurn('gives the command that writes the same page again', async () => {
    const args = [
      ...['audit', path, '--output', ':wrong', '--set', 'rescale.threshold=4', '--as', 'fa4'],
      ...['--false-alarm-rate', '1e-6', '--scale', '0.5', '--window', '-1,7', '--no-techniques'],
      ...['--compare', 'x=:still<wrong>', '--html', page()],
    ];
    await runInProcess(...args.map((word) => (word === '-1,7' ? '-1,7' : word)), '--quiet');
    const first = await read();
    const command = first
      .querySelector('#reproduce code')!
      .textContent!.replaceAll(/ \\\n {2}/g, ' ');
    const words = [...command.matchAll(/'([^']*)'|(\S+)/g)].map(
      ([, quoted, plain]) => quoted ?? plain!,
    );
    expect(words.slice(0, 4)).toEqual(['npx', 'flashproof', 'audit', path]);
    await rm(page());
    await runInProcess(...words.slice(2), '--quiet');
    const second = await read();
    const timeless = ({ verdict, outputs, techniques, problem }: JudgedReport) => ({
      verdict,
      outputs,
      techniques,
      problem,
    });
    expect(timeless(reportOf(second))).toEqual(timeless(reportOf(first)));
    for (const part of ['elements', 'rows', 'ulps', 'comparison', 'reproduce'])
      expect(second.querySelector(`#${part}`)!.innerHTML, part).toBe(
        first.querySelector(`#${part}`)!.innerHTML,
      );
  });

  inTurn('writes a page of a live kernel that gives nothing', async () => {
    const { status } = await runInProcess(
      'audit',
      path,
      '--exec',
      'read request; exit 3',
      '--html',
      page(),
      '--quiet',
    );
    expect(status).toBe(1);
    const document = await read();
    expect(document.querySelector('.fail')!.textContent).toContain('the kernel');
    expect(document.querySelector('figure')).toBeNull();
  });

  it('prints the page where that is asked for', async () => {
    const { stdout } = await runInProcess(
      'audit',
      path,
      '--output',
      ':wrong',
      '--html',
      '-',
      '--no-techniques',
    );
    expect(stdout).toMatch(/^<!doctype html>\n.*<\/html>\n$/s);
  });

  inTurn('refuses requests that cannot be carried out, and writes nothing', async () => {
    await rm(page(), { force: true });
    const html = ['--html', page()];
    const judged = ['audit', path, '--output', ':wrong'];
    const cases: readonly (readonly [readonly string[], RegExp])[] = [
      [[...html, '--compare', 'a='], /^--compare is "a="; give /],
      [[...html, '--compare', '=:wrong'], /^--compare is "=:wrong"; give /],
      [[...html, '--compare', ':wrong'], /two outputs are called "wrong".*--compare <name>=:wrong/],
      [[...html, '--compare', 'x=:wrong', '--compare', 'x=:v'], /two outputs are called "x"/],
      [[...html, '--compare', 'x=:nobody'], /nobody/],
      [['--html', '-', '--json', '-'], /--json - and --html - both want standard output/],
    ];
    for (const [args, message] of cases) expect(await refusal(...judged, ...args)).toMatch(message);
    await expect(readFile(page())).rejects.toThrow();
    await writeFile(join(folder, 'short.safetensors'), '');
    expect(
      await refusal(...judged, ...html, '--compare', join(folder, 'short.safetensors')),
    ).toMatch(/short\.safetensors/);
  });
});
