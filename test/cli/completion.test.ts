import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import {
  lawIds,
  recurrentLawIds,
  recurrentRegimeNames,
  regimeNames,
  scoreRegimeNames,
} from '../../properties/index.js';
import { kernelModels } from '../../kernels/index.js';
import { shells, type Shell } from '../../src/cli/completion/options.js';
import {
  completedCommands,
  completionValues,
} from '../../src/cli/completion/completed-commands.js';
import { createProgram } from '../../src/cli/program.js';
import { renderCompletion } from '../../src/cli/completion/run.js';
import { knownInstructions } from '../../src/conform/index.js';

const program = createProgram((error) => {
  throw error;
});
const commands = completedCommands(program);
const models = kernelModels.map(({ name }) => name);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-completion-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Whether a shell is installed. */
function hasShell(shell: Shell): boolean {
  return spawnSync(shell, ['-c', 'exit 0']).status === 0;
}

function scriptFile(shell: Shell): string {
  const path = join(scratch, shell);
  writeFileSync(path, renderCompletion(program, shell));
  return path;
}

/** What a shell prints that has read its completion script; nothing may go wrong. */
function shellOutput(shell: Shell, command: string): string[] {
  const { status, stdout, stderr } = spawnSync(
    shell,
    [...(shell === 'zsh' ? ['-f'] : []), '-c', `source '${scriptFile(shell)}'\n${command}`],
    { encoding: 'utf8', cwd: scratch, env: { ...process.env, HOME: scratch } },
  );
  expect(stderr).toBe('');
  expect(status).toBe(0);
  return stdout.split('\n').filter((line) => line !== '');
}

/** What bash offers for words as readline splits them; the last is the one being typed. */
function bashOffers(...words: string[]): string[] {
  const quoted = ['flashproof', ...words].map((word) => `'${word}'`).join(' ');
  return shellOutput(
    'bash',
    `COMP_WORDS=(${quoted}); COMP_CWORD=${words.length}; _flashproof; printf '%s\\n' "\${COMPREPLY[@]}"`,
  );
}

