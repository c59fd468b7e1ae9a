import { describe, expect, it } from 'vitest';
import {
  premiseNames,
  premisePresets,
  premiseWords,
  recurrentPremises,
  recurrentPresets,
} from '../../src/audit/index.js';
import { premiseHelp, recurrentHelp } from '../../src/cli/options/shared-options.js';
import { openTensorFile, readProblem, writeSafetensors } from '../../src/io/index.js';
import { temporaryFolder } from '../io/temporary-folder.js';
import { runInProcess } from './run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const folder = temporaryFolder();
const problem = 'fixtures/attention/12-tiny-128x256-d64-bf16.safetensors';
const eager = ['audit', problem, '--kernel', 'naive-input', '--threads', '1', '--quiet'];

describe('audit', () => {
  inTurn('judges a model that is coarse by its own arithmetic', async () => {
    const { status, stdout } = await runInProcess(...eager);
    expect(stdout).toMatch(/^PASS/);
    expect(status).toBe(0);
  });

  inTurn('takes premises from flags, and says whose bounds they are', async () => {
    const args = ['audit', problem, '--output', ':torch_flash.out', '--lse', ':torch_flash.lse'];
    const { status, stdout } = await runInProcess(...args, '--as', 'eager', '--json', '-');
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      arithmetic:
        "any correct kernel with scores in the input's format and P in the input's format",
    });
  });

  it.each([
    [['--premise', 'scores=bf17'], /^--premise has scores "bf17"; give input, fp64/],
    [['--premise', 'eagre'], /^--premise is "eagre"; give name=value/],
    [['--as', 'fa5'], /^--as is "fa5"; did you mean fa4; give a kernel model or a preset: fa4/],
    [['--as', 'fa4', '--premise', 'scores=bf16'], /^--premise changes what any kernel may do/],
    [['--as', 'eager', '--set', 'blockKeys=64'], /^--set changes a kernel model/],
  ] as const)('refuses %j on one line', async (flags, message) => {
    const args = ['audit', problem, '--output', ':torch_flash.out', ...flags];
    await expect(runInProcess(...args)).rejects.toThrow(message);
  });

  it('takes premises from the metadata of the problem, unless flags say otherwise', async () => {
    const source = await openTensorFile(problem);
    const { q, k, v } = await readProblem(source);
    const out = await source.read('torch_flash.out');
    await source.close();
    const path = folder.at('noted.safetensors');
    await writeSafetensors(path, { q, k, v, out }, { premises: 'eager' });
    const { stdout } = await runInProcess('audit', path, '--json', '-');
    expect((JSON.parse(stdout) as { arithmetic: string }).arithmetic).toContain('scores in');
    const plain = await runInProcess('audit', path, '--as', 'fused', '--json', '-');
    expect(JSON.parse(plain.stdout)).toMatchObject({ arithmetic: 'any correct kernel' });
  });
});

describe('check', () => {
  it('takes them from flags and from the file of promises', async () => {
    const runs = ['check', '--kernel', 'naive-input', '--property', 'within-bound', '--runs', '2'];
    const { status } = await runInProcess(...runs, '--seed', '1', '--quiet');
    expect(status).toBe(0);
    const path = folder.write('promises.json', '{"premises": {"scores": "bf17"}}');
    await expect(runInProcess(...runs, '--promises', path)).rejects.toThrow(
      /^promise premises has scores "bf17"/,
    );
  });
});

describe('the help', () => {
  it('names every premise, value and preset, and no other', () => {
    for (const name of premiseNames) {
      expect(premiseHelp).toContain(name);
      if (premiseWords[name].values.length < 6)
        for (const value of premiseWords[name].values) expect(premiseHelp).toContain(value);
    }
    for (const preset of Object.keys(premisePresets)) expect(premiseHelp).toContain(preset);
    const named = premiseHelp.match(/^ {2}([a-zA-Z, ]+?)(?= {2,}| (?:fp64|before))/gm)!;
    const words = named.flatMap((line) => line.trim().split(/, ?/)).filter(Boolean);
    expect(words.filter((word) => !premiseNames.includes(word as never))).toEqual([]);
  });
});

describe('the help on linear attention', () => {
  it('names its premises and presets', () => {
    for (const name of [...recurrentPremises, ...Object.keys(recurrentPresets)])
      expect(recurrentHelp).toMatch(new RegExp(`\\b${name}\\b`));
  });
});
