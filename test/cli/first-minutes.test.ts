import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { isNewEnough, probeMachine } from '../../src/cli/doctor/run.js';
import { createProgram } from '../../src/cli/program.js';
import { runStart, firstSteps, renderSteps, stepOf } from '../../src/cli/start/run.js';
import { probeSentence } from '../../src/report/text/index.js';
import { runInProcess } from './run-in-process.js';

/** A terminal that types these lines, or what is none. */
async function start(lines: readonly string[], isTerminal = true) {
  const input = Object.assign(new PassThrough(), { isTTY: isTerminal });
  const output = Object.assign(new PassThrough(), { isTTY: isTerminal });
  const status = runStart({ input, output });
  for (const line of lines) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    input.write(`${line}\n`);
  }
  if (lines.length === 0) input.end();
  return { status: await status, text: String(output.read()) };
}

describe('flashproof without a command', () => {
  it.each(firstSteps.map(({ name }, i) => [name, String(i + 1)]))(
    'asks: %s',
    async (name, number) => {
      for (const answer of [number, name]) {
        const { status, text } = await start(['what?', answer]);
        expect(status).toBe(0);
        for (const [command] of stepOf(name)!.commands) expect(text).toContain(`  ${command}\n`);
        expect(text).toContain('What do you have?');
      }
    },
  );

  it('lets one leave', async () => {
    expect(await start(['q'])).toMatchObject({ status: 0 });
    expect(await start([])).toMatchObject({ status: 0 });
  });

  it('tells all where nobody can be asked, and passes nothing', async () => {
    const { status, text } = await start([], false);
    expect(status).toBe(2);
    expect(text.replaceAll(/\s+/g, ' ')).toBe(renderSteps().replaceAll(/\s+/g, ' '));
    expect(text.split('\n').filter((line) => line.length > 80)).toEqual([]);
  });

  it('shows commands and options that there are', () => {
    const { commands } = createProgram((error) => {
      throw error;
    });
    for (const [command] of firstSteps.flatMap(({ commands: shown }) => shown)) {
      const [, name, ...rest] = command.split(' ');
      const known = commands.find((one) => one.name() === name)!.options.map(({ long }) => long);
      for (const word of rest.filter((one) => one.startsWith('--'))) expect(known).toContain(word);
    }
  });
});

describe('flashproof doctor', () => {
  it('says what is usable, as text and as JSON', async () => {
    const { status, stdout } = await runInProcess('doctor');
    expect(status).toBe(0);
    expect(stdout).toMatch(new RegExp(`^Node\\.js +ok +${process.version} `, 'm'));
    expect(stdout).toMatch(/^WebAssembly SIMD +ok/m);
    expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
    const json = JSON.parse((await runInProcess('doctor', '--json', '-')).stdout);
    expect(json).toMatchObject({ kind: 'doctor', schemaVersion: 1, verdict: { pass: true } });
    expect(json.probes.map(({ name }: { name: string }) => name)).toContain('Python');
  });

  it('asks every tool once, and believes none that fails or prints something else', () => {
    const asked: string[] = [];
    const answers: Readonly<Record<string, string>> = {
      nvcc: 'Cuda compilation tools, release 12.8, V12.8.61',
      'nvidia-smi': 'NVIDIA H200',
      python3: 'a tale',
    };
    const probes = probeMachine((command, words) => {
      asked.push([command, ...words].join(' '));
      return answers[command] ?? null;
    });
    expect(new Set(asked).size).toBe(asked.length);
    const found = Object.fromEntries(probes.map(({ name, found: what }) => [name, what]));
    expect(found).toMatchObject({ nvcc: '12.8', GPU: 'NVIDIA H200', Python: '', torch: '' });
    expect(probes.filter(({ isNeeded }) => isNeeded).map(({ name }) => name)).toEqual([
      'Node.js',
      'WebAssembly SIMD',
    ]);
  });

  it('knows which Node.js is too old', () => {
    expect(['v20.19.0', 'v22.0.0', 'v100.1.2'].map(isNewEnough)).toEqual([true, true, true]);
    expect(['v20.18.3', 'v18.99.0', 'v8.0.0'].map(isNewEnough)).toEqual([false, false, false]);
    const probe = { name: 'x', isNeeded: true, isUsable: false, found: '', note: '' };
    expect(probeSentence([probe])).toBe('Not usable: x.');
  });
});
