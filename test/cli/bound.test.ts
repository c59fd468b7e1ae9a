import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { techniques } from '../../kernels/index.js';
import { chooseRows, elementBounds, resolvePremises } from '../../src/audit/index.js';
import { anyKernelArithmetic, KernelBound } from '../../src/audit/bounds/index.js';
import { attentionOracle } from '../../oracles/index.js';
import { openTensorFile, readProblem, writeProblem } from '../../src/io/index.js';
import { problemShape } from '../../src/problem/index.js';
import type { BoundReport } from '../../src/report/json/index.js';
import { validateBoundReport, validateReport } from '../../src/report/validation/index.js';
import { builtDist } from '../setup/built-dist.js';
import { turns } from '../setup/turns.js';
import { writeFewQueries } from './few-queries.js';
import { refusal, runInProcess } from './run-in-process.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-bound-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const fixture = join(scratch, 'few-queries.safetensors');

interface Line {
  readonly technique: string;
  readonly bound: { readonly max: number };
  readonly measured: { readonly max: number; readonly used: number } | null;
}
interface Table {
  readonly kernel: string | null;
  readonly techniques: readonly Line[];
  readonly total: Line;
}

describe('flashproof bound, and the techniques of an audit', () => {
  let main = '';
  beforeAll(async () => {
    main = join(await builtDist(), 'src/cli/main.js');
    await writeFewQueries(fixture);
  });
  const spawned = (...args: string[]) =>
    spawnSync(process.execPath, [main, ...args], { encoding: 'utf8' });
  inTurn('saves exact values, and the bound of every element', async () => {
    const path = join(scratch, 'elements.safetensors');
    await runInProcess('bound', fixture, '--save', path, '--threads', '1', '-q');
    const file = await openTensorFile(path);
    const [out, outBound, lse, lseBound] = await Promise.all(
      ['out', 'out_bound', 'lse', 'lse_bound'].map((name) => file.read(name)),
    );
    await file.close();
    expect(outBound.shape).toEqual(out.shape);
    expect(lseBound.shape).toEqual(lse.shape);
    const opened = await openTensorFile(fixture);
    const problem = await readProblem(opened);
    await opened.close();
    const { format } = problem.q;
    const premises = resolvePremises(problem, format, {});
    const reference = attentionOracle(problem);
    const { quantities } = elementBounds(
      problem,
      reference,
      anyKernelArithmetic(problem, format, premises),
      new KernelBound(problem, reference, format, premises),
    );
    // The oracle of a bound is as exact as its format needs, this one more so.
    for (const [saved, exact] of [
      [out, reference.quantities.out.values],
      [outBound, quantities.out.total],
      [lseBound, quantities.lse.total],
    ] as const) {
      expect(saved.data.length).toBe(exact.length);
      expect(exact.every((one, i) => Math.abs(one - Number(saved.data[i])) < 1e-9)).toBe(true);
    }
    expect(await refusal('bound', fixture, '--save', path, '--rows', '3')).toBe(
      '--save keeps the bounds of all rows; leave out --rows',
    );
  });

  const boundJson = async (...args: string[]): Promise<Table> => {
    const { stdout, status, stderr } = await runInProcess('bound', fixture, ...args, '--json', '-');
    expect(stderr).toBe('');
    expect(status).toBe(0);
    const report = JSON.parse(stdout) as { readonly techniques: Table };
    await validateBoundReport(report);
    return report.techniques;
  };

  inTurn('gives every technique of any kernel and of a model, as text and as JSON', async () => {
    const { stdout, status } = spawned('bound', fixture);
    expect(status).toBe(0);
    for (const technique of techniques) expect(stdout).toContain(`\n  ${technique} `);
    expect(stdout).not.toContain('Not bounded');
    expect(stdout).toContain('Bounds of any correct kernel');
    const [any, own] = [await boundJson(), await boundJson('--kernel', 'fa4')];
    expect(own.techniques.map(({ technique }) => technique)).toEqual([...techniques]);
    // Who knows the kernel knows more.
    expect(own.total.bound.max).toBeLessThan(any.total.bound.max);
  });

  it('takes settings: more degrees, less error of the polynomial; no lag, no rescale skipped', async () => {
    const polynomial = async (degree: string) =>
      (await boundJson('--kernel', 'fa4', '--set', `exp2.degree=${degree}`)).techniques.find(
        ({ technique }) => technique === 'exp2-polynomial',
      )!.bound.max;
    expect(await polynomial('4')).toBeLessThan((await polynomial('3')) / 20);
  });

  inTurn(
    'bounds a sample of the rows, as they are bounded alone, and says what that leaves out',
    async () => {
      const { stdout, status } = await runInProcess(
        ...['bound', fixture, '--rows', '6', '--seed', '5', '--json', '-'],
      );
      expect(status).toBe(0);
      const report = JSON.parse(stdout) as BoundReport;
      await validateBoundReport(report);
      expect(report.sample).toEqual({ seed: 5, rows: 6, of: 32, edges: 2, random: 4 });
      expect(report.problem.seqlenQ).toBe(32);
      // A row does not depend on those beside it: a problem of these rows alone has their bounds.
      const file = await openTensorFile(fixture);
      const problem = await readProblem(file);
      await file.close();
      const chosen = chooseRows(problem, problemShape(problem), { rows: 6, seed: 5 })!;
      const dim = problem.q.shape.at(-1)!;
      const data = new Uint16Array(6 * dim);
      chosen.selection.queries.forEach((query, row) =>
        data.set(
          (problem.q.data as Uint16Array).subarray(query * dim, (query + 1) * dim),
          row * dim,
        ),
      );
      const alone = join(scratch, 'alone.safetensors');
      await writeProblem(alone, { ...problem, q: { ...problem.q, shape: [1, 6, dim], data } });
      const ofThese = await runInProcess('bound', alone, '--json', '-');
      expect((JSON.parse(ofThese.stdout) as BoundReport).techniques).toEqual(report.techniques);
      const all = await boundJson('--rows', '32');
      expect(all.total.bound.max).toBeGreaterThanOrEqual(
        report.techniques.total.bound.max as number,
      );
      const text = await runInProcess('bound', fixture, '--rows', '6', '--seed', '5');
      expect(text.stdout).toMatch(
        /^Bounded +6 of 32 rows, 2 for their place and 4 at random by seed 5$/m,
      );
      expect(text.stdout).toMatch(/^Not bounded +26 of 32 rows, which are not in the sample/m);
    },
  );

  inTurn('puts what an emulated kernel does beside its bounds, and stays within', async () => {
    const json = join(scratch, 'audit.json');
    const { stdout, status } = spawned(
      'audit',
      fixture,
      '--kernel',
      'fa4',
      '--json',
      json,
      '--full',
    );
    expect(status).toBe(0);
    expect(stdout).toMatch(/Techniques +allowed +found/);
    const report = JSON.parse(readFileSync(json, 'utf8')) as { readonly techniques: Table };
    await validateReport(report);
    expect(report.techniques.kernel).toBe('fa4');
    for (const { technique, measured } of report.techniques.techniques)
      expect(measured!.used, technique).toBeLessThanOrEqual(1);
    const { stdout: without } = await runInProcess(
      'audit',
      fixture,
      '--kernel',
      'fa4',
      '--threads',
      '1',
      '--no-techniques',
      '--full',
    );
    expect(without).not.toContain('Techniques');
  });

  inTurn('judges an output as that of a kernel, and tells which kernel it is of', async () => {
    const own = ['--output', ':fa4.out', '--lse', ':fa4.lse'];
    const as = await runInProcess(
      'audit',
      fixture,
      ...own,
      '--as',
      'fa4',
      '--set',
      'architecture=sm_90',
    );
    expect(as.status).toBe(0);
    expect(as.stdout).toContain('Bounds of fa4 (sm_90');
    const identified = await runInProcess('audit', fixture, ...own, '--identify');
    expect(identified.stdout).toContain('fa4');
    expect(identified.status).toBe(0);
  });

  it('finds a bug that any kernel might be forgiven, by what this kernel may do', async () => {
    const bug = [
      '--kernel',
      'fa4',
      '--threads',
      '1',
      '--set',
      'variant=exp2-coefficient-c1',
      '--quiet',
    ];
    const { stdout, status } = await runInProcess('audit', fixture, ...bug);
    expect(stdout).toMatch(/^FAIL/);
    expect(status).toBe(1);
  });

  inTurn('refuses what it cannot do, in one line, and writes nothing', async () => {
    const never = join(scratch, 'never.json');
    const cases: readonly (readonly [readonly string[], RegExp])[] = [
      [
        ['bound', fixture, '--kernel', 'fa5'],
        /no bounds for a kernel model "fa5"; there are for fa4/,
      ],
      [['bound', fixture, '--set', 'a=1'], /name one with --kernel/],
      [['bound', fixture, '--kernel', 'fa4', '--set', 'splits=2'], /no bounds for a combine/],
      [['bound', fixture, '--output-format', 'int8'], /--output-format is "int8"; give one of/],
      [['bound', fixture, '--rows', '0'], /--rows is "0"/],
      [['bound', 'nowhere.safetensors'], /nowhere\.safetensors/],
      [
        ['audit', fixture, '--output', ':fa4.out', '--as', 'fa5'],
        /^--as is "fa5"; did you mean fa4; give a kernel model/,
      ],
      [['audit', fixture, '--kernel', 'fa4', '--as', 'fa4'], /leave out --as/],
    ];
    for (const [args, message] of cases) {
      const words = await refusal(...args, '--json', never);
      expect(words).toMatch(message);
      expect(words).not.toContain('\n');
    }
    const [args, message] = cases[0];
    const { stdout, stderr, status } = spawned(...args, '--json', never);
    expect(stdout).toBe('');
    expect(stderr).toMatch(message);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(status).toBe(2);
    expect(existsSync(never)).toBe(false);
  });
});
