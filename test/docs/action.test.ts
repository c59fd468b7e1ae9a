import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { validateAction } from '@action-validator/core';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createProgram } from '../../src/cli/program.js';
import { builtDist } from '../setup/built-dist.js';
import { action, assignmentsOf, runStep, type RunnerFolders } from './action-runner.js';
import { readDocument } from './shell-document.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const text = readDocument('action.yml');
const stepNamed = (name: string) => action.runs.steps.find((step) => step.name === name)!;

/** In milliseconds. */
const patience = 180_000;

/** New folders of a runner, whose names have spaces, for an action whose files lie in a folder. */
function createFolders(actionFolder: string): RunnerFolders {
  const scratch = mkdtempSync(join(tmpdir(), 'flashproof action-'));
  const folders = {
    workspace: join(scratch, 'my work'),
    temporary: join(scratch, 'my temp'),
    action: actionFolder,
  };
  mkdirSync(join(folders.workspace, 'dumps'), { recursive: true });
  mkdirSync(folders.temporary);
  return folders;
}

function removeFolders({ workspace }: RunnerFolders): void {
  rmSync(dirname(workspace), { recursive: true, force: true });
}

/** Puts a captured problem among the dumps of a job. */
function copyDump({ workspace }: RunnerFolders, fixture: string, name: string): void {
  cpSync(join(root, 'fixtures/attention', fixture), join(workspace, 'dumps', name));
}

