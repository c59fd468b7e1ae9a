import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createProgram } from '../../src/cli/program.js';
import { openTensorFile, writeSafetensors } from '../../src/io/index.js';
import { builtDist } from '../setup/built-dist.js';
import { createWorkspace, readDocument, runBlock } from './shell-document.js';

interface Step {
  readonly name?: string;
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, string | number>>;
}
interface Workflow {
  readonly jobs: Readonly<Record<string, { readonly steps: readonly Step[] }>>;
}

const example = fileURLToPath(new URL('../../examples/github-action', import.meta.url));
const workflow = parse(readDocument('examples/github-action/flashproof.yml')) as Workflow;
const steps = workflow.jobs['numerics'].steps;
const runOf = (name: string) => steps.find((step) => step.name === name)!.run!;

/** Every audit is a process; a machine may have other work. In milliseconds. */
const patience = 180_000;

const hasNumpy = spawnSync('python3', ['-c', 'import numpy']).status === 0;

describe('examples/github-action', () => {
  it('uses options that there are', () => {
    const commands = createProgram((error) => {
      throw error;
    }).commands;
    const used = steps.flatMap(({ run = '' }) => [
      ...run.matchAll(/npx flashproof (\w+)([^\n]*)/g),
    ]);
    expect(used.map(([, name]) => name)).toEqual(['audit', 'check']);
    for (const [, name, rest] of used) {
      const known = commands.find((command) => command.name() === name)!.options;
      for (const [flag] of rest.matchAll(/--[a-z-]+/g))
        expect(known.map(({ long }) => long)).toContain(flag);
    }
  });

  it('uploads what its steps write', () => {
    const upload = steps.find(({ uses }) => uses?.startsWith('actions/upload-artifact'))!;
    const paths = String(upload.with!['path']).trim().split('\n');
    expect(paths).toEqual(['reports', 'flashproof-failures']);
    expect(runOf('Audit every dump')).toContain('mkdir -p reports');
  });

  describe.runIf(hasNumpy)('run', () => {
    let workspace = '';
    const summary = () => readFileSync(join(workspace, 'summary.md'), 'utf8').trim().split('\n');
    const kept = ['causal', 'plain'];
    const removeDump = (name: string) =>
      rmSync(join(workspace, 'dumps', `${name}.safetensors`), { force: true });
    /** A step as GitHub runs it, without the packages of actions. */
    const run = (name: string) =>
      runBlock(workspace, `export GITHUB_STEP_SUMMARY="$PWD/summary.md"\n${runOf(name)}`);
    beforeAll(async () => {
      workspace = createWorkspace(await builtDist(), '');
      cpSync(join(example, 'dump_attention.py'), join(workspace, 'dump_attention.py'));
      expect(run('Dump what the kernel reads and writes')).toMatchObject({ status: 0, stderr: '' });
      const names = readdirSync(join(workspace, 'dumps')).map((name) => name.split('.')[0]);
      expect(names).toEqual(expect.arrayContaining(kept));
      // Two show all that the steps do.
      for (const name of names.filter((name) => !kept.includes(name))) removeDump(name);
    });
    afterAll(() => rmSync(workspace, { recursive: true, force: true }));

    it('passes a kernel that is right', { timeout: patience }, () => {
      const { status, stdout, stderr } = run('Audit every dump');
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      const dumps = readdirSync(join(workspace, 'dumps')).map((name) => name.split('.')[0]);
      expect(dumps).toEqual(kept);
      expect(summary()).toHaveLength(dumps.length);
      for (const line of summary()) expect(line).toMatch(/^- [\w-]+: PASS: .*\.$/);
      expect(stdout).not.toContain('::error');
      for (const name of dumps)
        for (const suffix of ['html', 'xml'])
          expect(existsSync(join(workspace, 'reports', `${name}.${suffix}`))).toBe(true);
    });

    it(
      'annotates a kernel that is one per cent off, and fails',
      { timeout: patience },
      async () => {
        removeDump('causal');
        const path = join(workspace, 'dumps', 'plain.safetensors');
        const file = await openTensorFile(path);
        const [q, k, v, out] = await Promise.all(
          ['q', 'k', 'v', 'out'].map((name) => file.read(name)),
        );
        await file.close();
        const data = Float32Array.from(out.data as ArrayLike<number>, (value) => 1.01 * value);
        await writeSafetensors(path, { q, k, v, out: { ...out, format: 'fp32', data } });
        rmSync(join(workspace, 'summary.md'), { force: true });
        const { status, stdout } = run('Audit every dump');
        expect(status).toBe(1);
        expect(stdout.match(/^::error .*$/gm)).toEqual([
          expect.stringMatching(/^::error title=flashproof: plain::FAIL: .*\.$/),
        ]);
        expect(summary().filter((line) => line.includes('FAIL'))).toHaveLength(1);
      },
    );

    it('stops where a dump cannot be audited', () => {
      const folder = mkdtempSync(join(tmpdir(), 'flashproof-action-'));
      rmSync(join(workspace, 'dumps'), { recursive: true });
      cpSync(folder, join(workspace, 'dumps'), { recursive: true });
      rmSync(folder, { recursive: true });
      const { status, stderr } = run('Audit every dump');
      expect(status).toBe(2);
      expect(stderr).toMatch(/^flashproof: /);
    });
  });
});
