import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { validateAction } from '@action-validator/core';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createProgram } from '../../src/cli/program.js';
import { builtDist } from '../setup/built-dist.js';
import { readDocument, runBlock } from './shell-document.js';

interface Step {
  readonly name: string;
  readonly run?: string;
  readonly env?: Readonly<Record<string, string>>;
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const text = readDocument('action.yml');
const action = parse(text) as {
  readonly inputs: Readonly<Record<string, { readonly default: string }>>;
  readonly runs: { readonly steps: readonly Step[] };
};
const stepNamed = (name: string) => action.runs.steps.find((step) => step.name === name)!;

/** In milliseconds. */
const patience = 180_000;

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
    let workspace = '';
    let dist = '';
    beforeAll(async () => {
      dist = await builtDist();
    }, patience);
    beforeEach(() => {
      workspace = mkdtempSync(join(tmpdir(), 'flashproof-action-'));
      mkdirSync(join(workspace, 'bin'));
      mkdirSync(join(workspace, 'dumps'));
    });
    afterEach(() => rmSync(workspace, { recursive: true, force: true }));

    const read = (name: string) => readFileSync(join(workspace, name), 'utf8');
    const dump = (fixture: string, name: string) =>
      cpSync(join(root, 'fixtures/attention', fixture), join(workspace, 'dumps', name));
    /** The step as GitHub runs it, with these inputs. */
    const judge = (inputs: Readonly<Record<string, string>>) => {
      const { env = {}, run = '' } = stepNamed('Judge');
      const quoted = (value: string) => `'${value.replaceAll("'", "'\\''")}'`;
      const exports = Object.entries(env).map(([name, value]) => {
        const input = /inputs\.([\w-]+)/.exec(value)![1];
        return `export ${name}=${quoted(inputs[input] ?? action.inputs[input].default)}`;
      });
      const github = [
        `export FLASHPROOF_MAIN=${quoted(join(dist, 'src/cli/main.js'))}`,
        `export GITHUB_ACTION_PATH=${quoted(root)}`,
        'export GITHUB_STEP_SUMMARY=summary.md GITHUB_OUTPUT=output.txt',
      ];
      return runBlock(workspace, [...exports, ...github, run].join('\n'));
    };

    it('passes dumps that are right, one and several', () => {
      dump('12-tiny-128x256-d64-bf16.safetensors', 'one.safetensors');
      const words = '--output=:torch_flash.out\n--lse=:torch_flash.lse';
      const { status, stdout } = judge({ dumps: 'dumps/one.safetensors', arguments: words });
      expect(status).toBe(0);
      expect(stdout).not.toContain('::error');
      expect(read('output.txt')).toBe('verdict=pass\n');
      expect(read('summary.md')).toMatch(/^\| ✅ PASS \| dumps\/one\.safetensors \| /m);
      expect(read('flashproof-reports/audit.html')).toContain('<!doctype html>');
      expect(read('flashproof-reports/audit.xml')).toContain('<testsuite');
      dump('12-tiny-128x256-d64-bf16.safetensors', 'two.safetensors');
      const both = judge({ dumps: '\n  \ndumps/*.safetensors\n', arguments: words });
      expect(both.status).toBe(0);
      expect(read('summary.md').match(/^\| ✅/gm)).toHaveLength(3);
    });

    it('annotates what fails and what cannot be judged, and says so by the status', () => {
      dump('12-tiny-128x256-d64-bf16.safetensors', 'a|b.safetensors');
      const wrong = '--output=:torch_flash.out\n--causal';
      const failed = judge({ dumps: 'dumps/*.safetensors', arguments: wrong });
      expect(failed.status).toBe(1);
      expect(failed.stdout.match(/^::error .*$/gm)).toEqual([
        expect.stringMatching(/^::error title=flashproof%3A dumps\/a\|b\.safetensors::FAIL: /),
      ]);
      expect(read('summary.md')).toMatch(/^\| ❌ FAIL \| dumps\/a&#124;b\.safetensors \| /m);
      expect(read('output.txt')).toBe('verdict=fail\n');
      writeFileSync(join(workspace, 'dumps', 'empty.safetensors'), '');
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
    });
  });
});
