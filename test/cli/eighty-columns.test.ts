import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createProgram } from '../../src/cli/program.js';
import { displayWidth } from '../../src/words/texts.js';
import { machineMutants } from '../../kernels/index.js';
import { sampled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { runInProcess } from './run-in-process.js';

const inTurn = turns(import.meta.url);

const bundled = 'fixtures/attention';
const tiny = `${bundled}/12-tiny-128x256-d64-bf16.safetensors`;

/** What is to be copied, and so is never broken. */
const copied = new Set(machineMutants.map(({ id }) => `  ${id}`));

function tooWide(text: string, columns: number): string[] {
  return text
    .replaceAll(/\x1b\[[0-9;]*m/g, '')
    .split('\n')
    .filter((line) => displayWidth(line) > columns && !copied.has(line));
}

beforeEach(() => vi.stubEnv('COLUMNS', '80'));
afterEach(() => vi.unstubAllEnvs());

const reports: readonly (readonly string[])[] = [
  ['audit', tiny, '--output', ':torch_flash.out', '--lse', ':torch_flash.lse', '--identify'],
  ['audit', tiny, '--kernel', 'fa4', '--threads', '1'],
  ['audit', tiny, '--kernel', 'fa4', '--threads', '1', '--full'],
  ['audit', tiny, '--kernel', 'fa4', '--threads', '1', '--set', 'variant=causal-one-more'],
  ['audit', tiny, '--output', ':torch_flash.out', '--lse', ':torch_cudnn.lse', '--causal'],
  ['bound', tiny],
  ['bound', tiny, '--kernel', 'fa4'],
  ['emulate', 'fa4', tiny, '--threads', '1'],
  ['emulate', 'naive-fp32', tiny, '--threads', '1'],
  ['emulate', 'fa4', tiny, '--machine', '--clusters', '1', '--schedule', 'timed'],
  [
    'emulate',
    'fa4',
    tiny,
    '--machine',
    '--clusters',
    '1',
    '--mutant',
    'remove: statistics empty: softmax waits',
  ],
  ['emulate', 'list'],
  ['emulate', 'list', '--machine'],
  ['check', '--list'],
  ['check', '--kernel', 'naive-fp32', '--runs', '1', '--seed', '1', '--property', 'determinism'],
];

describe('within 80 columns', () => {
  inTurn('are reports on a bundled problem, plain and with sparklines', async () => {
    const audits = reports.filter(([command]) => command === 'audit');
    const others = reports.filter(([command]) => command !== 'audit');
    const full = audits.filter((words) => words.includes('--full'));
    const withSparklines = [...new Set([...full, ...sampled(audits, 1)])];
    const plain = [...audits.filter((words) => !withSparklines.includes(words)), ...others];
    for (const words of [...withSparklines, ...sampled(plain, 3)]) {
      const sketched = withSparklines.includes(words);
      vi.stubEnv('FORCE_COLOR', sketched ? '1' : '');
      const { stdout } = await runInProcess(...words);
      expect(stdout.length, words.join(' ')).toBeGreaterThan(100);
      const hasSketch = sketched && words.includes('--full');
      expect(/^.{0,9}Sketch/m.test(stdout), words.join(' ')).toBe(hasSketch);
      expect(tooWide(stdout, 80), words.join(' ')).toEqual([]);
    }
  });

  it('is every help page', () => {
    const program = createProgram(() => undefined);
    for (const command of [program, ...program.commands]) {
      let help = '';
      command.configureOutput({ writeOut: (text) => (help += text), getOutHelpWidth: () => 80 });
      command.outputHelp();
      expect(help.length).toBeGreaterThan(200);
      expect(tooWide(help, 80), command.name()).toEqual([]);
    }
  });
});

describe('as wide as COLUMNS says', () => {
  inTurn('is an audit', async () => {
    vi.stubEnv('COLUMNS', '70');
    const { stdout } = await runInProcess(
      'audit',
      tiny,
      '--output',
      ':torch_flash.out',
      '--no-techniques',
      '--full',
    );
    expect(tooWide(stdout, 70)).toEqual([]);
    expect(tooWide(stdout, 64).length).toBeGreaterThan(0);
  });
});
