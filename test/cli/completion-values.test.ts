import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { fa2Model, fa4Model, kernelVariants, machineMutants } from '../../kernels/index.js';
import { lawIds, laws } from '../../properties/index.js';
import {
  completedCommands,
  completionValues,
} from '../../src/cli/completion/completed-commands.js';
import type { Shell } from '../../src/cli/completion/options.js';
import { declaredFormats, kernelSettings } from '../../src/cli/options/settings.js';
import { createProgram } from '../../src/cli/program.js';
import { renderCompletion } from '../../src/cli/completion/run.js';
import type { Problem, Tensor } from '../../src/problem/index.js';

const program = createProgram((error) => {
  throw error;
});
const scratch = mkdtempSync(join(tmpdir(), 'flashproof-completion-values-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** What stands for a number, a text or a list that is the user's to make up. */
const open =
  /<(n|x|p|line\[,thread\]|seconds|command|text|sizes|l,r|left,right|name=(?:file)?:tensor|1\/√d|number|value|keys|words|x\|file\[:tensor\])>/;

describe('every option whose value is one of some names', () => {
  it('has them completed', () => {
    const without = completedCommands(program).flatMap(({ name, options }) => {
      const command = program.commands.find((one) => one.name() === name);
      return options
        .filter(({ value }) => value?.kind === 'nothing')
        .map(({ long }) => command!.options.find((option) => option.long === long)!.flags)
        .filter((flags) => !open.test(flags))
        .map((flags) => `${name} ${flags}`);
    });
    expect(without).toEqual([]);
  });

  it('has all of them: mutants, bugs, promises', () => {
    expect(completionValues.mutant).toEqual(machineMutants.map(({ id }) => id));
    for (const { id } of kernelVariants) {
      expect(completionValues.variant).toContain(id);
      expect(completionValues.setting).toContain(`variant=${id}`);
    }
    for (const id of lawIds)
      for (const strength of [...laws[id].strengths, 'none'])
        expect(completionValues.promise).toContain(`${id}=${strength}`);
  });

  it('takes what is completed', () => {
    const declared = declaredFormats({ format: completionValues['tensor-format'].slice() });
    expect(Object.keys(declared)).toEqual(['q', 'k', 'v', 'out', 'lse']);
    const tensor: Tensor = { format: 'bf16', shape: [1, 1, 8, 64], data: new Uint16Array(512) };
    const problem: Problem = {
      q: tensor,
      k: tensor,
      v: tensor,
      scale: 1,
      causal: false,
      window: null,
      softcap: null,
    };
    const architectures = completionValues.setting.filter((set) => set.startsWith('arch'));
    expect(architectures.length).toBeGreaterThan(1);
    for (const set of architectures) {
      // FlashAttention-4 has another kernel for sm_120.
      const model = set.endsWith('=sm_120') ? fa2Model : fa4Model;
      expect(model.prepare(problem, kernelSettings([set])).settings).toMatchObject(
        Object.fromEntries([set.split('=')]),
      );
    }
  });
});

/** Whether a shell is installed. */
function hasShell(shell: Shell): boolean {
  return spawnSync(shell, ['-c', 'exit 0']).status === 0;
}

function shellLines(shell: Shell, commands: string): string[] {
  const script = join(scratch, shell);
  writeFileSync(script, renderCompletion(program, shell));
  const { stdout, stderr } = spawnSync(
    shell,
    ['-c', `${shell === 'zsh' ? 'compdef() { : }; ' : ''}source '${script}'\n${commands}`],
    {
      encoding: 'utf8',
      cwd: scratch,
      env: { ...process.env, HOME: scratch, LC_ALL: 'C.UTF-8' },
    },
  );
  expect(stderr).toBe('');
  return stdout.split('\n').filter((line) => line !== '');
}

const mutant = 'remove: K/V empty: load waits';
const word = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

describe.runIf(hasShell('bash'))('completion in bash', () => {
  /** What is offered for each of several lines; words as readline splits them. */
  const offers = (lines: readonly (readonly string[])[]): string[][] => {
    const commands = lines.map(
      (words) =>
        `COMP_WORDS=(flashproof ${words.map(word).join(' ')}); COMP_CWORD=${words.length}; _flashproof; printf '%s\\n' "\${COMPREPLY[@]}" ---`,
    );
    const all: string[][] = [[]];
    for (const line of shellLines('bash', commands.join('\n')))
      if (line === '---') all.push([]);
      else all.at(-1)!.push(line);
    return all.slice(0, -1);
  };

  it('quotes names with spaces, and goes on within them', () => {
    const emulate = ['emulate', 'fa4', 'x', '--mutant'];
    const [all, begun, inQuotes, behindColon] = offers([
      [...emulate, ''],
      [...emulate, 'remove', ':', '\\ K/V\\ em'],
      [...emulate, '"remove: K/V em'],
      [...emulate, 'remove', ':'],
    ]);
    expect(all).toHaveLength(machineMutants.length);
    // The shell reads each as one word, the mutant's name.
    const read = shellLines('bash', all!.map((text) => `printf '%s\\n' ${text}`).join('\n'));
    expect(read).toEqual(machineMutants.map(({ id }) => id));
    const starting = machineMutants.filter(({ id }) => id.startsWith('remove: K/V em'));
    expect(starting.map(({ id }) => id)).toContain(mutant);
    expect(begun).toHaveLength(starting.length);
    // readline replaces what is behind the colon.
    expect(begun).toContain('\\ K/V\\ empty:\\ load\\ waits');
    expect(inQuotes).toEqual(starting.map(({ id }) => id));
    expect(behindColon!.length).toBeGreaterThan(starting.length);
  });

  it('completes behind an equals sign of a value, and behind that of an option', () => {
    const [promise, behind, joined, set, shard] = offers([
      ['check', '--promise', 'determ'],
      ['check', '--promise', 'determinism', '=', 'b'],
      ['check', '--promise', '=', 'determinism', '=', 'b'],
      ['audit', 'x', '--set', 'architecture', '=', 'sm_9'],
      ['check', '--shard', ''],
    ]);
    expect(promise).toEqual(
      [...laws.determinism.strengths, 'none'].map((strength) => `determinism=${strength}`),
    );
    const strengths = laws.determinism.strengths.filter((strength) => strength.startsWith('b'));
    expect(behind).toEqual(strengths);
    expect(joined).toEqual(strengths);
    expect(set).toEqual(['sm_90']);
    expect(shard).toEqual(['auto']);
  });

  it('leaves the parts of merge to the shell', () => {
    expect(renderCompletion(program, 'bash')).not.toContain("'merge argument'");
  });
});

describe.runIf(hasShell('fish'))('completion in fish', () => {
  it('offers the mutants, each as one word', () => {
    const offered = shellLines('fish', "complete -C 'flashproof emulate fa4 x --mutant '");
    const names = offered.map((line) => line.split('\t')[0].replaceAll('\\', ''));
    expect(names.sort()).toEqual(machineMutants.map(({ id }) => id).sort());
  });
});

describe.runIf(hasShell('zsh'))('completion in zsh', () => {
  it('has the mutants, each as one word of a list', () => {
    const script = renderCompletion(program, 'zsh');
    const list = /--mutant=.*?:mutant:\((.*?)\)'/s.exec(script)![1];
    const read = shellLines('zsh', `names=(${list.replaceAll('\\:', ':')}); print -l -- $names`);
    expect(read).toEqual(machineMutants.map(({ id }) => id));
  });
});