describe('what is completed', () => {
  it('names only what some option or argument takes', () => {
    const known = new Set(
      commands
        .flatMap(({ options, arguments: list }) => [...options, ...list])
        .flatMap(({ value }) => (value?.kind === 'names' ? [value.names] : [])),
    );
    for (const [kind, names] of Object.entries(completionValues))
      expect(known, kind).toContain(names);
  });

  it('names nothing that a shell would split or expand, but for what is quoted', () => {
    for (const [kind, names] of Object.entries(completionValues)) {
      expect(names.length, kind).toBeGreaterThan(0);
      const isQuoted = kind === 'mutant';
      for (const name of names)
        expect(name, kind).toMatch(isQuoted ? /^[^'"\\$`]+$/ : /^[\w.=:-]+$/);
    }
  });

  it('is every command, with help, and every option of its help', () => {
    const names = program.commands.map((command) => command.name());
    expect(commands.map(({ name }) => name)).toEqual([...names, 'help']);
    for (const command of program.commands) {
      const shown = command.options.filter(({ hidden }) => !hidden).map(({ long }) => long);
      const { options } = commands.find(({ name }) => name === command.name())!;
      expect(options.map(({ long }) => long)).toEqual([...shown, '--help']);
    }
  });

  it('offers files where a file is meant', () => {
    const audit = commands.find(({ name }) => name === 'audit')!;
    const kind = (flag: string) => audit.options.find(({ long }) => long === flag)!.value?.kind;
    for (const flag of ['--output', '--lse', '--json', '--junit']) expect(kind(flag)).toBe('files');
    for (const flag of ['--scale', '--exec', '--timeout']) expect(kind(flag)).toBe('nothing');
    expect(kind('--causal')).toBeUndefined();
    expect(audit.arguments.map(({ value }) => value.kind)).toEqual(['files']);
  });
});

describe.each(shells)('the script for %s', (shell) => {
  it('names every command and every option', () => {
    const script = renderCompletion(program, shell);
    for (const { name, options } of commands) {
      expect(script).toContain(name);
      for (const { long } of options)
        expect(script).toContain(shell === 'fish' ? ` -l ${long.slice(2)} ` : long);
    }
  });

  it.runIf(hasShell(shell))('is one that the shell reads', () => {
    const { status, stderr } = spawnSync(shell, ['-n', scriptFile(shell)], { encoding: 'utf8' });
    expect(stderr).toBe('');
    expect(status).toBe(0);
  });
});

describe.runIf(hasShell('bash'))('completion in bash', () => {
  it('is registered, with files where it has nothing to say', () => {
    expect(shellOutput('bash', 'complete -p flashproof')).toEqual([
      'complete -o bashdefault -o default -F _flashproof flashproof',
    ]);
  });

  it('completes commands', () => {
    expect(bashOffers('au')).toEqual(['audit']);
    for (const { name } of commands) expect(bashOffers('')).toContain(name);
    expect(bashOffers('help', 'conf')).toEqual(['conform']);
  });

  it('completes options of the command, and no others', () => {
    expect(bashOffers('audit', '--ker')).toEqual(['--kernel']);
    expect(bashOffers('audit', 'dump.safetensors', '--lay')).toEqual(['--layout']);
    expect(bashOffers('bound', '--junit')).toEqual([]);
  });

  it('completes names after an option, with a space or an equals sign', () => {
    expect(bashOffers('audit', '--kernel', '')).toEqual(models);
    expect(bashOffers('audit', '--kernel', '=', 'naive-f')).toEqual(['naive-fp32']);
    expect(bashOffers('audit', '--kernel', '=')).toEqual(models);
    expect(bashOffers('check', '--property', 'within')).toEqual(['within-bound']);
    expect(bashOffers('check', '--promise', 'within')).toEqual([
      'within-bound=bound',
      'within-bound=none',
    ]);
  });

  it('tells the regimes of check from those of profile', () => {
    // Those of attention and of linear attention, each once.
    const both = (...lists: readonly (readonly string[])[]) => [...new Set(lists.flat())];
    expect(bashOffers('check', '--regime', '')).toEqual(both(regimeNames, recurrentRegimeNames));
    expect(bashOffers('profile', '--regime', '')).toEqual([...scoreRegimeNames]);
    expect(bashOffers('check', '--property', '')).toEqual(both(lawIds, recurrentLawIds));
  });

  it('completes arguments: the first, or all where they repeat', () => {
    expect(bashOffers('emulate', '')).toEqual([...models, 'list']);
    expect(bashOffers('emulate', 'fa4', '')).toEqual([]);
    expect(bashOffers('conform', 'ex2.approx.f32', '')).toEqual([...knownInstructions]);
    expect(bashOffers('completion', '')).toEqual([...shells]);
  });

  it('leaves files to the shell', () => {
    expect(bashOffers('audit', '--json', '')).toEqual([]);
    expect(bashOffers('audit', '')).toEqual([]);
  });

  it('puts words together that readline takes apart', () => {
    expect(bashOffers('emulate', 'fa4', 'x', '--schedule', 'random')).toEqual(['random:']);
    // readline replaces what follows the colon only.
    expect(bashOffers('emulate', 'fa4', 'x', '--schedule', 'random', ':')).toEqual([]);
  });
});

describe.runIf(hasShell('fish'))('completion in fish', () => {
  const offers = (line: string) =>
    shellOutput('fish', `complete -C '${line}'`).map((text) => text.split('\t')[0]);

  it('completes commands, options, names and arguments', () => {
    expect(offers('flashproof au')).toEqual(['audit']);
    expect(offers('flashproof audit --ker')).toEqual(['--kernel']);
    expect(offers('flashproof audit --kernel ')).toEqual([...models].sort());
    expect(offers('flashproof completion ')).toEqual([...shells].sort());
    expect(offers('flashproof profile --regime n').sort()).toEqual(
      scoreRegimeNames.filter((name) => name.startsWith('n')).sort(),
    );
  });
});

describe.runIf(hasShell('zsh'))('completion in zsh', () => {
  it('is registered', () => {
    const path = scriptFile('zsh');
    const { stdout, stderr } = spawnSync(
      'zsh',
      [
        '-f',
        '-c',
        `autoload -U compinit; compinit -D -u; source '${path}'; print $_comps[flashproof]`,
      ],
      { encoding: 'utf8' },
    );
    expect(stderr).toBe('');
    expect(stdout.trim()).toBe('_flashproof');
  });
});