describe('action.yml', () => {
  it('has the shape of an action', () => {
    expect(validateAction(text)).toMatchObject({ errors: [] });
    expect(validateAction(text.replace('using: composite', 'using: tea')).errors).not.toEqual([]);
  });

  it('passes inputs to its scripts as data alone', () => {
    for (const { run = '', env = {} } of action.runs.steps) {
      expect(run).not.toContain('${{');
      for (const value of Object.values(env))
        for (const [, name] of value.matchAll(/inputs\.([\w-]+)/g))
          expect(Object.keys(action.inputs)).toContain(name);
    }
  });

  it('uses options that there are', () => {
    const { commands } = createProgram((error) => {
      throw error;
    });
    const run = stepNamed('Judge').run!.replaceAll(/\\\n\s*/g, '');
    const used = [...run.matchAll(/MAIN" (\w+) ([^\n]*)/g)];
    expect(used.map(([, name]) => name)).toEqual(['audit', 'check']);
    for (const [, name, rest] of used) {
      const known = commands.find((command) => command.name() === name)!.options;
      for (const [flag] of rest.matchAll(/--[a-z-]+/g))
        expect(known.map(({ long }) => long)).toContain(flag);
    }
  });

  describe('Judge', { timeout: patience }, () => {
    let folders: RunnerFolders;
    let dist = '';
    beforeAll(async () => {
      dist = await builtDist();
    }, patience);
    beforeEach(() => {
      folders = createFolders(root);
      const environment = `FLASHPROOF_MAIN=${join(dist, 'src/cli/main.js')}\n`;
      writeFileSync(join(folders.temporary, 'environment'), environment);
      return () => removeFolders(folders);
    });

    const read = (name: string) => readFileSync(join(folders.workspace, name), 'utf8');
    const told = (name: 'output' | 'summary') =>
      readFileSync(join(folders.temporary, name), 'utf8');
    const dump = (fixture: string, name: string) => copyDump(folders, fixture, name);
    const judge = (inputs: Readonly<Record<string, string>>) => runStep('Judge', inputs, folders);

    it('passes dumps that are right, one and several', () => {
      dump('12-tiny-128x256-d64-bf16.safetensors', 'one.safetensors');
      const words = '--output=:torch_flash.out\n--lse=:torch_flash.lse';
      const { status, stdout } = judge({ dumps: 'dumps/one.safetensors', arguments: words });
      expect(status).toBe(0);
      expect(stdout).not.toContain('::error');
      expect(told('output')).toBe('verdict=pass\n');
      expect(told('summary')).toMatch(/^\| ✅ PASS \| dumps\/one\.safetensors \| /m);
      expect(read('flashproof-reports/audit.html')).toContain('<!doctype html>');
      expect(read('flashproof-reports/audit.xml')).toContain('<testsuite');
      dump('12-tiny-128x256-d64-bf16.safetensors', 'two.safetensors');
      const both = judge({ dumps: '\n  \ndumps/*.safetensors\n', arguments: words });
      expect(both.status).toBe(0);
      expect(told('summary').match(/^\| ✅/gm)).toHaveLength(3);
    });

    it('annotates what fails and what cannot be judged, and says so by the status', () => {
      dump('12-tiny-128x256-d64-bf16.safetensors', 'a|b.safetensors');
      const wrong = '--output=:torch_flash.out\n--causal';
      const failed = judge({ dumps: 'dumps/*.safetensors', arguments: wrong });
      expect(failed.status).toBe(1);
      expect(failed.stdout.match(/^::error .*$/gm)).toEqual([
        expect.stringMatching(/^::error title=flashproof%3A dumps\/a\|b\.safetensors::FAIL: /),
      ]);
      expect(told('summary')).toMatch(/^\| ❌ FAIL \| dumps\/a&#124;b\.safetensors \| /m);
      expect(told('output')).toBe('verdict=fail\n');
      writeFileSync(join(folders.workspace, 'dumps', 'empty.safetensors'), '');
      const unread = judge({ dumps: 'dumps/*.safetensors', arguments: wrong });
      expect(unread.status).toBe(2);
      expect(unread.stdout.match(/^::error .*$/gm)).toHaveLength(2);
    });

    it('takes nothing of its inputs for a command', () => {
      const { status } = judge({
        dumps: '$(touch made); `touch made`',
        arguments: "'; touch made",
      });
      expect(status).toBe(2);
      expect(() => read('made')).toThrow();
    });

    it('refuses to judge nothing', () => {
      const { status, stdout } = judge({});
      expect(status).toBe(2);
      expect(stdout).toContain('::error title=flashproof::nothing is judged');
      expect(told('output')).toBe('verdict=fail\n');
    });
  });

  // As a job runs it, one step after the other, in folders whose names have spaces; what npm would publish is in the place of the registry's.
  describe('Install, then Judge', { timeout: patience }, () => {
    let folders: RunnerFolders;
    const inputs = {
      package: './packed flashproof.tgz',
      dumps: 'dumps/*.safetensors',
      arguments: '--output=:torch_flash.out\n--lse=:torch_flash.lse',
    };
    const told = (name: 'environment' | 'output' | 'summary') =>
      readFileSync(join(folders.temporary, name), 'utf8');
    beforeAll(async () => {
      await builtDist();
      folders = createFolders(join(tmpdir(), 'no action is built here'));
      const command = ['pack', '--json', '--ignore-scripts', '--pack-destination'];
      const packed = spawnSync('npm', [...command, folders.workspace], {
        cwd: root,
        encoding: 'utf8',
      });
      const [{ filename }] = JSON.parse(packed.stdout) as [{ readonly filename: string }];
      cpSync(join(folders.workspace, filename), join(folders.workspace, inputs.package));
      // Only its script of summaries is the action's own once a package is installed.
      const scripts = join(folders.temporary, 'my action', 'scripts');
      mkdirSync(scripts, { recursive: true });
      cpSync(join(root, 'scripts/summarize-reports.mjs'), join(scripts, 'summarize-reports.mjs'));
      folders = { ...folders, action: join(folders.temporary, 'my action') };
      const { status, stderr } = runStep('Install flashproof', inputs, folders);
      expect({ status, stderr }).toMatchObject({ status: 0 });
    }, patience);
    afterAll(() => removeFolders(folders));

    it('hands the installed command on', () => {
      const { FLASHPROOF_MAIN: main } = assignmentsOf(told('environment'));
      expect(main.startsWith(join(folders.temporary, 'flashproof', 'node_modules'))).toBe(true);
      const { stdout } = spawnSync(process.execPath, [main, '--version'], { encoding: 'utf8' });
      const { version } = JSON.parse(readDocument('package.json')) as { readonly version: string };
      expect(stdout.trim()).toBe(version);
    });

    it('judges a dump and a live kernel, and fails by either', () => {
      copyDump(folders, '12-tiny-128x256-d64-bf16.safetensors', 'a kernel.safetensors');
      const script = join(folders.workspace, 'my kernel.mjs');
      cpSync(join(root, 'test/cli/check-protocol-kernel.mjs'), script);
      const sizes = { batch: { max: 1 }, queries: { max: 4 }, keys: { max: 4 } };
      const promises = join(folders.workspace, 'my promises.json');
      writeFileSync(promises, JSON.stringify({ formats: ['bf16'], dims: [4], sizes }));
      const live = (fault: string) => ({
        exec: `node "my kernel.mjs" ${fault}`,
        'check-arguments': [
          '--promises=my promises.json',
          ...['--property=within-bound', '--regime=normal', '--runs=4', '--seed=5'],
          '--no-special-values',
        ].join('\n'),
      });
      const right = runStep('Judge', { ...inputs, ...live('none') }, folders);
      expect(right.status, right.stdout + right.stderr).toBe(0);
      expect(told('output')).toBe('verdict=pass\n');
      expect(told('summary').match(/^\| ✅ PASS \| (.*?) \|/gm)).toEqual([
        '| ✅ PASS | dumps/a kernel.safetensors |',
        '| ✅ PASS | properties |',
      ]);
      for (const name of ['audit.json', 'audit.xml', 'audit.html', 'check.json', 'check.xml'])
        expect(existsSync(join(folders.workspace, 'flashproof-reports', name))).toBe(true);

      const wrong = { ...inputs, ...live('one-percent'), reports: 'my reports' };
      const byKernel = runStep('Judge', wrong, folders);
      expect(byKernel.status, byKernel.stdout + byKernel.stderr).toBe(1);
      expect(byKernel.stdout.match(/^::error .*$/gm)).toEqual([
        expect.stringMatching(/within-bound/),
      ]);
      expect(told('output')).toMatch(/verdict=fail\n$/);
      expect(existsSync(join(folders.workspace, 'my reports', 'check.json'))).toBe(true);

      const another = { ...inputs, ...live('none'), arguments: `${inputs.arguments}\n--causal` };
      const byDump = runStep('Judge', another, folders);
      expect(byDump.status, byDump.stdout + byDump.stderr).toBe(1);
      expect(byDump.stdout.match(/^::error .*$/gm)).toEqual([
        expect.stringMatching(/^::error title=flashproof%3A dumps\/a kernel\.safetensors::FAIL: /),
      ]);
    });
  });
});
